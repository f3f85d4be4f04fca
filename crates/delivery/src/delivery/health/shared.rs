//! What all processes of a deployment know of a destination that is not healthy: one small document for
//! each, and a digest of all.
//!
//! A process writes what it found out, and the document keeps what is worse: the longer probation, the
//! earlier beginning. Documents are replaced only by whoever read their newest version, so that of two
//! processes that want to probe a destination one does. The digest is a hint: what it lacks, a process
//! finds out by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DestinationKey, FOLDER, Finding, probation, slow};
use crate::delivery::outcome::Outcome;
use crate::time::duration::DAY_MS;

/// The version of the documents.
pub(super) const VERSION: u32 = 1;
/// How many of the last attempts that changed something a document keeps.
const ATTEMPTS_KEPT: usize = 5;
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
    /// The same, for at most so long from now.
    #[must_use]
    pub fn at_most(self, longest_ms: u64, now_ms: u64) -> Self {
        Self { until_ms: self.until_ms.min(now_ms.saturating_add(longest_ms)), ..self }
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
    /// Until when the process that probes it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_until_ms: Option<u64>,
    /// Since when it is slow to answer, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// The last attempts that changed something, the newest last.
    #[serde(default)]
    pub attempts: Vec<Attempted>,
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
}

impl Findings {
    /// Nothing yet about this destination.
    #[must_use]
    pub fn new(destination: String, subscription: String) -> Self {
        let (failing, slow, attempts) = Default::default();
        Self { destination, subscription, failing, is_unprobed: false, slow, attempts }
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
        let Findings { destination, subscription, failing, is_unprobed, slow, attempts } = findings;
        let mut state = stored.unwrap_or_else(|| Self {
            v: VERSION,
            destination: destination.clone(),
            subscription: subscription.clone(),
            failing: None,
            probe_until_ms: None,
            slow: None,
            attempts: Vec::new(),
            changed_ms: now_ms,
        });
        let before = state.clone();
        if let Some((finding, at_ms)) = failing {
            state.failing = merged_spell(state.failing, *finding, *at_ms, probation::LONGEST_MS);
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
        if state != before {
            state.changed_ms = now_ms;
        }
        state
    }

    /// Whether a process may probe now, with an attempt that ends before `ends_ms`.
    #[must_use]
    pub fn claim(&self, now_ms: u64, ends_ms: u64) -> Claim {
        let Some(failing) = self.failing else { return Claim::Recovered };
        if now_ms < failing.until_ms {
            return Claim::Failing(failing.at_most(probation::LONGEST_MS, now_ms));
        }
        if self.probe_until_ms.is_some_and(|until_ms| now_ms < until_ms) {
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
    let stored = stored.map(|stored| stored.at_most(longest_ms, at_ms));
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
        self.destinations.retain(|_, it| is_recent(it.failing) || is_recent(it.slow));
        let is_smaller = self.destinations.len() < before;
        let summary = Summary { failing: state.failing, slow: state.slow };
        if state.is_healthy() {
            return self.destinations.remove(&key).is_some() || is_smaller;
        }
        if self.destinations.len() >= DIGEST_MAX && !self.destinations.contains_key(&key) {
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
        for at_ms in 10..20 {
            let attempts = vec![Attempted::new(at_ms, Outcome::TimedOut, None, 30_000)];
            let ended = Findings { attempts, ..findings(Some((Finding::Ended, at_ms))) };
            state = DestinationState::merged(Some(state), &ended, at_ms);
        }
        assert!(state.is_healthy());
        let kept: Vec<u64> = state.attempts.iter().map(|attempt| attempt.at_ms).collect();
        assert_eq!(kept, [15, 16, 17, 18, 19]);
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
}
