//! The ledger of a replay: what is to be sent, and what was sent. Pure: texts and decisions, no
//! storage.
//!
//! These files are in `_replays/<job>/`, beside the dead letters:
//!
//! - `plan.ndjson` has a header, then every dead letter in the order of sending;
//! - `<n>.ndjson`, one for each chunk of ten, is written before sending (`intent`) and again after it;
//! - `done.ndjson` has the header and all entries. It is written once every dead letter is finished, and again
//!   with the ends once every delivery has ended.
//!
//! A chunk with entries that still say `intent` is uncertain: it may have been sent. A resume names it and
//! sends it again, unless `--skip-uncertain` is given. The delivery id is a function of job and
//! dead letter, so a receiver can recognize a repeat.
//!
//! Version 1 of these texts stays readable for ever.

use std::collections::{BTreeMap, HashMap, HashSet};

pub use delivery::delivery::replay::is_job_name;
use delivery::delivery::replay::{ReplayOutcome, StoredReplayEnd};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::duration::DAY_MS;
use delivery::time::moment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

use crate::rate::Rate;

/// The dead letters of a chunk: what SQS takes in one call.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
pub(crate) const CHUNK: usize = 10;
/// The namespace of the ids of replayed deliveries (UUIDv5).
const REPLAY_NAMESPACE: Uuid = uuid!("0c1d7b52-5b5e-5a0f-8f52-6f2f0b6d4c11");
/// The version that is written.
pub(crate) const VERSION: u32 = 1;
/// The target of a job that sends each dead letter to its own subscription.
pub(crate) const SUBSCRIPTION: &str = "subscription";

/// What a job is: the first line of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHeader {
    pub(crate) v: u32,
    /// The name of the job.
    pub job: String,
    /// When it was started, RFC 3339.
    pub at: String,
    /// Where its dead letters are sent: `subscription`, `topic NS/TOPIC`, a URL, or what of a URL may be stored.
    pub to: String,
    /// The queue, if they are sent through one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How many dead letters there are.
    pub letters: usize,
    /// Whether the ends of its deliveries are recorded beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub results: bool,
    /// The most that it sends in a time; a resume may give another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The person who started it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A note of that person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

impl JobHeader {
    /// Whether it is known what became of all that was sent. What was skipped may have been sent before: then
    /// its end cannot be told from those that are counted.
    #[must_use]
    pub fn has_results(&self, counts: &ReplayCounts) -> bool {
        self.results && counts.skipped == 0
    }
}

/// A dead letter that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedReplay {
    pub(crate) letter: Uuid,
    pub(crate) key: String,
}

/// How far the replay of a dead letter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayState {
    /// About to be sent; after a crash it is uncertain whether it was.
    Intent,
    /// Accepted.
    Sent,
    /// Not accepted; a resume tries again.
    Refused,
    /// Uncertain, and left so on request.
    Skipped,
    /// Its blob no longer exists, or can no longer be read.
    #[serde(rename = "gone")]
    Missing,
    /// It cannot be sent to this target at all.
    Unfit,
    /// Another job has sent it, or a person has dismissed it, since this job began.
    Closed,
}

impl ReplayState {
    /// Whether a resume does not touch it again.
    fn is_final(self) -> bool {
        match self {
            Self::Sent | Self::Skipped | Self::Missing | Self::Unfit | Self::Closed => true,
            Self::Intent | Self::Refused => false,
        }
    }
}

/// The state of a dead letter in a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The id of the dead letter.
    pub letter: Uuid,
    /// The id of its new delivery.
    pub delivery: Uuid,
    /// How far it is.
    pub state: ReplayState,
    /// When the state was entered, RFC 3339.
    pub at: String,
    /// Why it was not sent, or why that is uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The end of its delivery, if that is known. No chunk has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<KnownEnd>,
}

/// The known end of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownEnd {
    /// The kind of end.
    pub state: ReplayOutcome,
    /// When, RFC 3339.
    pub at: String,
}

