//! Replays dead letters: the original event, only to its own subscription, as a new delivery with
//! a new id and no attempts.
//!
//! First the plan, complete and counted; then chunks of ten, each written to the ledger before it
//! is sent and again after. Killed at any time, a job is resumed from its [`ledger`], which names
//! what is uncertain then. What became of the deliveries is in its [`ends`]. Separate from
//! [`sender`], which knows targets and no ledgers, and from [`ReplayPlan`], which is pure.
//!
//! Promises: every dead letter of the plan is sent at least once, or has an entry that says why
//! not. Repeats are within the chunks that a resume names. Does not promise order.

pub mod ends;
pub(crate) mod ledger_files;
mod plan;
pub mod sender;

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use adapters::machine::Machine;
use anyhow::{Context as _, bail, ensure};
use delivery::deadletter::stored::read;
use delivery::delivery::replay::Replay;
use delivery::ports::Clock as _;
use delivery::time::moment;
use futures::future::{BoxFuture, Either, FutureExt as _, Shared, ready, select};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use self::ends::{EndCounts, Ends};
use self::sender::{ReplayItem, ReplaySender, ReplayTarget, SendResult};
use crate::dead_letters::DeadLetters;
use crate::ledger::{
    self, CHUNK, JobHeader, LedgerEntry, PlannedReplay, ReplayCounts, ReplayState, start_chunk,
    write_done, write_entries, write_plan,
};
use crate::rate::Rate;

pub use self::ledger_files::{Jobs, Replayed, UnreadableLedger};
pub use self::plan::ReplayPlan;

/// Chunks under way at a time: so many may be uncertain after a crash.
const CHUNKS_AT_ONCE: usize = 4;

/// Ready once a person has interrupted the job.
type Interruption<'a> = Shared<BoxFuture<'a, ()>>;

/// How a job is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// The most that may be sent in a time; without it, that of the job's ledger.
    pub rate: Option<Rate>,
    /// True if uncertain dead letters are skipped instead of sent again.
    pub skip_uncertain: bool,
}

/// A new job, without its dead letters.
#[derive(Debug)]
pub struct NewJob {
    /// Its name.
    pub job: String,
    /// The target of its dead letters.
    pub target: ReplayTarget,
    /// The queue, if they are sent through one.
    pub queue: Option<String>,
    /// True if the ends of its deliveries will be recorded in this container.
    pub results: bool,
    /// The most that may be sent in a time; without it, as fast as possible.
    pub rate: Option<Rate>,
    /// The person who starts it, if known.
    pub by: Option<String>,
    /// A note of that person.
    pub note: Option<String>,
}

/// The default name of a job: the time it starts, as part of a key.
#[must_use]
pub fn job_name(now_ms: u64) -> String {
    // Two jobs may start within one second.
    let to_the_ms: String = moment::rfc3339(now_ms).chars().take(23).collect();
    to_the_ms.replace([':', '.'], "-")
}

/// A job with its ledger.
pub struct ReplayJob {
    letters: DeadLetters,
    /// What the job is.
    pub header: JobHeader,
    plan: Vec<PlannedReplay>,
    chunks: BTreeMap<u32, Vec<LedgerEntry>>,
}

impl ReplayJob {
    /// Writes the plan of a new job.
    ///
    /// # Errors
    /// When there is a job of this name, or the ledger cannot be written.
    pub async fn start(
        letters: &DeadLetters,
        new: NewJob,
        plan: ReplayPlan,
    ) -> anyhow::Result<Self> {
        let NewJob { job, target, queue, results, rate, by, note } = new;
        let key = letters.ledger_key(&job, "plan");
        ensure!(
            letters.container.get(&key).await?.is_none(),
            "there is a job {job} already: use --resume {job}, or another --name"
        );
        let plan = plan.ordered();
        let header = JobHeader {
            v: ledger::VERSION,
            job,
            at: moment::rfc3339(Machine.now_ms()),
            to: target.to_string(),
            queue,
            letters: plan.len(),
            results,
            rate,
            by,
            note,
        };
        letters.container.put(&key, write_plan(&header, &plan)).await?;
        Ok(Self { letters: letters.clone(), header, plan, chunks: BTreeMap::new() })
    }

