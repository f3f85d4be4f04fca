//! What all processes of a deployment know of a destination that is not healthy: one small document for
//! each, and a digest of all.
//!
//! A process writes what it found out, and the document keeps what is worse: the longer probation, the
//! earlier beginning. Documents are replaced only by whoever read their newest version, so that of two
//! processes that want to probe a destination one does. The digest is a hint: what it lacks, a process
//! finds out by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::notice::{Notice, Transition};
use super::{DestinationKey, FOLDER, Finding, probation, slow};
use crate::delivery::outcome::Outcome;
use crate::subscription::{Disable, Disabled};
use crate::time::duration::{DAY_MS, MINUTE_MS, format_ms};

/// The version of the documents.
pub(super) const VERSION: u32 = 1;
/// How many of the last attempts that changed something a document keeps.
const ATTEMPTS_KEPT: usize = 5;
/// No claim of a probe lasts longer: a late answer may take as long as two timeouts.
const CLAIM_MAX_MS: u64 = 30 * MINUTE_MS;
/// How far apart the clocks of two processes may be.
const CLOCKS_MS: u64 = MINUTE_MS;
/// How many notices wait for being sent, at most: whoever sends them may be out of order for long.
const NOTICES_KEPT: usize = 20;
/// How many destinations a digest names. It is read by every process, so it has to stay small.
const DIGEST_MAX: usize = 2_000;

/// The key of the digest.
#[must_use]
pub fn digest_document() -> String {
    format!("{FOLDER}/digest.json")
}

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
    fn last_ms(self) -> u64 {
        self.until_ms.saturating_sub(self.lasts_ms)
    }

    /// Whether nobody has tried for so long that an attempt now is not its continuation.
    fn is_stale(self, now_ms: u64) -> bool {
        now_ms >= self.until_ms.saturating_add(DAY_MS)
    }
}

/// An attempt that changed what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempted {
    /// Its start.
    pub at_ms: u64,
    /// What happened; `None` for one that was abandoned.
    pub outcome: Option<String>,
    /// The status, where there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took.
    pub duration_ms: u64,
}

/// A destination that gets no events until an operator enables it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledState {
    /// Since when.
    pub since_ms: u64,
    /// What happens to its deliveries.
    pub then: Disabled,
    /// Why, for people.
    pub why: String,
}

/// What is known of a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationState {
    v: u32,
    /// Its address, without credentials and query.
    pub destination: String,
    /// A subscription that delivers to it.
    pub subscription: String,
    /// Since when it keeps failing, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// When it was found to fail no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Until when the process that probes it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_until_ms: Option<u64>,
    /// Since when it is slow to answer, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// That it is disabled, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<DisabledState>,
    /// The last attempts that changed something, the newest last.
    #[serde(default)]
    pub attempts: Vec<Attempted>,
    /// Who is to be told of what changed, until that is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// When it was written.
    pub changed_ms: u64,
}

/// What one process found out since it wrote last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The address, without credentials and query.
    pub destination: String,
    /// The subscription whose attempt it was.
    pub subscription: String,
    /// Whether it keeps failing, and when that was found.
    pub failing: Option<(Finding, u64)>,
    /// Whether a probe that it had claimed was not made.
    pub is_unprobed: bool,
    /// Whether it is slow, and when that was found.
    pub slow: Option<(Finding, u64)>,
    /// The attempts that showed it.
    pub attempts: Vec<Attempted>,
    /// When its subscription wants it disabled.
    pub disable: Option<Disable>,
    /// Whether anybody wants to be told.
    pub notifies: bool,
}

impl Findings {
    /// Nothing yet about this destination.
    #[must_use]
    pub fn new(destination: String, subscription: String) -> Self {
        let (failing, slow, attempts, disable) = Default::default();
        let (is_unprobed, notifies) = (false, false);
        Self { destination, subscription, failing, is_unprobed, slow, attempts, disable, notifies }
    }

