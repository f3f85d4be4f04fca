//! The outcome of an attempt, and its meaning.
//!
//! There are three separate steps. [`Exchange`] is the response that the sender received, or the
//! reason why there was none. [`Outcome`] classifies the exchange. [`judge`] returns the meaning of
//! the exchange under a policy: delivered, retry or undeliverable.
//!
//! The failure of a destination is a value here, never an `Err`.

mod exchange;
mod kind;
mod name;
mod verdict;

pub use exchange::{Content, Exchange, TransportResult, Unsendable};
pub use kind::Outcome;
pub use name::{NoResponse, OutcomeName};
pub use verdict::{Verdict, judge, requested_wait_ms, retry_after_ms};