    /// Reads a job back from its ledger.
    ///
    /// # Errors
    /// When there is none of this name, or its ledger cannot be read.
    pub async fn resume(letters: &DeadLetters, job: &str) -> anyhow::Result<Self> {
        let Some((header, plan)) = letters.plan_of(job).await? else {
            let jobs = letters.job_names().await?;
            let others = match &jobs[..] {
                [] => "nor any other".to_owned(),
                jobs => format!("there are: {}", jobs.join(", ")),
            };
            bail!("there is no job {job} in {}; {others}", letters.container.name);
        };
        let chunks = letters.read_chunks(job, None).await?;
        Ok(Self { letters: letters.clone(), header, plan, chunks })
    }

    /// The chunks that may have been sent, and how many dead letters of each.
    #[must_use]
    pub fn uncertain(&self) -> Vec<(u32, u64)> {
        ledger::uncertain_chunks(&self.chunks)
    }

    /// How far the job is.
    #[must_use]
    pub fn counts(&self) -> ReplayCounts {
        ReplayCounts::of(self.chunks.values().flatten())
    }

    /// What became of what it has sent, by these ends.
    #[must_use]
    pub fn end_counts(&self, ends: &Ends) -> EndCounts {
        EndCounts::of(self.chunks.values().flatten(), ends, Machine.now_ms())
    }

    /// The counts of the chunks that a run does not touch again. Together with what [`Self::run`]
    /// reports for the others they are the counts of the job.
    #[must_use]
    pub fn settled(&self) -> ReplayCounts {
        let open: HashSet<u32> = self.open_chunks().into_iter().collect();
        let settled = self.chunks.iter().filter(|(number, _)| !open.contains(number));
        ReplayCounts::of(settled.flat_map(|(_, entries)| entries))
    }

    /// Every dead letter of the plan, in the order of sending, with its entry if it has one.
    pub fn entries(&self) -> impl Iterator<Item = (Uuid, Option<&LedgerEntry>)> {
        let chunks = (1..).zip(self.plan.chunks(CHUNK));
        chunks.flat_map(|(number, planned)| {
            let entries = self.chunks.get(&number).map(Vec::as_slice).unwrap_or_default();
            planned.iter().map(|planned| {
                (planned.letter, entries.iter().find(|entry| entry.letter == planned.letter))
            })
        })
    }

    /// Sends what is not finished, until `interrupted` is ready: then no chunk begins, and those under way
    /// are finished. `on_chunk` is called with the counts of each chunk.
    ///
    /// # Errors
    /// When the ledger or a dead letter cannot be read or written, or nothing of a chunk was
    /// accepted. What was done is in the ledger.
    pub async fn run(
        &mut self,
        sender: &ReplaySender,
        options: RunOptions,
        interrupted: impl Future<Output = ()> + Send,
        on_chunk: impl Fn(ReplayCounts),
    ) -> anyhow::Result<ReplayCounts> {
        let options = RunOptions { rate: options.rate.or(self.header.rate), ..options };
        let interrupted = interrupted.boxed().shared();
        let (mut done, mut failed) = (Vec::new(), None);
        {
            let stop = AtomicBool::new(false);
            let (this, interruption) = (&*self, &interrupted);
            let started =
                stream::iter(self.schedule(options.rate)).then(|(number, at_ms)| async move {
                    let wait_ms = at_ms.saturating_sub(Machine.now_ms());
                    if wait_ms > 0 {
                        Machine.sleep(wait_ms).await;
                    }
                    number
                });
            let chunks = started.take_until(interrupted.clone()).map(|number| async move {
                Ok((number, this.run_chunk(number, sender, options, interruption).await?))
            });
            let mut chunks = until_failed(chunks, &stop).boxed();
            while let Some(chunk) = chunks.next().await {
                match chunk {
                    Ok((number, entries)) => {
                        on_chunk(ReplayCounts::of(&entries));
                        done.push((number, entries));
                    }
                    Err(error) => {
                        failed.get_or_insert(error);
                    }
                }
            }
        }
        self.chunks.extend(done);
        match failed {
            Some(error) => Err(error),
            None => self.finish().await,
        }
    }

