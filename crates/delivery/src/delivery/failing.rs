//! The last failure of a destination that keeps failing.
//!
//! Separate because it travels: from the process that saw it to the others, with each delivery that is put off because of it, and into
//! the dead letters of those. So a dead letter without an attempt says what its destination does.

use serde::{Deserialize, Serialize};

use super::detail::truncated_detail;
use super::outcome::{Exchange, Outcome};

/// The last failure of a destination that keeps failing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingDestination {
    /// Time of the first failure after its last success.
    pub since_ms: u64,
    /// The log name of the last outcome.
    pub outcome: String,
    /// The last HTTP status; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What the outcome does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl FailingDestination {
    /// The state after an exchange with this outcome: `None` after a success. What the exchange does not say about the destination
    /// changes nothing.
    #[must_use]
    pub fn after(known: Option<Self>, exchange: &Exchange, outcome: Outcome) -> Option<Self> {
        if outcome == Outcome::Success {
            return None;
        }
        if !outcome.tested_destination() {
            return known;
        }
        Some(Self {
            since_ms: known.map_or(exchange.ended_ms(), |known| known.since_ms),
            outcome: outcome.as_str().to_owned(),
            status: exchange.status(),
            detail: exchange.detail.as_deref().map(truncated_detail),
        })
    }
}