impl From<&StoredReplayEnd> for KnownEnd {
    fn from(end: &StoredReplayEnd) -> Self {
        Self { state: end.state, at: end.at.clone() }
    }
}

impl LedgerEntry {
    /// True if it was sent, and its end can no longer be expected.
    #[must_use]
    pub fn is_end_unknown(&self, now_ms: u64) -> bool {
        self.state == ReplayState::Sent && self.is_overdue(now_ms)
    }

    /// Whether its delivery, if it was sent, would have ended by now.
    pub(crate) fn is_overdue(&self, now_ms: u64) -> bool {
        let sent_ms = moment::parse(&self.at);
        sent_ms.is_some_and(|sent_ms| now_ms.saturating_sub(sent_ms) > UNKNOWN_AFTER_MS)
    }
}

/// The id of the delivery that a job makes of a dead letter.
#[must_use]
pub fn delivery_id(job: &str, letter: Uuid) -> Uuid {
    // No job name contains a line end, so no two pairs give one text.
    Uuid::new_v5(&REPLAY_NAMESPACE, format!("{job}\n{letter}").as_bytes())
}

/// The entries of a chunk that is started or resumed: those with `intent` are to be sent now.
pub(crate) fn start_chunk(
    job: &str,
    planned: &[PlannedReplay],
    before: Option<&[LedgerEntry]>,
    closed: &HashSet<Uuid>,
    skip_uncertain: bool,
    now_ms: u64,
) -> Vec<LedgerEntry> {
    let at = moment::rfc3339(now_ms);
    let entry = |planned: &PlannedReplay| {
        let existing = before.into_iter().flatten().find(|entry| entry.letter == planned.letter);
        let new = |state| LedgerEntry {
            letter: planned.letter,
            delivery: delivery_id(job, planned.letter),
            state,
            at: at.clone(),
            problem: None,
            end: None,
        };
        match existing {
            Some(entry) if entry.state.is_final() => entry.clone(),
            // Its end says that it was sent.
            Some(entry) if entry.end.is_some() => {
                LedgerEntry { state: ReplayState::Sent, end: None, ..entry.clone() }
            }
            _ if closed.contains(&planned.letter) => new(ReplayState::Closed),
            Some(LedgerEntry { state: ReplayState::Intent, .. }) if skip_uncertain => {
                new(ReplayState::Skipped)
            }
            Some(_) | None => new(ReplayState::Intent),
        }
    };
    planned.iter().map(entry).collect()
}

/// How many dead letters of a job are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// [`ReplayState::Intent`].
    pub uncertain: u64,
    /// [`ReplayState::Sent`].
    pub sent: u64,
    /// [`ReplayState::Refused`].
    pub refused: u64,
    /// [`ReplayState::Skipped`].
    pub skipped: u64,
    /// [`ReplayState::Missing`].
    pub gone: u64,
    /// [`ReplayState::Unfit`].
    pub unfit: u64,
    /// [`ReplayState::Closed`].
    pub closed: u64,
}

impl ReplayCounts {
    /// Counts these entries.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = &'a LedgerEntry>) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            *match entry.state {
                ReplayState::Intent => &mut counts.uncertain,
                ReplayState::Sent => &mut counts.sent,
                ReplayState::Refused => &mut counts.refused,
                ReplayState::Skipped => &mut counts.skipped,
                ReplayState::Missing => &mut counts.gone,
                ReplayState::Unfit => &mut counts.unfit,
                ReplayState::Closed => &mut counts.closed,
            } += 1;
        }
        counts
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            uncertain: self.uncertain + other.uncertain,
            sent: self.sent + other.sent,
            refused: self.refused + other.refused,
            skipped: self.skipped + other.skipped,
            gone: self.gone + other.gone,
            unfit: self.unfit + other.unfit,
            closed: self.closed + other.closed,
        }
    }

    /// Dead letters that a resume does not touch again.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.sent + self.skipped + self.gone + self.unfit + self.closed
    }
}

