//! [`Returned`]: the failed delivery of a dead letter to its sink. The dead letter contains this
//! record.
//!
//! This module is separate because such a delivery has ended: only the fields that the blob shows
//! are kept.

use super::history::History;
use super::reason::Reason;
use super::word::Word;

/// The failed delivery of a dead letter to its sink, reduced to the fields that the blob shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The URL of the sink, without credentials; `None` if the subscription does not exist.
    pub address: Option<String>,
    /// The reason why the delivery to the sink failed.
    pub reason: Word<Reason>,
    /// Human-readable details that the reason does not include.
    pub detail: Option<String>,
    /// Number of attempts at the sink.
    pub attempts: u32,
    /// The first and the last attempts at the sink.
    pub history: History,
    /// The beginning of the last response body of the sink.
    pub last_response: Option<Vec<u8>>,
}
