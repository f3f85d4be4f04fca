//! What became of the deliveries of a job: an object for each that has ended, in `ends/` of its ledger.
//!
//! The functions write them; here they are found and counted. Separate from the ledger, which says what was
//! sent: an end that is missing means that the delivery is still under way or, after [`UNKNOWN_AFTER_MS`], that
//! nobody knows how it ended. The function was killed between the two, or the queue refused the report.
//!
//! Once everything has ended, all ends are also in one object, `ends.ndjson`: a look at a job that is over costs
//! one request.

use adapters::machine::Machine;
use adapters::storage::{Entry, ListRequest};
use delivery::delivery::replay::{ENDS_FOLDER, Replay, StoredReplayEnd};
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::key::LEDGER_FOLDER;
use crate::ledger::{JobHeader, ReplayCounts, ReplayRecord, ReplayState};
use crate::replay::ledger_files::UnreadableLedger;

pub use crate::ledger::{EndCounts, Ends, ReplayEndState, UNKNOWN_AFTER_MS};

/// The time between two looks for new ends.
pub const LOOK_EVERY_MS: u64 = SECOND_MS;

/// An end in a listing.
pub(super) struct ListedEnd {
    /// The dead letter that was replayed.
    pub(super) letter: Uuid,
    /// When the end was written.
    pub(super) modified_ms: u64,
}

impl DeadLetters {
    /// The ends of a job so far; none where they are not recorded.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn ends(&self, header: &JobHeader, counts: &ReplayCounts) -> anyhow::Result<Ends> {
        let mut ends = Ends::new();
        if !header.has_results(counts) {
            return Ok(ends);
        }
        let summary = self.ledger_key(&header.job, ENDS_FOLDER);
        if let Some(bytes) = self.container.get(&summary).await? {
            let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let read = lines.filter_map(|line| StoredReplayEnd::read(line).ok());
            ends.extend(read.map(|end| (end.letter, end)));
        }
        let are_all = |ends: &Ends| ends.len() as u64 >= counts.sent && !ends.is_empty();
        if are_all(&ends) {
            return Ok(ends);
        }
        self.read_new_ends(&header.job, &mut ends).await?;
        let is_over = counts.finished() == header.letters as u64 && counts.uncertain == 0;
        if is_over && are_all(&ends) {
            let lines: Vec<String> =
                ends.values().filter_map(|end| serde_json::to_string(end).ok()).collect();
            // Whoever may only read the container finds them one by one again.
            _ = self.container.put(&summary, format!("{}\n", lines.join("\n")).into_bytes()).await;
        }
        Ok(ends)
    }

    /// Adds the ends of a job that are not known yet.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn read_new_ends(&self, job: &str, ends: &mut Ends) -> anyhow::Result<()> {
        let listed = self.listed_ends(job).await?.into_iter().map(|end| end.letter);
        let new: Vec<Uuid> = listed.filter(|letter| !ends.contains_key(letter)).collect();
        let reads = new.into_iter().map(|letter| self.end_of(job, letter));
        let read: Vec<Option<StoredReplayEnd>> =
            stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        ends.extend(read.into_iter().flatten().map(|end| (end.letter, end)));
        Ok(())
    }

    /// The ends of a job; none is read.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub(super) async fn listed_ends(&self, job: &str) -> anyhow::Result<Vec<ListedEnd>> {
        let prefix = format!("{}{LEDGER_FOLDER}/{job}/{ENDS_FOLDER}/", self.container.root());
        let request = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let end = |entry: Entry| {
            let letter = entry.key.strip_prefix(&prefix)?.strip_suffix(".ndjson")?.parse().ok()?;
            Some(ListedEnd { letter, modified_ms: entry.modified_ms })
        };
        Ok(page.entries.into_iter().filter_map(end).collect())
    }

    /// What became of the delivery that a job made of a dead letter.
    ///
    /// # Errors
    /// When the ledger or the end cannot be read.
    pub async fn end_state(&self, record: &ReplayRecord) -> anyhow::Result<ReplayEndState> {
        let ReplayRecord { job, entry } = record;
        let end = self.end_of(job, entry.letter).await?;
        if end.is_none() && entry.state != ReplayState::Sent {
            return Ok(ReplayEndState::NotRecorded);
        }
        // Only then: a plan names every dead letter of its job.
        if end.is_none() && !self.records_ends(job).await? {
            return Ok(ReplayEndState::NotRecorded);
        }
        Ok(ReplayEndState::of(entry, end, Machine.now_ms()))
    }

    /// Whether a job records ends, as far as its plan can be read.
    async fn records_ends(&self, job: &str) -> anyhow::Result<bool> {
        match self.plan_of(job).await {
            Ok(plan) => Ok(plan.is_some_and(|(header, _)| header.results)),
            Err(error) => error.downcast::<UnreadableLedger>().map(|_| false),
        }
    }

    /// The end of one dead letter's replay by a job, if there is one that can be read.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn end_of(
        &self,
        job: &str,
        letter: Uuid,
    ) -> anyhow::Result<Option<StoredReplayEnd>> {
        let Some(replay) = Replay::new(job, letter) else { return Ok(None) };
        let bytes = self.container.get(&replay.end_key(&self.container.prefix)).await?;
        let end = bytes.and_then(|bytes| StoredReplayEnd::read(&bytes).ok());
        Ok(end.filter(|end| end.letter == letter))
    }
}
