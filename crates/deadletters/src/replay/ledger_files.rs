//! The ledgers of all jobs in storage: a folder each, with its plan, its chunks, and at the end
//! `done.ndjson`.
//!
//! [`ledger`] defines their content; here is where they are stored and how they are found.
//!
//! A ledger of a newer version, or one that somebody has changed, hides no other: it is named beside what the
//! others say. What its job has sent is unknown then, and whoever sends dead letters again has to look.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use adapters::machine::Machine;
use adapters::storage::ListRequest;
use delivery::ports::Clock as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::key::LEDGER_FOLDER;
use crate::ledger::{
    self, CHUNK, EndCounts, JobHeader, JobSummary, LedgerEntry, PlannedReplay, ReplayCounts,
    ReplayRecord, is_job_name, read_entries, read_plan,
};

/// A ledger that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLedger {
    /// The name of its job.
    pub job: String,
    /// The key of its folder, without a slash at its end.
    pub folder: String,
    /// Its file that cannot be read.
    file: String,
    /// What is wrong with that.
    problem: String,
}

impl fmt::Display for UnreadableLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} cannot be read: {}", self.folder, self.file, self.problem)
    }
}

impl std::error::Error for UnreadableLedger {}

/// Which dead letters were replayed, as far as the ledgers can be read.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// Each with the newest job that did.
    pub records: HashMap<Uuid, ReplayRecord>,
    /// Those that may know of more.
    pub unreadable: Vec<UnreadableLedger>,
}

impl Replayed {
    /// The newest job that replayed a dead letter, if one did.
    #[must_use]
    pub fn get(&self, letter: &Uuid) -> Option<&ReplayRecord> {
        self.records.get(letter)
    }
}

/// The replay jobs, as far as their ledgers can be read.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// Oldest first.
    pub summaries: Vec<JobSummary>,
    /// Those of other jobs.
    pub unreadable: Vec<UnreadableLedger>,
}