    /// Adds what was found out before.
    pub fn add_earlier(&mut self, mut earlier: Self) {
        self.failing = self.failing.or(earlier.failing);
        self.slow = self.slow.or(earlier.slow);
        earlier.attempts.append(&mut self.attempts);
        self.attempts = earlier.attempts;
    }
}

/// Whether a process may probe a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It may, once this document is written.
    Write(Box<DestinationState>),
    /// Another one does.
    Probed,
    /// It is too early: the destination failed again.
    Failing(Spell),
    /// The destination is not failing any more.
    Recovered,
}

/// A document that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is not of the expected form.
    #[error("it is not a document about destinations: {0}")]
    Invalid(String),
    /// It is of a newer version.
    #[error("its version {0} is not known")]
    Version(u32),
}

/// A document that all processes share.
pub trait Document: Clone + PartialEq + Serialize + for<'a> Deserialize<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// [`DocumentError`] when it is not one, or one of a newer version.
    fn read(document: &[u8]) -> Result<Self, DocumentError> {
        // The version first: a newer document may have another form.
        let invalid = |error: serde_json::Error| DocumentError::Invalid(error.to_string());
        let Versioned { v } = serde_json::from_slice(document).map_err(invalid)?;
        if v != VERSION {
            return Err(DocumentError::Version(v));
        }
        serde_json::from_slice(document).map_err(invalid)
    }

    /// The bytes to store.
    fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("its keys are text, and its values are plain")
    }
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

impl Document for DestinationState {}
impl Document for Digest {}

impl DestinationState {
    /// Whether it is neither failing nor slow.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.failing.is_none() && self.slow.is_none()
    }

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

    /// A destination of which nothing is known.
    #[must_use]
    pub fn healthy(destination: &str, subscription: &str, now_ms: u64) -> Self {
        let (failing, ended_ms, probe_until_ms) = Default::default();
        let (slow, disabled) = Default::default();
        let (destination, subscription) = (destination.to_owned(), subscription.to_owned());
        let (attempts, notices) = Default::default();
        Self {
            v: VERSION,
            destination,
            subscription,
            failing,
            ended_ms,
            probe_until_ms,
            slow,
            disabled,
            attempts,
            notices,
            changed_ms: now_ms,
        }
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

    /// Whether a process may probe now, with an attempt that ends before `ends_ms`.
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

/// A spell after a finding of this time. Of two processes that find the same, the one that knows the
/// longer spell is right: the other one did not know of it.
fn merged_spell(
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

impl Attempted {
    /// An attempt with this outcome.
    #[must_use]
    pub fn new(at_ms: u64, outcome: Outcome, status: Option<u16>, duration_ms: u64) -> Self {
        Self { at_ms, outcome: Some(outcome.as_str().to_owned()), status, duration_ms }
    }

    /// An attempt that was abandoned at this time.
    #[must_use]
    pub fn abandoned(at_ms: u64, ended_ms: u64) -> Self {
        let duration_ms = ended_ms.saturating_sub(at_ms);
        Self { at_ms, outcome: None, status: None, duration_ms }
    }
}

/// What the digest says of one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// That it is failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// That it is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// That it is disabled, and what happens to its deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
}

/// All destinations that are not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    v: u32,
    destinations: BTreeMap<DestinationKey, Summary>,
}

impl Default for Digest {
    fn default() -> Self {
        Self { v: VERSION, destinations: BTreeMap::new() }
    }
}

impl Digest {
    /// What it says of a destination; nothing, if that is healthy.
    #[must_use]
    pub fn get(&self, key: DestinationKey) -> Summary {
        self.destinations.get(&key).copied().unwrap_or_default()
    }

