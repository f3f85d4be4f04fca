//! Stores and finds the ledgers of all jobs. Each job has a folder with its plan, its chunks, and
//! finally `done.ndjson`.
//!
//! This module is separate from [`crate::ledger`], which defines the content of the files.
//!
//! An unreadable ledger (of a newer version, or modified by a person) does not hide others; results
//! list it separately. Its job may have sent dead letters that still count as open, so callers must
//! warn before sending them again.

use std::collections::{BTreeMap, HashMap, HashSet};

use adapters::machine::Machine;
use adapters::storage::{Fetched, ListRequest};
use delivery::ports::Clock as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::container::LEDGER_MAX_BYTES;
use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::key::LEDGER_FOLDER;
use crate::ledger::{
    CHUNK, EndCounts, Ending, JobHeader, JobSummary, KnownEnd, LedgerEntry, PlannedReplay,
    ReplayCounts, ReplayEnds, ReplayRecord, ReplayState, is_job_name, keep_latest, read_done,
    read_entries, read_plan, write_done,
};
use crate::recorded::recorded_ms;

pub use crate::replayed::{Replayed, UnreadableLedger};

const JOBS_AT_ONCE: usize = 8;

/// The content of `done.ndjson`.
type DoneLedger = (JobHeader, Vec<LedgerEntry>);

/// The content of a job's ledger, from `done.ndjson` or from the plan and the chunks.
struct JobLedger {
    header: JobHeader,
    entries: Vec<LedgerEntry>,
    /// The ids of the dead letters in the plan; empty if the job is done.
    planned: Vec<Uuid>,
}

impl JobLedger {
    fn records(self) -> impl Iterator<Item = ReplayRecord> {
        let Self { header, entries, .. } = self;
        let ending = Ending::from_header(&header);
        entries.into_iter().map(move |entry| ReplayRecord {
            job: header.job.clone(),
            entry,
            ending,
        })
    }

    fn summary(self) -> JobSummary {
        let counts = ReplayCounts::count(&self.entries);
        let ends = EndCounts::count(&self.entries, &ReplayEnds::new(), Machine.now_ms());
        JobSummary { header: self.header, counts, ends }
    }
}

/// Returns the content of a file, or an error if the file belongs to another job.
fn of_job<T>(job: &str, read: (JobHeader, Vec<T>)) -> Result<(JobHeader, Vec<T>), String> {
    match read.0.job == job {
        true => Ok(read),
        false => Err("the file belongs to another job".to_owned()),
    }
}

/// All replay jobs of a container.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// The jobs with a readable ledger, oldest first.
    pub summaries: Vec<JobSummary>,
    /// The ledgers that cannot be read.
    pub unreadable: Vec<UnreadableLedger>,
}

