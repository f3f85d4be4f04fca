//! What became of the deliveries of a job: an object for each that has ended, in `ends/` of its ledger.
//!
//! The functions write them; here they are found and counted. Separate from the ledger, which says what was
//! sent: an end that is missing means that the delivery is still under way or, after [`UNKNOWN_AFTER_MS`], that
//! nobody knows how it ended. The function was killed between the two, or the queue refused the report.
//!
//! The name of an object says how the delivery ended, so a listing tells the states of a thousand dead letters.

use adapters::machine::Machine;
use adapters::storage::ListRequest;
use delivery::delivery::replay::{
    ENDS_FOLDER, Replay, ReplayOutcome, StoredReplayEnd, read_end_file,
};
use delivery::ports::Clock as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::key::LEDGER_FOLDER;
use crate::ledger::{JobHeader, ReplayCounts, ReplayRecord};

pub use crate::ledger::{EndCounts, Ends, ReplayEndState, UNKNOWN_AFTER_MS};

impl DeadLetters {
    /// How the deliveries of a job have ended so far: a listing, and no object is read.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn ends(&self, job: &str) -> anyhow::Result<Ends> {
        let prefix = format!("{}{LEDGER_FOLDER}/{job}/{ENDS_FOLDER}/", self.container.root());
        let request = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let mut ends = Ends::new();
        for entry in &page.entries {
            let Some((letter, outcome)) = entry.key.strip_prefix(&prefix).and_then(read_end_file)
            else {
                continue;
            };
            // A delivery that was duplicated may have ended twice: it was delivered if one of them was.
            let known = ends.entry(letter).or_insert(outcome);
            *known = outcome.min(*known);
        }
        Ok(ends)
    }

    /// The same of a job with these counts; none where they are not recorded, or cannot be told from those of what
    /// was skipped.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn told_ends(
        &self,
        header: &JobHeader,
        counts: &ReplayCounts,
    ) -> anyhow::Result<Ends> {
        match header.has_results(counts) {
            true => self.ends(&header.job).await,
            false => Ok(Ends::new()),
        }
    }

    /// These ends of a job as they are stored, oldest first.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub async fn stored_ends(
        &self,
        job: &str,
        ends: impl IntoIterator<Item = (Uuid, ReplayOutcome)>,
    ) -> anyhow::Result<Vec<StoredReplayEnd>> {
        let reads = ends.into_iter().map(|(letter, outcome)| self.stored_end(job, letter, outcome));
        let reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(READS_AT_ONCE);
        let read: Vec<Option<StoredReplayEnd>> = reads.try_collect().await?;
        let mut ends: Vec<StoredReplayEnd> = read.into_iter().flatten().collect();
        ends.sort_by(|a, b| (&a.at, a.letter).cmp(&(&b.at, b.letter)));
        Ok(ends)
    }

    /// What became of the delivery that a job made of a dead letter.
    ///
    /// # Errors
    /// When the end cannot be read.
    pub async fn end_state(&self, record: &ReplayRecord) -> anyhow::Result<ReplayEndState> {
        let end = match record.entry.end {
            Some(outcome) => self.stored_end(&record.job, record.entry.letter, outcome).await?,
            None => None,
        };
        Ok(record.end_state(end, Machine.now_ms()))
    }

    /// The end of one dead letter's replay by a job, if there is one that can be read.
    async fn stored_end(
        &self,
        job: &str,
        letter: Uuid,
        outcome: ReplayOutcome,
    ) -> anyhow::Result<Option<StoredReplayEnd>> {
        let Some(replay) = Replay::new(job, letter) else { return Ok(None) };
        let key = replay.end_key(&self.container.prefix, outcome);
        let bytes = self.container.get(&key).await?;
        let end = bytes.and_then(|bytes| StoredReplayEnd::read(&bytes).ok());
        Ok(end.filter(|end| end.letter == letter && end.state == outcome))
    }
}
