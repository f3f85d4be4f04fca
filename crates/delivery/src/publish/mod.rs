//! Publishing over HTTP, as a function over plain values: a request becomes a message for the events
//! queue, or a refusal.
//!
//! Separate because two servers publish over HTTP, the ingress of `lastmile dev` and the ingress function,
//! and clients should not notice which of them answers. Each of them asks, in this order: does the caller only want to
//! know whether it may publish ([`handshake`], [`validation_response`]), may it ([`check_key`]), where to ([`route`]), and
//! what ([`message`]). Once the queue has the message, [`Route::answer`] is what the client expects.
//!
//! Promises: nothing is published of a request that is refused, and one request is one message: it is
//! published as a whole or not at all.
//!
//! Does not know whether a topic exists, and sends nothing.

mod body;
mod handshake;
mod http_request;
mod key;
mod refusal;
mod route;

pub use self::body::{Published, message, too_large, topic_bytes};
pub use self::handshake::{AllowedOrigins, handshake, validation_response};
pub use self::http_request::HttpRequest;
pub use self::key::{KnownKeys, ShownKeys, check_key};
pub use self::refusal::Refusal;
pub use self::route::{DefaultTopic, Route, route};
