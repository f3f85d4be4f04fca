//! The ledgers of all jobs in storage: a folder each, with its plan, its chunks, and at the end
//! `done.ndjson`.
//!
//! [`ledger`] defines their content; here is where they are stored and how they are found.

use std::collections::{BTreeMap, HashMap, HashSet};

use adapters::storage::ListRequest;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::container::DeadLetterContainer;
use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::key::LEDGER_FOLDER;
use crate::ledger::{
    self, CHUNK, JobHeader, JobSummary, LedgerEntry, PlannedReplay, ReplayCounts, ReplayRecord,
    read_entries, read_plan,
};

fn folder(container: &DeadLetterContainer, job: &str) -> String {
    format!("{}{LEDGER_FOLDER}/{job}/", container.root())
}

impl DeadLetters {
    /// Which of these dead letters were replayed, each with the newest job that did.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub async fn replayed(&self, ids: &[Uuid]) -> anyhow::Result<HashMap<Uuid, ReplayRecord>> {
        read_replayed(&self.container, Some(ids)).await
    }

    /// Every replayed dead letter, each with the newest job that did.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub async fn all_replayed(&self) -> anyhow::Result<HashMap<Uuid, ReplayRecord>> {
        read_replayed(&self.container, None).await
    }

    /// Every replay job, oldest first.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub async fn jobs(&self) -> anyhow::Result<Vec<JobSummary>> {
        read_jobs(&self.container).await
    }
}

pub(super) fn plan_key(container: &DeadLetterContainer, job: &str) -> String {
    format!("{}plan.ndjson", folder(container, job))
}

pub(super) fn done_key(container: &DeadLetterContainer, job: &str) -> String {
    format!("{}done.ndjson", folder(container, job))
}

pub(super) fn chunk_key(container: &DeadLetterContainer, job: &str, number: u32) -> String {
    format!("{}{number}.ndjson", folder(container, job))
}

/// The names of all jobs.
pub(super) async fn job_names(container: &DeadLetterContainer) -> anyhow::Result<Vec<String>> {
    let prefix = format!("{}{LEDGER_FOLDER}/", container.root());
    let request = ListRequest { prefix: prefix.clone(), by_folder: true, ..ListRequest::default() };
    let page = container.pages(request).await?;
    let names =
        page.folders.iter().filter_map(|folder| folder.strip_prefix(&prefix)?.strip_suffix('/'));
    Ok(names.map(ToOwned::to_owned).collect())
}

pub(super) async fn plan_of(
    container: &DeadLetterContainer,
    job: &str,
) -> anyhow::Result<Option<(JobHeader, Vec<PlannedReplay>)>> {
    let Some(bytes) = container.get(&plan_key(container, job)).await? else { return Ok(None) };
    read_plan(&bytes)
        .map(Some)
        .map_err(|why| anyhow::anyhow!("the plan of the job {job} cannot be read: {why}"))
}

/// The chunks of a ledger: those of these numbers, or all.
pub(super) async fn read_chunks(
    container: &DeadLetterContainer,
    job: &str,
    numbers: Option<HashSet<u32>>,
) -> anyhow::Result<BTreeMap<u32, Vec<LedgerEntry>>> {
    let numbers: Vec<u32> = match numbers {
        Some(numbers) => numbers.into_iter().collect(),
        None => {
            let prefix = folder(container, job);
            let request = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
            let page = container.pages(request).await?;
            // The names of plan and `done.ndjson` are no numbers.
            let number =
                |key: &str| key.strip_prefix(&prefix)?.strip_suffix(".ndjson")?.parse().ok();
            page.entries.iter().filter_map(|blob| number(&blob.key)).collect()
        }
    };
    let reads = numbers.into_iter().map(|number| async move {
        let key = chunk_key(container, job, number);
        let Some(bytes) = container.get(&key).await? else { return Ok(None) };
        let entries = read_entries(&bytes);
        let entries = entries.map_err(|why| {
            anyhow::anyhow!("chunk {number} of the job {job} cannot be read: {why}")
        })?;
        anyhow::Ok(Some((number, entries)))
    });
    // In any order: the map sorts them by number.
    let chunks: Vec<_> = stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
    Ok(chunks.into_iter().flatten().collect())
}

/// Every job, oldest first.
async fn read_jobs(container: &DeadLetterContainer) -> anyhow::Result<Vec<JobSummary>> {
    let mut jobs = Vec::new();
    for name in job_names(container).await? {
        // The plan is written first: without it nothing was sent.
        let Some((header, _)) = plan_of(container, &name).await? else { continue };
        // One request instead of one for every ten dead letters.
        let entries = match done(container, &name).await? {
            Some(entries) => entries,
            None => read_chunks(container, &name, None).await?.into_values().flatten().collect(),
        };
        jobs.push(JobSummary { header, counts: ReplayCounts::of(&entries) });
    }
    jobs.sort_by(|a, b| a.header.at.cmp(&b.header.at));
    Ok(jobs)
}

/// All entries of a job that is done.
async fn done(
    container: &DeadLetterContainer,
    job: &str,
) -> anyhow::Result<Option<Vec<LedgerEntry>>> {
    let Some(bytes) = container.get(&done_key(container, job)).await? else { return Ok(None) };
    let entries = read_entries(&bytes);
    entries
        .map(Some)
        .map_err(|why| anyhow::anyhow!("done.ndjson of the job {job} cannot be read: {why}"))
}

/// Which of these dead letters were replayed, or which of all. Of a job that is not done only the
/// chunks with one of them are read.
async fn read_replayed(
    container: &DeadLetterContainer,
    ids: Option<&[Uuid]>,
) -> anyhow::Result<HashMap<Uuid, ReplayRecord>> {
    let wanted: Option<HashSet<Uuid>> = ids.map(|ids| ids.iter().copied().collect());
    let is_wanted = |letter: &Uuid| wanted.as_ref().is_none_or(|wanted| wanted.contains(letter));
    let mut known = HashMap::new();
    if ids.is_some_and(<[Uuid]>::is_empty) {
        return Ok(known);
    }
    for job in job_names(container).await? {
        let entries = match done(container, &job).await? {
            Some(entries) => entries,
            None => {
                let Some((_, plan)) = plan_of(container, &job).await? else { continue };
                let chunks = (1..).zip(plan.chunks(CHUNK));
                let with_wanted = chunks
                    .filter(|(_, chunk)| chunk.iter().any(|planned| is_wanted(&planned.letter)));
                let numbers = with_wanted.map(|(number, _)| number).collect();
                let chunks = read_chunks(container, &job, Some(numbers)).await?;
                chunks.into_values().flatten().collect()
            }
        };
        let wanted = entries.into_iter().filter(|entry| is_wanted(&entry.letter));
        wanted.for_each(|entry| ledger::keep_latest(&mut known, &job, entry));
    }
    Ok(known)
}