    /// The open chunks, and when each may start.
    fn schedule(&self, rate: Option<Rate>) -> Vec<(u32, u64)> {
        let begun_ms = Machine.now_ms();
        let mut before = 0;
        let start = |number| {
            let wait_ms = rate.map_or(0, |rate| rate.wait_ms(before));
            before += self.planned_of_chunk(number).len() as u64;
            (number, begun_ms.saturating_add(wait_ms))
        };
        self.open_chunks().into_iter().map(start).collect()
    }

    /// The chunks with a dead letter that is not finished.
    fn open_chunks(&self) -> Vec<u32> {
        let chunks = (1..).zip(self.plan.chunks(CHUNK));
        let open = chunks.filter(|(number, planned)| {
            let entries = self.chunks.get(number);
            entries.is_none_or(|of| ReplayCounts::of(of).finished() < planned.len() as u64)
        });
        open.map(|(number, _)| number).collect()
    }

    fn planned_of_chunk(&self, number: u32) -> &[PlannedReplay] {
        self.plan.chunks(CHUNK).nth(number.saturating_sub(1) as usize).unwrap_or_default()
    }

    /// One chunk: read, written to the ledger, sent, written again.
    async fn run_chunk(
        &self,
        number: u32,
        sender: &ReplaySender,
        options: RunOptions,
        interrupted: &Interruption<'_>,
    ) -> anyhow::Result<Vec<LedgerEntry>> {
        let (job, container) = (&self.header.job, &self.letters.container);
        let (planned, before) =
            (self.planned_of_chunk(number), self.chunks.get(&number).map(Vec::as_slice));
        let mut entries =
            start_chunk(job, planned, before, options.skip_uncertain, Machine.now_ms());
        let items = self.read_items(number, &mut entries).await?;
        let key = self.letters.ledger_key(job, &number.to_string());
        // Before sending: after a crash the ledger has to name what may have been sent.
        container.put(&key, write_entries(&entries)).await?;
        let results = send(sender, &items, options.rate, interrupted).await;
        let problem = nothing_accepted(&results);
        let not_sent = items.get(results.len()..).unwrap_or_default();
        for item in not_sent {
            restore(&mut entries, before, item.delivery);
        }
        for (item, result) in items.iter().zip(results) {
            let entry = entries.iter_mut().find(|entry| entry.delivery == item.delivery);
            entry.context("every item was made of an entry")?.apply(result);
        }
        container.put(&key, write_entries(&entries)).await?;
        // Only after the ledger is written: a resume has to know what was refused.
        if let Some(problem) = problem {
            bail!("nothing of chunk {number} was accepted: {problem}; continue with --resume {job}")
        }
        Ok(entries)
    }

    /// The dead letters of a chunk that are to be sent; entries of missing ones become
    /// [`ReplayState::Missing`].
    async fn read_items(
        &self,
        number: u32,
        entries: &mut [LedgerEntry],
    ) -> anyhow::Result<Vec<ReplayItem>> {
        let container = &self.letters.container;
        let wanted = entries
            .iter()
            .zip(self.planned_of_chunk(number))
            .filter(|(entry, _)| entry.state == ReplayState::Intent);
        let reads = wanted.map(|(entry, planned)| async move {
            let bytes = container.get(&planned.key).await?;
            let letters = bytes.map(|bytes| read(&planned.key, &container.prefix, &bytes));
            let letters = letters.transpose().map_err(anyhow::Error::msg)?.unwrap_or_default();
            let letter = letters.into_iter().find(|letter| letter.id == planned.letter);
            let job = Some(&self.header.job).filter(|_| self.header.results);
            let replay = job.and_then(|job| Replay::new(job, planned.letter));
            anyhow::Ok(letter.map(|letter| ReplayItem { delivery: entry.delivery, letter, replay }))
        });
        let items: Vec<Option<ReplayItem>> =
            stream::iter(reads.collect::<Vec<_>>()).buffered(CHUNK).try_collect().await?;
        let items: Vec<ReplayItem> = items.into_iter().flatten().collect();
        let found: HashSet<Uuid> = items.iter().map(|item| item.delivery).collect();
        for entry in entries
            .iter_mut()
            .filter(|entry| entry.state == ReplayState::Intent && !found.contains(&entry.delivery))
        {
            entry.state = ReplayState::Missing;
        }
        Ok(items)
    }