impl DeadLetters {
    /// Which of these dead letters were replayed, or which of all. Of a job that is not done only the chunks
    /// with one of them are read.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn replayed(&self, ids: Option<&[Uuid]>) -> anyhow::Result<Replayed> {
        let wanted: Option<HashSet<Uuid>> = ids.map(|ids| ids.iter().copied().collect());
        let is_wanted =
            |letter: &Uuid| wanted.as_ref().is_none_or(|wanted| wanted.contains(letter));
        let mut replayed = Replayed::default();
        if ids.is_some_and(<[Uuid]>::is_empty) {
            return Ok(replayed);
        }
        for job in self.job_names().await? {
            match self.entries_of(&job, &is_wanted).await {
                Ok(entries) => {
                    let wanted = entries.into_iter().filter(|entry| is_wanted(&entry.letter));
                    wanted
                        .for_each(|entry| ledger::keep_latest(&mut replayed.records, &job, entry));
                }
                Err(error) => replayed.unreadable.push(error.downcast()?),
            }
        }
        Ok(replayed)
    }

    /// Every replay of these dead letters, the oldest job first; beside them the ledgers that may know of more.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn replays(
        &self,
        ids: &[Uuid],
    ) -> anyhow::Result<(Vec<ReplayRecord>, Vec<UnreadableLedger>)> {
        let wanted: HashSet<Uuid> = ids.iter().copied().collect();
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        if wanted.is_empty() {
            return Ok((records, unreadable));
        }
        for job in self.job_names().await? {
            match self.entries_of(&job, |letter| wanted.contains(letter)).await {
                Ok(entries) => {
                    let mut of_job = HashMap::new();
                    let wanted = entries.into_iter().filter(|it| wanted.contains(&it.letter));
                    wanted.for_each(|entry| ledger::keep_latest(&mut of_job, &job, entry));
                    records.extend(of_job.into_values());
                }
                Err(error) => unreadable.push(error.downcast()?),
            }
        }
        records.sort_by(|a, b| (&a.job, a.entry.letter).cmp(&(&b.job, b.entry.letter)));
        Ok((records, unreadable))
    }

    /// The entries of a job, of a job that is not done those of the chunks with a dead letter that is wanted.
    async fn entries_of(
        &self,
        job: &str,
        is_wanted: impl Fn(&Uuid) -> bool,
    ) -> anyhow::Result<Vec<LedgerEntry>> {
        if let Some(entries) = self.all_entries(job).await? {
            return Ok(entries);
        }
        let Some((_, plan)) = self.plan_of(job).await? else { return Ok(Vec::new()) };
        let chunks = (1..).zip(plan.chunks(CHUNK));
        let with_wanted =
            chunks.filter(|(_, chunk)| chunk.iter().any(|planned| is_wanted(&planned.letter)));
        let numbers = with_wanted.map(|(number, _)| number).collect();
        Ok(self.read_chunks(job, Some(numbers)).await?.into_values().flatten().collect())
    }

    /// Every replay job.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn jobs(&self) -> anyhow::Result<Jobs> {
        let mut jobs = Jobs::default();
        for name in self.job_names().await? {
            match self.summary_of(&name).await {
                Ok(summary) => jobs.summaries.extend(summary),
                Err(error) => jobs.unreadable.push(error.downcast()?),
            }
        }
        jobs.summaries.sort_by(|a, b| a.header.at.cmp(&b.header.at));
        Ok(jobs)
    }

    /// A job, summed up.
    async fn summary_of(&self, job: &str) -> anyhow::Result<Option<JobSummary>> {
        // The plan is written first: without it nothing was sent.
        let Some((header, _)) = self.plan_of(job).await? else { return Ok(None) };
        // One request instead of one for every ten dead letters.
        let entries = match self.all_entries(job).await? {
            Some(entries) => entries,
            None => self.read_chunks(job, None).await?.into_values().flatten().collect(),
        };
        let counts = ReplayCounts::of(&entries);
        let ends = self.ends(&header, &counts).await?;
        let ends = EndCounts::of(&entries, &ends, Machine.now_ms());
        Ok(Some(JobSummary { header, counts, ends }))
    }

    /// The names of all jobs.
    pub(super) async fn job_names(&self) -> anyhow::Result<Vec<String>> {
        let prefix = self.ledgers();
        let request =
            ListRequest { prefix: prefix.clone(), by_folder: true, ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let name = |folder: &String| Some(folder.strip_prefix(&prefix)?.strip_suffix('/')?.into());
        let names = page.folders.iter().filter_map(name);
        // No job of ours has another name, and a name becomes part of keys and links.
        Ok(names.filter(|name: &String| is_job_name(name)).collect())
    }

    /// The plan of a job, if there is one.
    ///
    /// # Errors
    /// [`UnreadableLedger`]; or when the container cannot be read.
    pub(super) async fn plan_of(
        &self,
        job: &str,
    ) -> anyhow::Result<Option<(JobHeader, Vec<PlannedReplay>)>> {
        self.ledger_file(job, "plan", |bytes| {
            let plan = read_plan(bytes)?;
            if plan.0.job == job {
                Ok(plan)
            } else {
                Err("it is the plan of another job".to_owned())
            }
        })
        .await
    }

    /// The chunks of a ledger: those of these numbers, or all.
    pub(super) async fn read_chunks(
        &self,
        job: &str,
        numbers: Option<HashSet<u32>>,
    ) -> anyhow::Result<BTreeMap<u32, Vec<LedgerEntry>>> {
        let numbers: Vec<u32> = match numbers {
            Some(numbers) => numbers.into_iter().collect(),
            None => {
                let prefix = format!("{}{job}/", self.ledgers());
                // By folder: the ends of its deliveries are in one below, and may be many.
                let prefix_only = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
                let request = ListRequest { by_folder: true, ..prefix_only };
                let page = self.container.pages(request).await?;
                // The names of plan and `done.ndjson` are no numbers.
                let number =
                    |key: &str| key.strip_prefix(&prefix)?.strip_suffix(".ndjson")?.parse().ok();
                page.entries.iter().filter_map(|blob| number(&blob.key)).collect()
            }
        };
        let reads = numbers.into_iter().map(|number| async move {
            let entries = self.ledger_file(job, &number.to_string(), read_entries).await?;
            anyhow::Ok(entries.map(|entries| (number, entries)))
        });
        // In any order: the map sorts them by number.
        let chunks: Vec<_> =
            stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// All entries of a job, if it is done.
    async fn all_entries(&self, job: &str) -> anyhow::Result<Option<Vec<LedgerEntry>>> {
        self.ledger_file(job, "done", read_entries).await
    }

    /// What is in a file of a ledger; `None` when there is no such file.
    async fn ledger_file<T>(
        &self,
        job: &str,
        file: &str,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> anyhow::Result<Option<T>> {
        let Some(bytes) = self.container.get(&self.ledger_key(job, file)).await? else {
            return Ok(None);
        };
        let unreadable = |problem| UnreadableLedger {
            job: job.to_owned(),
            folder: format!("{}{job}", self.ledgers()),
            file: format!("{file}.ndjson"),
            problem,
        };
        Ok(Some(read(&bytes).map_err(unreadable)?))
    }

    /// The key of a file in the ledger of a job: `plan`, `done`, or the number of a chunk.
    pub(super) fn ledger_key(&self, job: &str, file: &str) -> String {
        format!("{}{job}/{file}.ndjson", self.ledgers())
    }

    /// The folder of all ledgers.
    fn ledgers(&self) -> String {
        format!("{}{LEDGER_FOLDER}/", self.container.root())
    }
}