impl DeadLetters {
    /// Returns the newest replay of each of these dead letters, or of all dead letters if `ids` is
    /// `None`. For unfinished jobs, reads only the chunks that contain one of the dead letters.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn replayed(&self, ids: Option<&[Uuid]>) -> anyhow::Result<Replayed> {
        let (mut records, mut planned) = (HashMap::new(), HashMap::new());
        let unreadable = self
            .each_ledger(ids, |ledger| {
                let of_job = |letter: &Uuid| (*letter, ledger.header.job.clone());
                planned.extend(ledger.planned.iter().map(of_job));
                ledger.records().for_each(|record| keep_latest(&mut records, record));
            })
            .await?;
        Ok(Replayed { records, planned, unreadable })
    }

    /// Returns every replay of these dead letters, the oldest job first. Also returns the
    /// unreadable ledgers, which may contain more.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn replays(
        &self,
        ids: &[Uuid],
    ) -> anyhow::Result<(Vec<ReplayRecord>, Vec<UnreadableLedger>)> {
        let mut records = Vec::new();
        let unreadable = self
            .each_ledger(Some(ids), |ledger| {
                let mut of_job = HashMap::new();
                ledger.records().for_each(|record| keep_latest(&mut of_job, record));
                records.extend(of_job.into_values());
            })
            .await?;
        records.sort_by(|a, b| (&a.job, a.entry.letter).cmp(&(&b.job, b.entry.letter)));
        Ok((records, unreadable))
    }

    /// Returns every replay job of the container.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn jobs(&self) -> anyhow::Result<Jobs> {
        let mut summaries = Vec::new();
        let unreadable = self.each_ledger(None, |ledger| summaries.push(ledger.summary())).await?;
        summaries.sort_by_key(|job| recorded_ms(&job.header.at));
        Ok(Jobs { summaries, unreadable })
    }

    /// Calls `visit` with the ledger of each job. A ledger contains only the entries of the dead
    /// letters in `ids`, or all entries if `ids` is `None`. Returns the unreadable ledgers. See
    /// [`Self::ledger_of`].
    async fn each_ledger(
        &self,
        ids: Option<&[Uuid]>,
        mut visit: impl FnMut(JobLedger),
    ) -> anyhow::Result<Vec<UnreadableLedger>> {
        let mut unreadable = Vec::new();
        if ids.is_some_and(<[Uuid]>::is_empty) {
            return Ok(unreadable);
        }
        let wanted: Option<HashSet<Uuid>> = ids.map(|ids| ids.iter().copied().collect());
        let is_wanted =
            |letter: &Uuid| wanted.as_ref().is_none_or(|wanted| wanted.contains(letter));
        let names = self.job_names().await?;
        let reads = names.iter().map(|job| self.ledger_of(job, is_wanted));
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffered(JOBS_AT_ONCE);
        while let Some(ledger) = reads.next().await {
            match ledger {
                Ok(Some(mut ledger)) => {
                    ledger.entries.retain(|entry| is_wanted(&entry.letter));
                    visit(ledger);
                }
                Ok(None) => {}
                Err(error) => unreadable.push(error.downcast()?),
            }
        }
        Ok(unreadable)
    }

    /// Returns the ledger of a job with the results so far. For an unfinished job, the ledger
    /// contains only the chunks with a wanted dead letter. Returns `None` if the job has no plan.
    async fn ledger_of(
        &self,
        job: &str,
        is_wanted: impl Fn(&Uuid) -> bool,
    ) -> anyhow::Result<Option<JobLedger>> {
        if let Some((header, entries)) = self.done_of(job).await? {
            let ledger = JobLedger { header, entries, planned: Vec::new() };
            return self.with_ends(ledger, true).await.map(Some);
        }
        let Some((header, plan)) = self.plan_of(job).await? else { return Ok(None) };
        let chunks = (1..).zip(plan.chunks(CHUNK));
        let with_wanted =
            chunks.filter(|(_, chunk)| chunk.iter().any(|planned| is_wanted(&planned.letter())));
        let numbers = with_wanted.map(|(number, _)| number).collect();
        let chunks = self.read_chunks(job, Some(numbers)).await?;
        let entries = chunks.into_values().flatten().collect();
        let planned = plan.iter().map(PlannedReplay::letter).collect();
        self.with_ends(JobLedger { header, entries, planned }, false).await.map(Some)
    }

    /// Returns the content of `done.ndjson` of a finished job. If the cached copy is unchanged,
    /// storage does not send the content again.
    ///
    /// # Errors
    /// [`UnreadableLedger`] if the file is unreadable. Also fails if the container cannot be read.
    async fn done_of(&self, job: &str) -> anyhow::Result<Option<DoneLedger>> {
        let (key, cache) = (self.ledger_key(job, "done"), self.cache.as_ref());
        let known = cache.and_then(|cache| {
            let etag = cache.etag(&key)?;
            Some((cache.get(&key, &etag)?, etag))
        });
        let known_etag = known.as_ref().map(|(_, etag)| etag.as_str());
        let fetched = self.container.fetch_at_most(LEDGER_MAX_BYTES, &key, known_etag).await?;
        let unreadable = |problem| self.unreadable_file(job, "done", problem);
        match fetched.map_err(|too_large| unreadable(too_large.to_string()))? {
            Fetched::Missing => Ok(None),
            Fetched::Unchanged => Ok(known.map(|(done, _)| done)),
            Fetched::Changed { bytes, etag, .. } => {
                let done = read_done(&bytes).and_then(|done| of_job(job, done));
                let done = done.map_err(unreadable)?;
                if let Some(cache) = cache {
                    cache.put(&key, &etag, &done);
                }
                Ok(Some(done))
            }
        }
    }

    /// Adds the recorded results to a ledger. If the job is done and all results are known, writes
    /// them into `done.ndjson`, so that the next command needs one request only.
    async fn with_ends(&self, ledger: JobLedger, is_done: bool) -> anyhow::Result<JobLedger> {
        let JobLedger { header, mut entries, planned } = ledger;
        let now_ms = Machine.now_ms();
        let may_end = |entry: &LedgerEntry| match entry.state {
            ReplayState::Sent | ReplayState::Intent | ReplayState::Skipped => {
                !entry.is_overdue(now_ms)
            }
            ReplayState::Refused
            | ReplayState::Missing
            | ReplayState::Unfit
            | ReplayState::Closed => false,
        };
        let is_under_way = |entry: &LedgerEntry| entry.end.is_none() && may_end(entry);
        if header.results && entries.iter().any(is_under_way) {
            let ends = self.ends(&header.job).await?;
            for entry in entries.iter_mut().filter(|entry| entry.end.is_none()) {
                entry.end = ends.get(&entry.letter).map(KnownEnd::from);
            }
            if is_done && !entries.iter().any(is_under_way) {
                let key = self.ledger_key(&header.job, "done");
                // A caller with read-only permissions cannot write this file, and lists the results
                // again next time.
                _ = self.container.put(&key, write_done(&header, &entries)).await;
            }
        }
        Ok(JobLedger { header, entries, planned })
    }

    /// Returns the names of all jobs.
    pub(super) async fn job_names(&self) -> anyhow::Result<Vec<String>> {
        let prefix = self.ledgers();
        let request =
            ListRequest { prefix: prefix.clone(), by_folder: true, ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let name = |folder: &String| Some(folder.strip_prefix(&prefix)?.strip_suffix('/')?.into());
        let names = page.folders.iter().filter_map(name);
        // Job names become parts of keys and links, so skip names that lastmile cannot have
        // created.
        Ok(names.filter(|name: &String| is_job_name(name)).collect())
    }

    /// Returns the plan of a job; `None` if the job does not exist.
    ///
    /// # Errors
    /// [`UnreadableLedger`] if the plan is unreadable. Also fails if the container cannot be read.
    pub(super) async fn plan_of(
        &self,
        job: &str,
    ) -> anyhow::Result<Option<(JobHeader, Vec<PlannedReplay>)>> {
        self.ledger_file(job, "plan", |bytes| of_job(job, read_plan(bytes)?)).await
    }

    /// Returns the chunks with these numbers, or all chunks.
    pub(super) async fn read_chunks(
        &self,
        job: &str,
        numbers: Option<HashSet<u32>>,
    ) -> anyhow::Result<BTreeMap<u32, Vec<LedgerEntry>>> {
        let numbers: Vec<u32> = match numbers {
            Some(numbers) => numbers.into_iter().collect(),
            None => {
                let prefix = format!("{}{job}/", self.ledgers());
                // List by folder: the subfolder `ends/` may contain many objects.
                let prefix_only = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
                let request = ListRequest { by_folder: true, ..prefix_only };
                let page = self.container.pages(request).await?;
                // The names of the plan and of `done.ndjson` are not numbers.
                let number =
                    |key: &str| key.strip_prefix(&prefix)?.strip_suffix(".ndjson")?.parse().ok();
                page.entries.iter().filter_map(|blob| number(&blob.key)).collect()
            }
        };
        let reads = numbers.into_iter().map(|number| async move {
            let entries = self.ledger_file(job, &number.to_string(), read_entries).await?;
            anyhow::Ok(entries.map(|entries| (number, entries)))
        });
        // The reads may finish in any order, because the map sorts the chunks by number.
        let chunks: Vec<_> =
            stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// Returns the content of a ledger file; `None` if the file does not exist.
    async fn ledger_file<T>(
        &self,
        job: &str,
        file: &str,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> anyhow::Result<Option<T>> {
        let bytes =
            self.container.get_at_most(LEDGER_MAX_BYTES, &self.ledger_key(job, file)).await?;
        let unreadable = |problem| self.unreadable_file(job, file, problem);
        let bytes = bytes.map_err(|too_large| unreadable(too_large.to_string()))?;
        Ok(bytes.map(|bytes| read(&bytes).map_err(unreadable)).transpose()?)
    }

    fn unreadable_file(&self, job: &str, file: &str, problem: String) -> UnreadableLedger {
        let (folder, file) = (format!("{}{job}", self.ledgers()), format!("{file}.ndjson"));
        UnreadableLedger { job: job.to_owned(), folder, file, problem }
    }

    /// Returns the key of a ledger file. `file` is `plan`, `done`, or the number of a chunk.
    pub(super) fn ledger_key(&self, job: &str, file: &str) -> String {
        format!("{}{job}/{file}.ndjson", self.ledgers())
    }

    fn ledgers(&self) -> String {
        format!("{}{LEDGER_FOLDER}/", self.container.root())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::container::DeadLetterContainer;
    use crate::ledger::write_entries;
    use crate::samples::entry;

    #[tokio::test]
    async fn the_ledger_of_a_job_that_is_over_is_sent_again_only_if_it_has_changed() {
        let (folder, caches) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join("_replays/j/done.ndjson");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let header =
            r#"{"v":1,"job":"j","at":"2026-11-20T07:00:00Z","to":"topic a/b","letters":1}"#;
        let text = format!("{header}\n").into_bytes();
        let done = [text, write_entries([&entry(1, ReplayState::Sent)])].concat();
        std::fs::write(&path, &done).unwrap();
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        let replayed = || async {
            let container = DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap();
            let letters = DeadLetters::new(container).with_cache_in(caches.path());
            letters.replayed(None).await.unwrap()
        };
        let first = replayed().await;
        assert!(first.get(&Uuid::from_u128(1)).is_some());
        // The file is now invalid, but its ETag is unchanged.
        std::fs::write(&path, vec![b' '; done.len()]).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        let again = replayed().await;
        assert_eq!((&again.records, again.unreadable.len()), (&first.records, 0));
        std::fs::write(&path, "{}").unwrap();
        let changed = replayed().await;
        assert_eq!((changed.records.len(), changed.unreadable.len()), (0, 1));
    }
}
