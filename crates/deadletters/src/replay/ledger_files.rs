//! The ledgers of all jobs in storage: a folder each, with its plan, its chunks, and at the end
//! `done.ndjson`.
//!
//! [`ledger`] defines their content; here is where they are stored and how they are found.

use std::collections::{BTreeMap, HashMap, HashSet};

use adapters::machine::Machine;
use adapters::storage::ListRequest;
use delivery::ports::Clock as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::key::LEDGER_FOLDER;
use crate::ledger::{
    self, CHUNK, EndCounts, JobHeader, JobSummary, LedgerEntry, PlannedReplay, ReplayCounts,
    ReplayRecord, read_entries, read_plan,
};

impl DeadLetters {
    /// Which of these dead letters were replayed, or which of all; each with the newest job that
    /// did. Of a job that is not done only the chunks with one of them are read.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub async fn replayed(
        &self,
        ids: Option<&[Uuid]>,
    ) -> anyhow::Result<HashMap<Uuid, ReplayRecord>> {
        let wanted: Option<HashSet<Uuid>> = ids.map(|ids| ids.iter().copied().collect());
        let is_wanted =
            |letter: &Uuid| wanted.as_ref().is_none_or(|wanted| wanted.contains(letter));
        let mut known = HashMap::new();
        if ids.is_some_and(<[Uuid]>::is_empty) {
            return Ok(known);
        }
        for job in self.job_names().await? {
            let entries = match self.all_entries(&job).await? {
                Some(entries) => entries,
                None => {
                    let Some((_, plan)) = self.plan_of(&job).await? else { continue };
                    let chunks = (1..).zip(plan.chunks(CHUNK));
                    let with_wanted = chunks.filter(|(_, chunk)| {
                        chunk.iter().any(|planned| is_wanted(&planned.letter))
                    });
                    let numbers = with_wanted.map(|(number, _)| number).collect();
                    let chunks = self.read_chunks(&job, Some(numbers)).await?;
                    chunks.into_values().flatten().collect()
                }
            };
            let wanted = entries.into_iter().filter(|entry| is_wanted(&entry.letter));
            wanted.for_each(|entry| ledger::keep_latest(&mut known, &job, entry));
        }
        Ok(known)
    }

    /// Every replay job, oldest first.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub async fn jobs(&self) -> anyhow::Result<Vec<JobSummary>> {
        let mut jobs = Vec::new();
        for name in self.job_names().await? {
            // The plan is written first: without it nothing was sent.
            let Some((header, _)) = self.plan_of(&name).await? else { continue };
            // One request instead of one for every ten dead letters.
            let entries = match self.all_entries(&name).await? {
                Some(entries) => entries,
                None => self.read_chunks(&name, None).await?.into_values().flatten().collect(),
            };
            let counts = ReplayCounts::of(&entries);
            let ends = self.ends(&header, &counts).await?;
            let ends = EndCounts::of(&entries, &ends, Machine.now_ms());
            jobs.push(JobSummary { header, counts, ends });
        }
        jobs.sort_by(|a, b| a.header.at.cmp(&b.header.at));
        Ok(jobs)
    }

    /// The names of all jobs.
    pub(super) async fn job_names(&self) -> anyhow::Result<Vec<String>> {
        let prefix = self.ledgers();
        let request =
            ListRequest { prefix: prefix.clone(), by_folder: true, ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let name = |folder: &String| Some(folder.strip_prefix(&prefix)?.strip_suffix('/')?.into());
        Ok(page.folders.iter().filter_map(name).collect())
    }

    pub(super) async fn plan_of(
        &self,
        job: &str,
    ) -> anyhow::Result<Option<(JobHeader, Vec<PlannedReplay>)>> {
        let key = self.ledger_key(job, "plan");
        let Some(bytes) = self.container.get(&key).await? else { return Ok(None) };
        read_plan(&bytes)
            .map(Some)
            .map_err(|why| anyhow::anyhow!("the plan of the job {job} cannot be read: {why}"))
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
            let key = self.ledger_key(job, &number.to_string());
            let entries = self.read_entries(job, &key, &format!("chunk {number}")).await?;
            anyhow::Ok(entries.map(|entries| (number, entries)))
        });
        // In any order: the map sorts them by number.
        let chunks: Vec<_> =
            stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// All entries of a job, if it is done.
    async fn all_entries(&self, job: &str) -> anyhow::Result<Option<Vec<LedgerEntry>>> {
        self.read_entries(job, &self.ledger_key(job, "done"), "done.ndjson").await
    }

    /// The entries in a blob of a ledger; `None` when there is no such blob.
    async fn read_entries(
        &self,
        job: &str,
        key: &str,
        what: &str,
    ) -> anyhow::Result<Option<Vec<LedgerEntry>>> {
        let Some(bytes) = self.container.get(key).await? else { return Ok(None) };
        read_entries(&bytes)
            .map(Some)
            .map_err(|why| anyhow::anyhow!("{what} of the job {job} cannot be read: {why}"))
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