/// The ends of the deliveries of a job, by the dead letter that was replayed.
pub type Ends = HashMap<Uuid, StoredReplayEnd>;

/// A delivery of which no end was reported may still be under way for this long: attempted within the 14 days
/// that every delivery has, its dead letter within the 14 days of its own delivery to a sink, refused by
/// storage for three days, and the report of its end for one.
pub const UNKNOWN_AFTER_MS: u64 = 2 * LIFETIME_MAX_MS + 4 * DAY_MS;

/// What is known of the end of a delivery that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayEndState {
    /// Its job records no ends.
    NotRecorded,
    /// It may still end.
    UnderWay,
    /// No end was reported, and none is to be expected: whether it was delivered is unknown.
    Unknown,
    /// It has ended.
    Ended(KnownEnd),
}

/// How many deliveries of a job ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// [`ReplayOutcome::Delivered`].
    pub delivered: u64,
    /// [`ReplayOutcome::DeadAgain`].
    pub dead_again: u64,
    /// [`ReplayOutcome::Dropped`].
    pub dropped: u64,
    /// Those that were sent and have not ended, as far as is known.
    pub under_way: u64,
    /// Those of which no end was reported within [`UNKNOWN_AFTER_MS`].
    pub unknown: u64,
}

impl EndCounts {
    /// Counts what became of the deliveries of these entries.
    #[must_use]
    pub fn of<'a>(
        entries: impl IntoIterator<Item = &'a LedgerEntry>,
        ends: &Ends,
        now_ms: u64,
    ) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            let end = ends.get(&entry.letter).map(|end| end.state);
            *match (end.or(entry.end.as_ref().map(|end| end.state)), entry.state) {
                (Some(ReplayOutcome::Delivered), _) => &mut counts.delivered,
                (Some(ReplayOutcome::DeadAgain), _) => &mut counts.dead_again,
                (Some(ReplayOutcome::Dropped), _) => &mut counts.dropped,
                (None, ReplayState::Sent) if entry.is_overdue(now_ms) => &mut counts.unknown,
                (None, ReplayState::Sent) => &mut counts.under_way,
                (
                    None,
                    ReplayState::Intent
                    | ReplayState::Refused
                    | ReplayState::Skipped
                    | ReplayState::Missing
                    | ReplayState::Unfit
                    | ReplayState::Closed,
                ) => continue,
            } += 1;
        }
        counts
    }

    /// How many have ended.
    #[must_use]
    pub fn ended(self) -> u64 {
        self.delivered + self.dead_again + self.dropped
    }
}

/// A job, summed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// What the job is.
    pub header: JobHeader,
    /// How far it is.
    pub counts: ReplayCounts,
    /// What became of its deliveries; nothing where that is not recorded.
    pub ends: EndCounts,
}

impl JobSummary {
    /// Whether every dead letter is finished.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.counts.finished() == self.header.letters as u64
    }
}

/// A dead letter that was replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRecord {
    /// The job that replayed it.
    pub job: String,
    /// Its entry in the ledger of that job.
    pub entry: LedgerEntry,
    /// The source that tells the end of its delivery.
    pub ending: Ending,
}

/// The source that tells the ends of the deliveries of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// They are recorded beside the ledger.
    Recorded,
    /// Each ends when its topic or URL accepts it.
    Accepted,
    /// Nothing.
    Untold,
}

impl Ending {
    /// Reads it from the header of a job.
    #[must_use]
    pub(crate) fn of(header: &JobHeader) -> Self {
        match header.to == SUBSCRIPTION {
            _ if header.results => Self::Recorded,
            true => Self::Untold,
            false => Self::Accepted,
        }
    }
}

