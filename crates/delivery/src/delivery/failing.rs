//! [`FailingDestination`]: the last failure of a destination that keeps failing.
//!
//! This module is separate because health, deferred deliveries and dead letters all contain such a
//! failure. It explains a dead letter without an attempt: the destination was failing.

use serde::{Deserialize, Serialize};

use super::detail::truncated_detail;
use super::outcome::{Exchange, Outcome};

/// The last failure of a destination that keeps failing, and the time of the first one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingDestination {
    /// Time of the first failure after the last success, in milliseconds since 1970.
    pub since_ms: u64,
    /// The log name of the last failure's outcome.
    pub outcome: String,
    /// The HTTP status of the last failure; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Human-readable details that the outcome does not include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl FailingDestination {
    /// Updates the last known failure with an exchange. Returns `None` after a success. If no
    /// request was sent, `known` is returned unchanged.
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
