//! Reads and counts the results of a job's deliveries. Each result is a line in an object in the
//! folder `ends/` of the job's ledger.
//!
//! The functions write the results. Separate from the ledger, which records sending. A missing
//! result means that the delivery is still in progress. After [`UNKNOWN_AFTER_MS`] the result is
//! unknown: the function was killed before the report, or the queue refused the report.

use std::collections::HashSet;

use adapters::machine::Machine;
use adapters::storage::ListRequest;
use delivery::delivery::replay::{StoredReplayEnd, ends_folder, read_ends};
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::container::BLOB_MAX_BYTES;
use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::ledger::{JobHeader, ReplayCounts, ReplayRecord};

pub use crate::ledger::{EndCounts, ReplayEndState, ReplayEnds, UNKNOWN_AFTER_MS};

/// Interval between two checks for new results.
pub const LOOK_EVERY_MS: u64 = SECOND_MS;

/// A listed object that contains results of deliveries.
pub(super) struct ListedEnds {
    pub(super) key: String,
    /// Time at which the object was written.
    pub(super) modified_ms: u64,
}

impl DeadLetters {
    /// Returns the results so far of the deliveries of a job.
    ///
    /// # Errors
    /// Fails if the results cannot be read.
    pub async fn ends(&self, job: &str) -> anyhow::Result<ReplayEnds> {
        self.read_ends(&self.end_keys(job).await?).await
    }

    /// Reads the objects with results whose keys are not in `seen`. Adds the results to `ends`, and
    /// the keys to `seen`.
    ///
    /// # Errors
    /// Fails if the results cannot be read.
    pub async fn read_new_ends(
        &self,
        job: &str,
        ends: &mut ReplayEnds,
        seen: &mut HashSet<String>,
    ) -> anyhow::Result<()> {
        let mut keys = self.end_keys(job).await?;
        keys.retain(|key| !seen.contains(key));
        let new = self.read_ends(&keys).await?;
        new.into_values().for_each(|end| keep_best(ends, end));
        seen.extend(keys);
        Ok(())
    }

    /// Returns the results of a job. `counts` are the numbers of its dead letters by state. Returns
    /// no results if the job does not record them or has skipped dead letters (see
    /// [`JobHeader::has_results`]).
    ///
    /// # Errors
    /// Fails if the results cannot be read.
    pub async fn recorded_ends(
        &self,
        header: &JobHeader,
        counts: &ReplayCounts,
    ) -> anyhow::Result<ReplayEnds> {
        match header.has_results(counts) {
            true => self.ends(&header.job).await,
            false => Ok(ReplayEnds::new()),
        }
    }

    /// Returns the keys of the objects with the results of a job.
    ///
    /// # Errors
    /// Fails if the objects cannot be listed.
    pub async fn end_keys(&self, job: &str) -> anyhow::Result<Vec<String>> {
        Ok(self.listed_ends(job).await?.into_iter().map(|listed| listed.key).collect())
    }

    /// Lists the objects with the results of a job, without reading them.
    pub(super) async fn listed_ends(&self, job: &str) -> anyhow::Result<Vec<ListedEnds>> {
        let prefix = ends_folder(&self.container.prefix, job);
        let page = self.container.pages(ListRequest { prefix, ..ListRequest::default() }).await?;
        let listed = page.entries.into_iter();
        Ok(listed
            .map(|object| ListedEnds { key: object.key, modified_ms: object.modified_ms })
            .collect())
    }

    /// Returns the results in these objects, one for each dead letter.
    pub(super) async fn read_ends(&self, keys: &[String]) -> anyhow::Result<ReplayEnds> {
        let mut ends = ReplayEnds::new();
        let reads = keys.iter().map(|key| self.container.get_at_most(BLOB_MAX_BYTES, key));
        let mut objects = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(READS_AT_ONCE);
        while let Some(bytes) = objects.try_next().await? {
            // An object that is too large was not written by lastmile; ignore it.
            let bytes = bytes.ok().flatten();
            for end in bytes.as_deref().map(read_ends).unwrap_or_default() {
                keep_best(&mut ends, end);
            }
        }
        Ok(ends)
    }
}

/// Adds a result, unless a better one for the same dead letter is known. A duplicated delivery may
/// have two results, and counts as delivered if one of them is `delivered`.
fn keep_best(ends: &mut ReplayEnds, end: StoredReplayEnd) {
    match ends.get(&end.letter) {
        Some(known) if known.state <= end.state => {}
        Some(_) | None => _ = ends.insert(end.letter, end),
    }
}

impl ReplayRecord {
    /// Returns the known progress of the delivery at the current time.
    #[must_use]
    pub fn end_state_now(&self) -> ReplayEndState {
        self.end_state(Machine.now_ms())
    }
}

#[cfg(test)]
mod tests {
    use adapters::storage::PAGE_MAX;
    use delivery::delivery::replay::{Replay, ReplayEnd, ReplayOutcome, write_ends};
    use uuid::Uuid;

    use crate::container::DeadLetterContainer;
    use crate::dead_letters::DeadLetters;

    const PAGE: u128 = PAGE_MAX as u128;

    #[tokio::test]
    async fn the_results_of_a_job_are_all_read_though_a_listing_has_pages() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=PAGE {
            let (letter, delivery) = (Uuid::from_u128(number), Uuid::from_u128(number + PAGE * 2));
            let outcome = ReplayOutcome::Delivered;
            let replay = Replay::new("j", letter).unwrap();
            let end = ReplayEnd { replay, delivery, outcome, at_ms: 7, stored: None };
            let (key, bytes) = write_ends("", "j", &[end]);
            let path = folder.path().join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let container = DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap();
        let ends = DeadLetters::new(container).ends("j").await.unwrap();
        assert_eq!(ends.len() as u128, PAGE + 1);
    }
}