    /// Whether there may be unhealthy destinations that it does not name.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.destinations.len() >= DIGEST_MAX
    }

    /// The destinations that it names.
    pub fn iter(&self) -> impl Iterator<Item = (DestinationKey, Summary)> {
        self.destinations.iter().map(|(key, summary)| (*key, *summary))
    }

    /// Notes the state of a destination, and forgets those that nobody has tried for a day. Whether that
    /// changed anything.
    pub fn note(&mut self, key: DestinationKey, state: &DestinationState, now_ms: u64) -> bool {
        let before = self.destinations.len();
        let is_recent = |spell: Option<Spell>| {
            spell.is_some_and(|spell| now_ms < spell.until_ms.saturating_add(DAY_MS))
        };
        self.destinations
            .retain(|_, it| it.disabled.is_some() || is_recent(it.failing) || is_recent(it.slow));
        let is_smaller = self.destinations.len() < before;
        let disabled = state.disabled.as_ref().map(|disabled| disabled.then);
        let summary = Summary { failing: state.failing, slow: state.slow, disabled };
        if summary == Summary::default() {
            return self.destinations.remove(&key).is_some() || is_smaller;
        }
        let is_new = !self.destinations.contains_key(&key);
        // What is disabled has to be known by all.
        if is_new && self.is_full() && summary.disabled.is_none() {
            return is_smaller;
        }
        self.destinations.insert(key, summary) != Some(summary) || is_smaller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(failing: Option<(Finding, u64)>) -> Findings {
        let attempts = vec![Attempted::new(7, Outcome::Busy, Some(503), 1)];
        let nothing = Findings::new("https://example.com/".to_owned(), "n/t/s".to_owned());
        Findings { failing, attempts, ..nothing }
    }

    fn began(at_ms: u64, lasts_ms: u64) -> Findings {
        findings(Some((Finding::Began { lasts_ms }, at_ms)))
    }

    fn failing(state: &DestinationState) -> (u64, u64, u64) {
        let spell = state.failing.expect("it is failing");
        (spell.since_ms, spell.until_ms, spell.lasts_ms)
    }

    #[test]
    fn what_is_written_is_read_and_a_newer_version_is_refused() {
        let state = DestinationState::merged(None, &began(1_000, 10_000), 1_001);
        assert_eq!(DestinationState::read(&state.write()), Ok(state.clone()));
        let mut digest = Digest::default();
        assert!(digest.note(DestinationKey([7; KEY]), &state, 1_001));
        assert_eq!(
            Digest::read(&digest.write()).map(|it| it.destinations),
            Ok(digest.destinations)
        );
        let newer = br#"{"v":2,"anything":[]}"#;
        assert_eq!(DestinationState::read(newer), Err(DocumentError::Version(2)));
        assert_eq!(Digest::read(newer), Err(DocumentError::Version(2)));
        assert!(matches!(Digest::read(b"no"), Err(DocumentError::Invalid(_))));
    }

    const KEY: usize = super::super::KEY_BYTES;

    #[test]
    fn the_longer_probation_is_kept_and_the_earlier_beginning() {
        let first = DestinationState::merged(None, &began(1_000, 600_000), 1_000);
        assert_eq!(failing(&first), (1_000, 601_000, 600_000));
        // Another process that did not know of it.
        let second = DestinationState::merged(Some(first.clone()), &began(5_000, 10_000), 5_000);
        assert_eq!(failing(&second), (1_000, 601_000, 600_000));
        // After its end that is a failed probe.
        let late = DestinationState::merged(Some(first), &began(700_000, 10_000), 700_000);
        assert_eq!(failing(&late), (1_000, 1_900_000, 1_200_000));
        let probed = findings(Some((Finding::GoesOn { lasts_ms: 2_400_000 }, 1_900_000)));
        let probed = DestinationState::merged(Some(late), &probed, 1_900_000);
        assert_eq!(failing(&probed), (1_000, 4_300_000, 2_400_000));
    }

    #[test]
    fn writing_the_same_twice_changes_nothing() {
        let once = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
        assert_eq!(
            DestinationState::merged(Some(once.clone()), &began(1_000, 10_000), 1_000),
            once
        );
    }

    #[test]
    fn an_end_leaves_a_healthy_destination_with_its_last_five_attempts() {
        let mut state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
        for at_ms in 1_010..1_020 {
            let attempts = vec![Attempted::new(at_ms, Outcome::TimedOut, None, 30_000)];
            let ended = Findings { attempts, ..findings(Some((Finding::Ended, at_ms))) };
            state = DestinationState::merged(Some(state), &ended, at_ms);
        }
        assert!(state.is_healthy());
        let kept: Vec<u64> = state.attempts.iter().map(|attempt| attempt.at_ms).collect();
        assert_eq!(kept, [1_015, 1_016, 1_017, 1_018, 1_019]);
    }

    #[test]
    fn one_process_at_a_time_may_probe() {
        let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
        assert_eq!(state.claim(10_999, 50_000), Claim::Failing(state.failing.unwrap()));
        let Claim::Write(claimed) = state.claim(11_000, 50_000) else { panic!("it may probe") };
        assert_eq!(claimed.claim(11_001, 60_000), Claim::Probed);
        // The process that probed is gone.
        assert!(matches!(claimed.claim(50_000, 90_000), Claim::Write(_)));
        let failed = findings(Some((Finding::GoesOn { lasts_ms: 20_000 }, 12_000)));
        let probed = DestinationState::merged(Some((*claimed).clone()), &failed, 12_000);
        assert_eq!(probed.claim(12_001, 60_000), Claim::Failing(probed.failing.unwrap()));
        let unprobed = Findings { is_unprobed: true, ..findings(None) };
        let unprobed = DestinationState::merged(Some((*claimed).clone()), &unprobed, 12_000);
        assert!(matches!(unprobed.claim(12_001, 60_000), Claim::Write(_)));
        let recovered = findings(Some((Finding::Ended, 12_000)));
        let probed = DestinationState::merged(Some(*claimed), &recovered, 12_000);
        assert_eq!(probed.claim(12_001, 60_000), Claim::Recovered);
    }

    #[test]
    fn a_digest_forgets_what_is_healthy_and_what_nobody_has_tried_for_a_day() {
        let mut digest = Digest::default();
        let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
        let key = |number: u8| DestinationKey([number; KEY]);
        assert!(digest.note(key(1), &state, 1_000));
        assert!(!digest.note(key(1), &state, 1_001), "it is known");
        assert!(digest.note(key(2), &state, 1_000));
        assert_eq!(digest.get(key(2)).failing, state.failing);
        let ended = findings(Some((Finding::Ended, 2_000)));
        let healthy = DestinationState::merged(Some(state), &ended, 2_000);
        assert!(digest.note(key(2), &healthy, 2_000));
        assert_eq!(digest.iter().map(|(key, _)| key).collect::<Vec<_>>(), [key(1)]);
        assert!(digest.note(key(3), &healthy, 11_000 + DAY_MS));
        assert_eq!(digest.iter().count(), 0);
    }

    #[test]
    fn an_old_finding_or_one_of_a_wrong_clock_decides_nothing() {
        let state = DestinationState::merged(None, &began(50_000, 10_000), 50_000);
        // A process writes at last what it found before that.
        let ended = findings(Some((Finding::Ended, 49_000)));
        let state = DestinationState::merged(Some(state), &ended, 51_000);
        assert_eq!(failing(&state), (50_000, 60_000, 10_000));
        let ended = findings(Some((Finding::Ended, 61_000)));
        let healthy = DestinationState::merged(Some(state), &ended, 61_000);
        let again = DestinationState::merged(Some(healthy), &began(52_000, 10_000), 70_000);
        assert!(again.is_healthy());
        let ahead = DestinationState::merged(None, &began(u64::MAX / 2, 10_000), 1_000);
        assert!(matches!(ahead.claim(1_000, 2_000), Claim::Write(_)));
    }

    #[test]
    fn failures_of_long_ago_are_not_the_beginning_of_those_of_today() {
        let disable = Some(Disable { after_ms: DAY_MS, then: Disabled::Hold });
        let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
        let now_ms = 11_000 + DAY_MS;
        let again = Findings { disable, ..began(now_ms, 10_000) };
        let state = DestinationState::merged(Some(state), &again, now_ms);
        assert_eq!((failing(&state).0, state.disabled), (now_ms, None));
    }
}
