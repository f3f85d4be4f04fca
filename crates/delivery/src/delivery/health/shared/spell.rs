//! A time in which a destination counts as failing, or as slow.
//!
//! Separate because the item of a destination holds it, and the probations of a process take it over from there.

use serde::{Deserialize, Serialize};

use crate::delivery::health::Finding;
use crate::time::duration::{DAY_MS, MINUTE_MS};

/// How far apart the clocks of two processes may be.
const CLOCKS_MS: u64 = MINUTE_MS;

/// A time in which a destination counts as failing, or as slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spell {
    /// When it began.
    pub since_ms: u64,
    /// Until when nothing is tried; then an attempt decides.
    pub until_ms: u64,
    /// How long that was, since the last attempt.
    pub lasts_ms: u64,
}

impl Spell {
    /// The same, for at most so long from now; none, if a clock that was wrong wrote it.
    #[must_use]
    pub fn at_most(self, longest_ms: u64, now_ms: u64) -> Option<Self> {
        let latest_ms = now_ms.saturating_add(longest_ms);
        let is_plausible = self.until_ms <= latest_ms.saturating_add(CLOCKS_MS);
        is_plausible.then(|| Self { until_ms: self.until_ms.min(latest_ms), ..self })
    }

    /// When the last attempt was.
    pub(super) fn last_ms(self) -> u64 {
        self.until_ms.saturating_sub(self.lasts_ms)
    }

    /// Whether nobody has tried for so long that an attempt now is not its continuation.
    pub(super) fn is_stale(self, now_ms: u64) -> bool {
        now_ms >= self.until_ms.saturating_add(DAY_MS)
    }
}

/// A spell after a finding of this time. Of two processes that find the same, the one that knows the
/// longer spell is right: the other one did not know of it.
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
    // Whoever wrote it may have a clock that is wrong.
    let stored = stored.and_then(|stored| stored.at_most(longest_ms, at_ms));
    let Some(stored) = stored else { return Some(found(lasts_ms)) };
    let lasts_ms = match finding {
        // Its time was over, and it fails again: as if its probe had failed.
        Finding::Began { .. } if at_ms >= stored.until_ms => {
            lasts_ms.max(stored.lasts_ms.saturating_mul(2).min(longest_ms))
        }
        Finding::Began { .. } | Finding::GoesOn { .. } | Finding::Ended => lasts_ms,
    };
    let newest = found(lasts_ms);
    let longer = if newest.until_ms > stored.until_ms { newest } else { stored };
    Some(Spell { since_ms: stored.since_ms.min(at_ms), ..longer })
}