    /// Writes all entries into one blob once every dead letter is finished.
    async fn finish(&self) -> anyhow::Result<ReplayCounts> {
        let counts = self.counts();
        if counts.finished() == self.plan.len() as u64 {
            let key = self.letters.ledger_key(&self.header.job, "done");
            let entries: Vec<LedgerEntry> = self.chunks.values().flatten().cloned().collect();
            let done = write_done(&self.header, &entries);
            self.letters.container.put(&key, done).await?;
        }
        Ok(counts)
    }
}

/// Makes the entry of a delivery that was not sent what it was `before`; without one it has none.
fn restore(entries: &mut Vec<LedgerEntry>, before: Option<&[LedgerEntry]>, delivery: Uuid) {
    let is_it = |entry: &LedgerEntry| entry.delivery == delivery;
    match before.unwrap_or_default().iter().find(|entry| is_it(entry)) {
        Some(before) => {
            entries.iter_mut().filter(|entry| is_it(entry)).for_each(|it| *it = before.clone());
        }
        None => entries.retain(|entry| !is_it(entry)),
    }
}

/// Sends the items of a chunk, no faster than the rate; fewer results than items where it was interrupted
/// while it waited.
async fn send(
    sender: &ReplaySender,
    items: &[ReplayItem],
    rate: Option<Rate>,
    interrupted: &Interruption<'_>,
) -> Vec<SendResult> {
    let Some(rate) = rate else { return sender.send(items).await };
    let (begun_ms, mut results) = (Machine.now_ms(), Vec::new());
    for burst in items.chunks(rate.burst(CHUNK)) {
        let due_ms = begun_ms.saturating_add(rate.wait_ms(results.len() as u64));
        let wait = Machine.sleep(due_ms.saturating_sub(Machine.now_ms()));
        // The first is sent at once, so that every chunk that begins gets on.
        if !results.is_empty()
            && let Either::Right(_) = select(pin!(wait), interrupted.clone()).await
        {
            break;
        }
        results.extend(sender.send(burst).await);
    }
    results
}

impl LedgerEntry {
    fn apply(&mut self, result: SendResult) {
        self.at = moment::rfc3339(Machine.now_ms());
        (self.state, self.problem) = match result {
            SendResult::Sent => (ReplayState::Sent, None),
            SendResult::Refused(problem) => (ReplayState::Refused, Some(problem)),
            SendResult::Unfit(problem) => (ReplayState::Unfit, Some(problem)),
            // What was sent without an answer is as unknown as after a crash.
            SendResult::Uncertain(problem) => (ReplayState::Intent, Some(problem)),
        };
    }
}

/// Why nothing of a chunk was accepted although something could have been: the remaining chunks
/// would fail in the same way.
fn nothing_accepted(results: &[SendResult]) -> Option<String> {
    let mut problem = None;
    for result in results {
        match result {
            SendResult::Sent => return None,
            SendResult::Refused(why) | SendResult::Uncertain(why) => {
                _ = problem.get_or_insert_with(|| why.clone());
            }
            SendResult::Unfit(_) => {}
        }
    }
    problem
}

/// The results of chunks, of which several run at once. None begins after one has failed; those
/// under way are finished, so that their entries are written.
fn until_failed<'a, T: 'a, F: Future<Output = anyhow::Result<T>> + 'a>(
    chunks: impl Stream<Item = F> + 'a,
    stop: &'a AtomicBool,
) -> impl Stream<Item = anyhow::Result<T>> + 'a {
    let run = move |chunk: F| async move {
        // Asked again: another may have failed since this one was taken from the stream.
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let result = chunk.await;
        stop.fetch_or(result.is_err(), Ordering::Relaxed);
        Some(result)
    };
    let wanted = chunks.take_while(|_| ready(!stop.load(Ordering::Relaxed)));
    wanted.map(run).buffer_unordered(CHUNKS_AT_ONCE).filter_map(ready)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn after_a_chunk_has_failed_none_begins() {
        let (stop, begun) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let begun = &begun;
        let chunk = |number| async move {
            begun.lock().unwrap().push(number);
            ensure!(number != 2, "it fails");
            Ok(number)
        };
        let results: Vec<_> = until_failed(stream::iter(1..9).map(chunk), &stop).collect().await;
        assert_eq!((results.len(), &begun.lock().unwrap()[..]), (2, &[1, 2][..]));
    }
}
