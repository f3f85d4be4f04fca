//! The ledgers of all jobs in storage: a folder each, with its plan, its chunks, and its end.
//!
//! What stands in them is told by [`ledger`]; here is where they lie and how they are found.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::super::READS_AT_ONCE;
use super::super::ledger::{
    self, CHUNK, Counts, Header, Job, Line, Planned, Replayed, read_lines, read_plan,
};
use super::super::place::LEDGERS;
use super::super::storage::{Ask, Place};

fn folder(place: &Place, job: &str) -> String {
    format!("{}{LEDGERS}/{job}/", place.root())
}

pub(super) fn plan_key(place: &Place, job: &str) -> String {
    format!("{}plan.ndjson", folder(place, job))
}

pub(super) fn done_key(place: &Place, job: &str) -> String {
    format!("{}done.ndjson", folder(place, job))
}

pub(super) fn chunk_key(place: &Place, job: &str, number: u32) -> String {
    format!("{}{number}.ndjson", folder(place, job))
}

/// The names of all jobs.
pub(super) async fn folders(place: &Place) -> anyhow::Result<Vec<String>> {
    let prefix = format!("{}{LEDGERS}/", place.root());
    let page =
        place.pages(Ask { prefix: prefix.clone(), by_folder: true, ..Ask::default() }).await?;
    let names =
        page.folders.iter().filter_map(|folder| folder.strip_prefix(&prefix)?.strip_suffix('/'));
    Ok(names.map(ToOwned::to_owned).collect())
}

pub(super) async fn plan_of(
    place: &Place,
    job: &str,
) -> anyhow::Result<Option<(Header, Vec<Planned>)>> {
    let Some(bytes) = place.get(&plan_key(place, job)).await? else { return Ok(None) };
    read_plan(&bytes)
        .map(Some)
        .map_err(|why| anyhow::anyhow!("the plan of the job {job} cannot be read: {why}"))
}

/// The chunks of a ledger: those of these numbers, or all.
pub(super) async fn read_chunks(
    place: &Place,
    job: &str,
    numbers: Option<HashSet<u32>>,
) -> anyhow::Result<BTreeMap<u32, Vec<Line>>> {
    let numbers: Vec<u32> = match numbers {
        Some(numbers) => numbers.into_iter().collect(),
        None => {
            let prefix = folder(place, job);
            let page = place.pages(Ask { prefix: prefix.clone(), ..Ask::default() }).await?;
            let number =
                |key: &str| key.strip_prefix(&prefix)?.strip_suffix(".ndjson")?.parse().ok();
            page.blobs.iter().filter_map(|blob| number(&blob.key)).collect()
        }
    };
    let reads = numbers.into_iter().map(|number| async move {
        let Some(bytes) = place.get(&chunk_key(place, job, number)).await? else { return Ok(None) };
        let lines = read_lines(&bytes);
        let lines = lines.map_err(|why| {
            anyhow::anyhow!("chunk {number} of the job {job} cannot be read: {why}")
        })?;
        anyhow::Ok(Some((number, lines)))
    });
    let chunks: Vec<_> = stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
    Ok(chunks.into_iter().flatten().collect())
}

/// Every job, oldest first.
pub(in super::super) async fn jobs(place: &Place) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for name in folders(place).await? {
        let Some((header, _)) = plan_of(place, &name).await? else { continue };
        let lines = match done(place, &name).await? {
            Some(lines) => lines,
            None => read_chunks(place, &name, None).await?.into_values().flatten().collect(),
        };
        jobs.push(Job { header, counts: Counts::of(&lines) });
    }
    jobs.sort_by(|a, b| a.header.at.cmp(&b.header.at));
    Ok(jobs)
}

async fn done(place: &Place, job: &str) -> anyhow::Result<Option<Vec<Line>>> {
    let Some(bytes) = place.get(&done_key(place, job)).await? else { return Ok(None) };
    let lines = read_lines(&bytes);
    lines.map(Some).map_err(|why| anyhow::anyhow!("the end of the job {job} cannot be read: {why}"))
}

/// Which of these letters were sent again, or which of all. Of a job under way only the chunks that
/// hold them are read.
pub(in super::super) async fn replayed(
    place: &Place,
    ids: Option<&[Uuid]>,
) -> anyhow::Result<HashMap<Uuid, Replayed>> {
    let wanted: Option<HashSet<Uuid>> = ids.map(|ids| ids.iter().copied().collect());
    let is_wanted = |letter: &Uuid| wanted.as_ref().is_none_or(|wanted| wanted.contains(letter));
    let mut known = HashMap::new();
    if ids.is_some_and(<[Uuid]>::is_empty) {
        return Ok(known);
    }
    for job in folders(place).await? {
        let lines = match done(place, &job).await? {
            Some(lines) => lines,
            None => {
                let Some((_, plan)) = plan_of(place, &job).await? else { continue };
                let chunks = (1..).zip(plan.chunks(CHUNK));
                let holding = chunks
                    .filter(|(_, chunk)| chunk.iter().any(|planned| is_wanted(&planned.letter)));
                let numbers = holding.map(|(number, _)| number).collect();
                read_chunks(place, &job, Some(numbers)).await?.into_values().flatten().collect()
            }
        };
        let meant = lines.into_iter().filter(|line| is_wanted(&line.letter));
        meant.for_each(|line| ledger::remember(&mut known, &job, line));
    }
    Ok(known)
}
