//! What happened in an attempt, and what it means.
//!
//! Three steps kept apart. [`Exchange`] is what the sender saw: an answer, or why there was none.
//! [`Outcome`] names it in one word. [`judge`] says what it means under a policy: delivered, to be
//! retried, or undeliverable.
//!
//! A destination's failure is a value here, never an `Err`.

mod exchange;
mod kind;
mod name;
mod verdict;

pub use exchange::{Content, Exchange, TransportResult, Unsendable};
pub use kind::Outcome;
pub use name::{NoResponse, OutcomeName};
pub use verdict::{Verdict, judge, requested_wait_ms, retry_after_ms};
