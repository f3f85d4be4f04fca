//! [`Claim`]: reserves the probe of a destination for one process.
//!
//! This module is separate from other changes of the state because a claim adds no finding.

use super::spell::Spell;
use super::state::DestinationState;
use crate::delivery::health::probation;
use crate::time::duration::MINUTE_MS;

/// Maximum duration for which a claim is valid. An attempt can last as long as two timeouts if late
/// responses count.
const CLAIM_MAX_MS: u64 = 30 * MINUTE_MS;

/// The result of trying to claim the probe of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The claim succeeds once this document is written. The process may then probe.
    Write(Box<DestinationState>),
    /// Another process has claimed the probe.
    Probed,
    /// The destination failed again, so the probation lasts until a later time.
    Failing(Spell),
    /// The destination has recovered, so no probe is needed.
    Recovered,
}

impl DestinationState {
    /// Tries to claim the probe for an attempt that ends before `ends_ms`.
    #[must_use]
    pub fn claim(&self, now_ms: u64, ends_ms: u64) -> Claim {
        let Some(failing) = self.failing else { return Claim::Recovered };
        let failing = failing.at_most(probation::LONGEST_MS, now_ms);
        if let Some(failing) = failing.filter(|failing| now_ms < failing.until_ms) {
            return Claim::Failing(failing);
        }
        let is_claimed = |until_ms: u64| now_ms < until_ms && until_ms <= now_ms + CLAIM_MAX_MS;
        if self.probe_until_ms.is_some_and(is_claimed) {
            return Claim::Probed;
        }
        let claimed = Self { probe_until_ms: Some(ends_ms), changed_ms: now_ms, ..self.clone() };
        Claim::Write(Box::new(claimed))
    }
}
