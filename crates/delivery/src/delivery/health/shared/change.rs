//! The changes of a destination's state: by what a process found out, and by an operator.
//!
//! Separate from the state, because a change also adds the notices of what it changed.

use super::findings::{ATTEMPTS_KEPT, Findings};
use super::spell::{Spell, merged_spell};
use super::state::{DestinationState, DisabledState};
use crate::delivery::health::notice::{Notice, Transition};
use crate::delivery::health::{Finding, probation, slow};
use crate::subscription::{Disable, Disabled};
use crate::time::duration::format_ms;

/// How many notices wait for being sent, at most: whoever sends them may be out of order for long.
const NOTICES_KEPT: usize = 20;

impl DestinationState {
    /// What is known once these findings are added. Writing that twice changes nothing.
    #[must_use]
    pub fn merged(stored: Option<Self>, findings: &Findings, now_ms: u64) -> Self {
        let Findings { destination, subscription, failing, is_unprobed, slow, attempts, .. } =
            findings;
        let mut state = stored.unwrap_or_else(|| Self::healthy(destination, subscription, now_ms));
        state.failing = state.failing.filter(|spell| !spell.is_stale(now_ms));
        state.slow = state.slow.filter(|spell| !spell.is_stale(now_ms));
        let before = state.clone();
        if let Some((finding, at_ms)) = failing.filter(|(_, at_ms)| state.is_news(*at_ms)) {
            state.failing = merged_spell(state.failing, finding, at_ms, probation::LONGEST_MS);
            state.ended_ms = (finding == Finding::Ended).then_some(at_ms).or(state.ended_ms);
        }
        // Whoever was to probe has found something out, or somebody else did.
        if *is_unprobed || failing.is_some() {
            state.probe_until_ms = None;
        }
        if let Some((finding, at_ms)) = slow {
            state.slow = merged_spell(state.slow, *finding, *at_ms, slow::LONGEST_MS);
        }
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

    /// Disabled by an operator.
    #[must_use]
    pub fn disabled_by_operator(self, then: Disabled, now_ms: u64) -> Self {
        let since_ms = self.disabled.as_ref().map_or(now_ms, |disabled| disabled.since_ms);
        let disabled = Some(DisabledState { since_ms, then, why: "by an operator".to_owned() });
        self.changed(|state| state.disabled = disabled, now_ms)
    }

    /// Enabled by an operator: what was known of it is forgotten, so that it is tried at once.
    #[must_use]
    pub fn enabled(self, now_ms: u64) -> Self {
        let forget = |state: &mut Self| {
            (state.disabled, state.failing, state.probe_until_ms) = Default::default();
            state.slow = None;
        };
        self.changed(forget, now_ms)
    }

    /// To be probed at once, if it is failing.
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

    /// The notices are sent.
    #[must_use]
    pub fn without_notices(mut self, sent: &[Notice]) -> Self {
        self.notices.retain(|notice| !sent.contains(notice));
        self
    }

    /// What an operator changes is told as well.
    fn changed(self, change: impl FnOnce(&mut Self), now_ms: u64) -> Self {
        let mut state = self.clone();
        change(&mut state);
        state.changed_ms = now_ms;
        state.note_changes_since(&self, now_ms);
        state
    }

    /// Whether a finding of this time is newer than what is known: a process may have been frozen since.
    fn is_news(&self, at_ms: u64) -> bool {
        let failed_ms = self.failing.map(Spell::last_ms);
        failed_ms.into_iter().chain(self.ended_ms).all(|known_ms| at_ms >= known_ms)
    }

    /// Disables it, if it has kept failing for as long as its subscription says.
    fn disable_if_due(&mut self, disable: Option<Disable>) {
        let (Some(Disable { after_ms, then }), Some(failing)) = (disable, self.failing) else {
            return;
        };
        // When it failed last.
        let at_ms = failing.until_ms.saturating_sub(failing.lasts_ms);
        if self.disabled.is_none() && at_ms.saturating_sub(failing.since_ms) >= after_ms {
            let why = format!("it failed for {}", format_ms(after_ms));
            self.disabled = Some(DisabledState { since_ms: at_ms, then, why });
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
