//! Endpoint validation: a destination consents before the first event is delivered.
//!
//! Separate because it is not a delivery: it has no event, is not counted as an attempt, and one
//! consent holds for all subscriptions of an address. Here are the handshakes (`handshake`), the
//! stored consent (`granted`, under a `key`), and the allowed `rate` of requests (`pace`).
//!
//! Promises: a consent is for one address and one handshake, and for one origin where the handshake
//! has one. The stored document holds no secret, not even the address's query. Consents are never
//! withdrawn here: delete the document and the destination is validated again.

mod granted;
mod handshake;
mod key;
mod pace;
mod rate;

pub use self::granted::Granted;
pub use self::handshake::{
    ALLOWED_ORIGIN, ALLOWED_RATE, ASK_TIMEOUT_MS, Answer, Question, REQUEST_RATE, ask, confirm,
    judge,
};
pub use self::key::ConsentKey;
pub use self::pace::{Pace, RateShare};
pub use self::rate::Rate;
