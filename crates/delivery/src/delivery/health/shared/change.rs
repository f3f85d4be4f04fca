//! Changes to a destination's state, caused by the findings of a process or by an operator.
//!
//! This module is separate from the state because a change also adds notices to it.

use super::findings::{ATTEMPTS_KEPT, FailureStreak, Findings};
use super::spell::{Spell, merged_spell};
use super::state::{DestinationState, DisabledState};
use crate::delivery::health::notice::{Notice, Transition};
use crate::delivery::health::{Finding, probation, slow};
use crate::subscription::Disable;
use crate::time::duration::{HOUR_MS, format_ms};

/// Minimum time between two publications of failures that continue.
pub const ROW_MS: u64 = HOUR_MS;
/// Maximum number of unsent notices; the oldest are dropped. The limit exists because sending may
/// fail for a long time.
const NOTICES_KEPT: usize = 20;

impl DestinationState {
    /// Merges the findings of a process into the stored state. The operation is idempotent.
    #[must_use]
    pub fn merged(stored: Option<Self>, findings: &Findings, now_ms: u64) -> Self {
        let Findings { destination, subscription, failing, is_unprobed, slow, attempts, .. } =
            findings;
        let healthy = || Self::healthy(destination, subscription, now_ms);
        let mut state = stored.unwrap_or_else(healthy).without_stale(now_ms);
        let before = state.clone();
        if let Some((finding, at_ms)) = failing.filter(|(_, at_ms)| state.is_news(*at_ms)) {
            state.failing = merged_spell(state.failing, finding, at_ms, probation::LONGEST_MS);
            state.ended_ms = (finding == Finding::Ended).then_some(at_ms).or(state.ended_ms);
            state.ceiling = findings.ceiling.or(state.ceiling);
            if finding == Finding::Ended {
                // The process that recorded these failures may no longer be running.
                state.refusing = None;
            }
        }
        // The claim on the probe ends, because the probe has a result or was not made.
        if *is_unprobed || failing.is_some() {
            state.probe_until_ms = None;
        }
        state.merge_slow(*slow);
        state.merge_row(findings.row);
        state.last_failure = match state.is_failing() {
            true => findings.last_failure.clone().or(state.last_failure),
            false => None,
        };
        for attempt in attempts {
            if !state.attempts.contains(attempt) {
                state.attempts.push(attempt.clone());
            }
        }
        let too_many = state.attempts.len().saturating_sub(ATTEMPTS_KEPT);
        state.attempts.drain(..too_many);
        state.disable_if_due(findings.disable);
        if state != before {
            state.changed_ms = now_ms;
        }
        if findings.notifies {
            state.note_changes_since(&before, now_ms);
        } else {
            state.notices.clear();
        }
        state
    }

    /// Disables the destination. Its deliveries become dead letters until an operator enables it.
    #[must_use]
    pub fn disabled_by_operator(self, now_ms: u64) -> Self {
        let since_ms = self.disabled.as_ref().map_or(now_ms, |disabled| disabled.since_ms);
        let disabled = Some(DisabledState { since_ms, why: "by an operator".to_owned() });
        self.changed(|state| state.disabled = disabled, now_ms)
    }

    /// Enables the destination and deletes its recorded health, so that the next delivery is
    /// attempted at once.
    #[must_use]
    pub fn enabled(self, now_ms: u64) -> Self {
        let forget = |state: &mut Self| {
            (state.disabled, state.failing, state.probe_until_ms) = Default::default();
            (state.slow, state.refusing, state.last_failure) = (None, None, None);
        };
        self.changed(forget, now_ms)
    }

    /// Ends the probation of a failing destination now, so that the next delivery is the probe.
    #[must_use]
    pub fn probed_now(self, now_ms: u64) -> Self {
        let end = |state: &mut Self| {
            state.probe_until_ms = None;
            if let Some(failing) = &mut state.failing {
                failing.until_ms = failing.until_ms.min(now_ms);
            }
        };
        self.changed(end, now_ms)
    }

    /// Removes the notices in `sent` from the unsent notices.
    #[must_use]
    pub fn without_notices(mut self, sent: &[Notice]) -> Self {
        self.notices.retain(|notice| !sent.contains(notice));
        self
    }

    /// Applies a change that an operator requested, and adds the notices of this change.
    fn changed(self, change: impl FnOnce(&mut Self), now_ms: u64) -> Self {
        let mut state = self.clone();
        change(&mut state);
        state.changed_ms = now_ms;
        state.note_changes_since(&self, now_ms);
        state
    }

    /// Returns true if a finding at the time `at_ms` is newer than the state. A process that was
    /// frozen may report an old finding.
    fn is_news(&self, at_ms: u64) -> bool {
        let failed_ms = self.failing.map(Spell::last_ms);
        failed_ms.into_iter().chain(self.ended_ms).all(|known_ms| at_ms >= known_ms)
    }

    /// Merges a finding of slowness. The end of slowness counts only if no other process found
    /// slowness later.
    fn merge_slow(&mut self, found: Option<(Finding, u64)>) {
        let Some((finding, at_ms)) = found else { return };
        let is_over = self.slow.is_none_or(|known| at_ms >= known.until_ms);
        if finding != Finding::Ended || is_over {
            self.slow = merged_spell(self.slow, finding, at_ms, slow::LASTS_MS);
        }
    }

    /// Merges a finding about consecutive failures into the state. The stored period expires unless
    /// later findings confirm it.
    fn merge_row(&mut self, row: Option<FailureStreak>) {
        self.refusing = match row {
            Some(FailureStreak::Failing { since_ms, at_ms }) => {
                let since_ms = self.refusing.map_or(since_ms, |known| known.since_ms.min(since_ms));
                let (until_ms, lasts_ms) = (at_ms.saturating_add(ROW_MS), ROW_MS);
                Some(Spell { since_ms, until_ms, lasts_ms })
            }
            Some(FailureStreak::Ended) => None,
            None => self.refusing,
        };
    }

    /// Disables the destination if it has failed for as long as its subscription allows.
    fn disable_if_due(&mut self, disable: Option<Disable>) {
        let (Some(Disable { after_ms }), Some(failing)) = (disable, self.failing) else {
            return;
        };
        // This is the time of the last failure.
        let at_ms = failing.until_ms.saturating_sub(failing.lasts_ms);
        if self.disabled.is_none() && at_ms.saturating_sub(failing.since_ms) >= after_ms {
            let why = format!("deliveries failed for {}", format_ms(after_ms));
            self.disabled = Some(DisabledState { since_ms: at_ms, why });
        }
    }

    fn note_changes_since(&mut self, before: &Self, now_ms: u64) {
        let key = format!("{}\n{}\n{now_ms}", self.destination, self.subscription);
        let changes = Transition::between(before, self);
        self.notices.extend(changes.map(|kind| Notice::new(&key, kind, now_ms)));
        let too_many = self.notices.len().saturating_sub(NOTICES_KEPT);
        self.notices.drain(..too_many);
    }
}
