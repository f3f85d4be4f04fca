//! Publishes over HTTP: pure functions convert a request into a message for the events queue, or
//! refuse the request.
//!
//! This module is separate because two servers publish over HTTP, the ingress of `lastmile dev` and
//! the ingress function, and clients should see no difference. Each server calls, in this order:
//! - [`handshake()`] and [`validation_response`], for a sender that requests permission
//! - [`check_key`], which authenticates the publisher
//! - [`route()`], which selects the topic
//! - [`message`], which creates the message
//!
//! After the queue has accepted the message, [`Route::answer`] is the response. A refused request
//! publishes nothing. One request is one message, which is published as a whole or not at all. The
//! module does not check that a topic exists, and sends nothing itself.

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
