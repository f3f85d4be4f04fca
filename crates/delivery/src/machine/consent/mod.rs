//! Endpoint validation: a destination must consent before the first event is delivered.
//!
//! This module is separate because validation is not a delivery: it has no event and is not an
//! attempt, and one consent is valid for all subscriptions of an address. This module has the
//! handshakes (`handshake`), the stored consent (`granted`, under a `key`), and the allowed `rate`
//! of requests (`pace`).
//!
//! A consent is valid for one address and one handshake, and for one origin if the handshake has
//! one. The stored document contains no secret, not even the query of the address. No code
//! withdraws a consent. An operator can delete the item of a consent; the destination is then
//! validated again.

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