impl ReplayRecord {
    /// Whether it is unknown if the dead letter was sent, because the job was interrupted.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.entry.state == ReplayState::Intent
    }

    /// Tells as much of the end of its delivery as is known.
    #[must_use]
    pub(crate) fn end_state(&self, now_ms: u64) -> ReplayEndState {
        match (&self.entry.end, self.ending) {
            (Some(end), _) => ReplayEndState::Ended(end.clone()),
            (None, Ending::Recorded) if !self.is_uncertain() => {
                if self.entry.is_overdue(now_ms) {
                    ReplayEndState::Unknown
                } else {
                    ReplayEndState::UnderWay
                }
            }
            (None, _) => ReplayEndState::NotRecorded,
        }
    }
}

/// Keeps the entry that counts for a dead letter: one that was delivered, else the newest that was or may have been sent.
pub(crate) fn keep_latest(known: &mut HashMap<Uuid, ReplayRecord>, record: ReplayRecord) {
    let was_sent = matches!(record.entry.state, ReplayState::Sent | ReplayState::Intent);
    if !was_sent && record.entry.end.is_none() {
        return;
    }
    let is_delivered = |end: &KnownEnd| end.state == ReplayOutcome::Delivered;
    // Times in UTC with equally many digits sort as text.
    let rank = |of: &ReplayRecord| {
        (of.entry.end.as_ref().is_some_and(is_delivered), of.entry.at.clone(), !of.is_uncertain())
    };
    match known.get(&record.entry.letter) {
        Some(other) if rank(other) >= rank(&record) => {}
        Some(_) | None => _ = known.insert(record.entry.letter, record),
    }
}

/// The text of a plan.
pub(crate) fn write_plan(header: &JobHeader, plan: &[PlannedReplay]) -> Vec<u8> {
    let mut text = json_line(header);
    plan.iter().for_each(|planned| text.push_str(&json_line(planned)));
    text.into_bytes()
}

/// Reads a plan.
///
/// # Errors
/// When it is not a plan of this version, or not all of it is there.
pub(crate) fn read_plan(bytes: &[u8]) -> Result<(JobHeader, Vec<PlannedReplay>), String> {
    read_with_header(bytes)
}

/// The text of a job that is done.
pub(crate) fn write_done(header: &JobHeader, entries: &[LedgerEntry]) -> Vec<u8> {
    [json_line(header).into_bytes(), write_entries(entries)].concat()
}

/// Reads a job that is done.
///
/// # Errors
/// When it is not of this version, or not all of it is there.
pub(crate) fn read_done(bytes: &[u8]) -> Result<(JobHeader, Vec<LedgerEntry>), String> {
    read_with_header(bytes)
}

/// Reads a header, and a line for each of its dead letters.
fn read_with_header<T: DeserializeOwned>(bytes: &[u8]) -> Result<(JobHeader, Vec<T>), String> {
    let mut lines = std::str::from_utf8(bytes).map_err(|error| error.to_string())?.lines();
    let header = lines.next().unwrap_or_default();
    // The version first: a newer header may have other members.
    let Versioned { v } = serde_json::from_str(header).map_err(|error| error.to_string())?;
    if v != VERSION {
        return Err(format!("it has version {v}, and this program reads version {VERSION} only"));
    }
    let header: JobHeader = serde_json::from_str(header).map_err(|error| error.to_string())?;
    let letters = lines
        .map(serde_json::from_str)
        .collect::<Result<Vec<T>, _>>()
        .map_err(|error| error.to_string())?;
    if letters.len() != header.letters {
        return Err(format!("it has {} dead letters instead of {}", letters.len(), header.letters));
    }
    Ok((header, letters))
}

/// The text of a chunk.
pub(crate) fn write_entries<'a>(entries: impl IntoIterator<Item = &'a LedgerEntry>) -> Vec<u8> {
    entries.into_iter().map(json_line).collect::<String>().into_bytes()
}

/// Reads a chunk.
///
/// # Errors
/// When a line is not an entry.
pub(crate) fn read_entries(bytes: &[u8]) -> Result<Vec<LedgerEntry>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    text.lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn json_line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain structs with string keys serialize");
    format!("{text}\n")
}

