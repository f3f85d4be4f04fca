//! [`Spell`]: a period in which a destination counts as failing or slow.
//!
//! This module is separate because both the shared state and the probations of a process use it.

use serde::{Deserialize, Serialize};

use crate::delivery::health::Finding;
use crate::time::duration::{DAY_MS, MINUTE_MS};

/// Maximum tolerated clock skew between two processes.
const CLOCKS_MS: u64 = MINUTE_MS;

/// A period in which a destination is failing or slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spell {
    /// Start of the period, in milliseconds since 1970.
    pub since_ms: u64,
    /// Time of the next attempt that can end the period. A destination on probation gets no attempt
    /// before this time.
    pub until_ms: u64,
    /// Time between the last attempt and `until_ms`, in milliseconds.
    pub lasts_ms: u64,
}

impl Spell {
    /// Limits the remaining time of this period. Returns `None` if the remaining time is so long
    /// that the clock of the writer must have been wrong.
    #[must_use]
    pub fn at_most(self, longest_ms: u64, now_ms: u64) -> Option<Self> {
        let latest_ms = now_ms.saturating_add(longest_ms);
        let is_plausible = self.until_ms <= latest_ms.saturating_add(CLOCKS_MS);
        is_plausible.then(|| Self { until_ms: self.until_ms.min(latest_ms), ..self })
    }

    /// Returns the time of the last attempt that confirmed the period.
    pub(super) fn last_ms(self) -> u64 {
        self.until_ms.saturating_sub(self.lasts_ms)
    }

    /// Returns true if the last attempt was so long ago that the next failure begins a new period.
    pub(super) fn is_stale(self, now_ms: u64) -> bool {
        now_ms >= self.until_ms.saturating_add(DAY_MS)
    }
}

/// Merges a finding at the time `at_ms` into the stored period. If two processes report the same
/// condition, the longer period wins: the process that reported the shorter period had not read the
/// longer one.
pub(super) fn merged_spell(
    stored: Option<Spell>,
    finding: Finding,
    at_ms: u64,
    longest_ms: u64,
) -> Option<Spell> {
    let lasts_ms = match finding {
        Finding::Ended => return None,
        Finding::Began { lasts_ms } | Finding::GoesOn { lasts_ms } => lasts_ms,
    };
    let found = |lasts_ms: u64| Spell {
        since_ms: at_ms,
        until_ms: at_ms.saturating_add(lasts_ms),
        lasts_ms,
    };
    // Ignores a period that was written with a wrong clock.
    let stored = stored.and_then(|stored| stored.at_most(longest_ms, at_ms));
    let Some(stored) = stored else { return Some(found(lasts_ms)) };
    let lasts_ms = match finding {
        // A failure after the end of the stored period counts as a failed probe.
        Finding::Began { .. } if at_ms >= stored.until_ms => {
            lasts_ms.max(stored.lasts_ms.saturating_mul(2).min(longest_ms))
        }
        Finding::Began { .. } | Finding::GoesOn { .. } | Finding::Ended => lasts_ms,
    };
    let newest = found(lasts_ms);
    let longer = if newest.until_ms > stored.until_ms { newest } else { stored };
    Some(Spell { since_ms: stored.since_ms.min(at_ms), ..longer })
}
