//! The failed delivery of a dead letter to its sink, which the dead letter then reports.
//!
//! Separate because it is no delivery any more: only what a blob shows of it is kept.

use super::history::History;
use super::reason::Reason;
use super::word::Word;

/// The failed delivery of a dead letter to its sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The sink's address without credentials; `None` where the subscription is gone.
    pub address: Option<String>,
    /// Why that delivery ended.
    pub reason: Word<Reason>,
    /// What the reason's name does not say.
    pub detail: Option<String>,
    /// Attempts made.
    pub attempts: u32,
    /// What happened.
    pub history: History,
    /// The beginning of its last answer's body.
    pub last_response: Option<Vec<u8>>,
}