/// The chunks with uncertain dead letters, and how many of each.
pub(crate) fn uncertain_chunks(chunks: &BTreeMap<u32, Vec<LedgerEntry>>) -> Vec<(u32, u64)> {
    let counted =
        chunks.iter().map(|(number, entries)| (*number, ReplayCounts::of(entries).uncertain));
    counted.filter(|(_, uncertain)| *uncertain > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(number: u128) -> PlannedReplay {
        PlannedReplay {
            letter: Uuid::from_u128(number),
            key: format!("a/b/c/2026/1/2/3/{number}.json"),
        }
    }

    fn entry(number: u128, state: ReplayState) -> LedgerEntry {
        let letter = Uuid::from_u128(number);
        LedgerEntry {
            letter,
            delivery: delivery_id("j", letter),
            state,
            at: moment::rfc3339(7),
            problem: None,
            end: None,
        }
    }

    fn record(job: &str, entry: LedgerEntry) -> ReplayRecord {
        ReplayRecord { job: job.to_owned(), entry, ending: Ending::Recorded }
    }

    #[test]
    fn a_plan_and_its_chunks_are_read_back_and_a_cut_plan_is_refused() {
        let plan = [planned(1), planned(2)];
        let header = JobHeader {
            v: VERSION,
            job: "j".to_owned(),
            at: moment::rfc3339(7),
            to: "subscription".to_owned(),
            queue: None,
            letters: 2,
            results: false,
            rate: "5/m".parse().ok(),
            by: Some("ada".to_owned()),
            note: None,
        };
        let text = write_plan(&header, &plan);
        assert_eq!(read_plan(&text), Ok((header, plan.to_vec())));
        let cut = &text[..text.len() - plan[1].key.len() - 70];
        assert!(read_plan(cut).is_err());
        let newer = read_plan(b"{\"v\":2,\"name\":\"j\"}\n").unwrap_err();
        assert_eq!(newer, "it has version 2, and this program reads version 1 only");
        let entries = [
            entry(1, ReplayState::Intent),
            LedgerEntry { problem: Some("no".to_owned()), ..entry(2, ReplayState::Refused) },
        ];
        assert_eq!(read_entries(&write_entries(&entries)), Ok(entries.to_vec()));
        let end = KnownEnd { state: ReplayOutcome::DeadAgain, at: moment::rfc3339(9) };
        let ended = entries.map(|entry| LedgerEntry { end: Some(end.clone()), ..entry });
        let header = read_plan(&text).unwrap().0;
        assert_eq!(read_done(&write_done(&header, &ended)), Ok((header, ended.to_vec())));
    }

    #[test]
    fn finished_entries_are_kept_and_uncertain_ones_are_sent_again_unless_skipped() {
        let plan: Vec<PlannedReplay> = (1..=7).map(planned).collect();
        let states = [
            ReplayState::Intent,
            ReplayState::Sent,
            ReplayState::Refused,
            ReplayState::Skipped,
            ReplayState::Missing,
            ReplayState::Unfit,
        ];
        let before: Vec<LedgerEntry> =
            (1..).zip(states).map(|(number, state)| entry(number, state)).collect();
        let states = |skip| {
            start_chunk("j", &plan, Some(&before), &HashSet::new(), skip, 9)
                .iter()
                .map(|entry| entry.state)
                .collect::<Vec<_>>()
        };
        use ReplayState::{Intent, Missing, Sent, Skipped, Unfit};
        assert_eq!(states(false), [Intent, Sent, Intent, Skipped, Missing, Unfit, Intent]);
        assert_eq!(states(true), [Skipped, Sent, Intent, Skipped, Missing, Unfit, Intent]);
        let none = HashSet::new();
        let new = start_chunk("j", &plan, None, &none, true, 9);
        assert!(new.iter().all(|entry| entry.state == Intent));
        // No dead letter is sent that others have closed; entries that are sent stay so.
        let closed = HashSet::from([1, 2, 7].map(Uuid::from_u128));
        let states: Vec<_> = start_chunk("j", &plan, Some(&before), &closed, false, 9)
            .iter()
            .map(|entry| entry.state)
            .collect();
        use ReplayState::Closed;
        assert_eq!(states, [Closed, Sent, Intent, Skipped, Missing, Unfit, Closed]);
        // An end says that an uncertain one was sent; the chunk does not repeat it.
        let end = Some(KnownEnd { state: ReplayOutcome::Delivered, at: moment::rfc3339(8) });
        let ended = [LedgerEntry { end, ..entry(1, ReplayState::Intent) }];
        for skip in [false, true] {
            let started = start_chunk("j", &plan[..1], Some(&ended), &closed, skip, 9);
            assert_eq!(started, [entry(1, ReplayState::Sent)], "{skip}");
        }
    }

    #[test]
    fn the_id_of_a_delivery_is_a_function_of_job_and_dead_letter() {
        let letter = Uuid::from_u128(1);
        assert_eq!(delivery_id("j", letter), delivery_id("j", letter));
        assert_eq!(delivery_id("j", letter).get_version_num(), 5);
        assert_ne!(delivery_id("j", letter), delivery_id("k", letter));
        assert_ne!(delivery_id("j", letter), letter);
    }

    #[test]
    fn an_end_that_was_not_reported_in_the_longest_life_of_a_delivery_is_unknown_and_not_under_way()
    {
        let end = KnownEnd { state: ReplayOutcome::Delivered, at: moment::rfc3339(7) };
        let ended = LedgerEntry { end: Some(end.clone()), ..entry(2, ReplayState::Sent) };
        let entries = [entry(1, ReplayState::Sent), ended, entry(3, ReplayState::Refused)];
        let state = |at: usize, now_ms| record("j", entries[at].clone()).end_state(now_ms);
        let at = |now_ms| {
            let EndCounts { delivered, under_way, unknown, .. } =
                EndCounts::of(&entries, &Ends::new(), now_ms);
            ((delivered, under_way, unknown), state(0, now_ms))
        };
        // The entries were sent in millisecond 7.
        assert_eq!(at(7 + UNKNOWN_AFTER_MS), ((1, 1, 0), ReplayEndState::UnderWay));
        assert_eq!(at(8 + UNKNOWN_AFTER_MS), ((1, 0, 1), ReplayEndState::Unknown));
        // One that comes later still counts.
        assert_eq!(state(1, u64::MAX), ReplayEndState::Ended(end));
    }

    #[test]
    fn of_entries_of_one_time_the_sent_one_counts_and_a_delivered_one_always() {
        let mut known = HashMap::new();
        for (job, state) in [
            ("a", ReplayState::Intent),
            ("b", ReplayState::Sent),
            ("c", ReplayState::Intent),
            ("d", ReplayState::Refused),
        ] {
            keep_latest(&mut known, record(job, entry(1, state)));
        }
        assert_eq!(known[&Uuid::from_u128(1)].job, "b");
        let later =
            |end| LedgerEntry { at: moment::rfc3339(8), end, ..entry(1, ReplayState::Intent) };
        keep_latest(&mut known, record("e", later(None)));
        assert_eq!(known[&Uuid::from_u128(1)].job, "e");
        let state = ReplayOutcome::Delivered;
        let end = Some(KnownEnd { state, at: moment::rfc3339(7) });
        keep_latest(&mut known, record("f", LedgerEntry { end, ..entry(1, ReplayState::Skipped) }));
        assert_eq!(known[&Uuid::from_u128(1)].job, "f");
        keep_latest(&mut known, record("g", later(None)));
        assert_eq!(known[&Uuid::from_u128(1)].job, "f");
        assert_eq!(
            uncertain_chunks(&BTreeMap::from([
                (1, vec![entry(1, ReplayState::Sent)]),
                (2, vec![entry(2, ReplayState::Intent)])
            ])),
            [(2, 1)]
        );
    }
}
