//! One run of a job. Each open chunk is written to the ledger before sending and again after it.
//!
//! Separate from [`ReplayJob`], which represents the ledger.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adapters::error_words::chain_words;
use adapters::machine::Machine;
use anyhow::Context as _;
use delivery::deadletter::stored::read;
use delivery::delivery::replay::Replay;
use delivery::ports::Clock as _;
use delivery::time::moment;
use futures::future::{BoxFuture, Either, Shared, ready, select};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::failures::{PROBED, SendFailures};
use super::new_ends::{NewEnds, ProbeResult};
use super::sender::{ReplayItem, ReplaySender, SendResult};
use super::{ReplayJob, RunEvent, RunOptions};
use crate::ledger::{
    CHUNK, LedgerEntry, PlannedReplay, ReplayCounts, ReplayState, start_chunk, write_entries,
};
use crate::rate::Rate;
use crate::recorded::recorded_ms;

/// Maximum number of chunks that are sent concurrently, and therefore the maximum number of
/// uncertain chunks after a crash.
const CHUNKS_AT_ONCE: usize = 4;

/// The reason why a run begins no more chunks.
#[derive(Debug, Clone)]
pub(super) enum Halt {
    /// A person interrupted the job.
    Interrupted,
    /// The deliveries fail, or their results cannot be read. The text is for people.
    Stopped(String),
}

impl Halt {
    /// Returns [`Halt::Stopped`] with the reason in `failing`, or with the error that prevented
    /// reading the results.
    pub(super) fn of_ends(failing: anyhow::Result<String>) -> Self {
        Self::Stopped(failing.unwrap_or_else(|error| chain_words(error.as_ref()).join(": ")))
    }
}

/// A future that completes when no more chunks may begin.
pub(super) type HaltSignal<'a> = Shared<BoxFuture<'a, Halt>>;

/// Sends the open chunks of a job until a halt.
pub(super) struct Run<'a, 'h> {
    job: &'a ReplayJob,
    /// Time at which the run began.
    began_ms: u64,
    sender: &'a ReplaySender,
    rate: Rate,
    skip_uncertain: bool,
    halt: HaltSignal<'h>,
    failures: &'a Mutex<SendFailures>,
}

/// A chunk whose dead letters were sent, with its new entries.
pub(super) struct SentChunk {
    pub(super) number: u32,
    pub(super) entries: Vec<LedgerEntry>,
    /// The dead letters that the target accepted in this run.
    pub(super) sent: Vec<Uuid>,
    /// The reason to stop the run, for people; `None` to continue.
    pub(super) stop: Option<String>,
}

/// The chunks that a run has sent, and the error that ended the run early.
#[derive(Default)]
pub(super) struct RunResult {
    pub(super) chunks: Vec<(u32, Vec<LedgerEntry>)>,
    pub(super) failed: Option<anyhow::Error>,
}

impl<'a, 'h> Run<'a, 'h> {
    pub(super) fn new(
        job: &'a ReplayJob,
        began_ms: u64,
        sender: &'a ReplaySender,
        options: RunOptions,
        halt: HaltSignal<'h>,
        failures: &'a Mutex<SendFailures>,
    ) -> Self {
        let rate = options.rate.or(job.header.rate).unwrap_or_default();
        let skip_uncertain = options.skip_uncertain;
        Self { job, began_ms, sender, rate, skip_uncertain, halt, failures }
    }

    /// Sends the open chunks. After a halt no further chunk begins; chunks in progress are
    /// finished.
    pub(super) async fn send_open(&self, on_event: &impl Fn(RunEvent)) -> RunResult {
        let mut result = RunResult::default();
        let stop = AtomicBool::new(false);
        let started = stream::iter(self.schedule()).then(|(number, at_ms)| async move {
            Machine.sleep(at_ms.saturating_sub(Machine.now_ms())).await;
            number
        });
        let chunks = started.take_until(self.halt.clone());
        let chunks = chunks.map(|number| self.send_chunk(number, CHUNK));
        let mut chunks = until_failed(chunks, &stop).boxed();
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(SentChunk { number, entries, stop, .. }) => {
                    on_event(RunEvent::Chunk(ReplayCounts::count(&entries)));
                    result.chunks.push((number, entries));
                    result.failed = result.failed.or(stop.map(anyhow::Error::msg));
                }
                Err(error) => result.failed = result.failed.or(Some(error)),
            }
        }
        result.failed = result.failed.or_else(|| self.why_stopped().map(anyhow::Error::msg));
        result
    }

    /// Returns the failure that stopped the run, or the reason that no dead letter was accepted.
    fn why_stopped(&self) -> Option<String> {
        match self.halt.peek() {
            Some(Halt::Stopped(why)) => Some(why.clone()),
            Some(Halt::Interrupted) | None => self.failures().nothing_accepted(),
        }
    }

    fn failures(&self) -> MutexGuard<'_, SendFailures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the probe, and waits for the results of its deliveries if the job records them.
    pub(super) async fn probe(
        &self,
        ends: Option<&NewEnds>,
        on_event: &impl Fn(RunEvent),
    ) -> RunResult {
        let Some(number) = self.job.chunk_to_probe() else { return RunResult::default() };
        on_event(RunEvent::Probing);
        let chunk = match self.send_chunk(number, PROBED).await {
            Ok(chunk) => chunk,
            Err(error) => return RunResult { failed: Some(error), ..RunResult::default() },
        };
        let failed = match (chunk.stop, ends) {
            (Some(why), _) => Some(anyhow::Error::msg(why)),
            (None, Some(ends)) => self.ended_probe(ends, chunk.sent, on_event).await.err(),
            (None, None) => None,
        };
        RunResult { chunks: vec![(number, chunk.entries)], failed }
    }

    /// Waits for the results of the probe.
    ///
    /// # Errors
    /// Fails if the probe fails, or its results cannot be read.
    async fn ended_probe(
        &self,
        ends: &NewEnds,
        sent: Vec<Uuid>,
        on_event: &impl Fn(RunEvent),
    ) -> anyhow::Result<()> {
        let probed = pin!(ends.probe(sent));
        let Either::Left((probed, _)) = select(probed, self.halt.clone()).await else {
            return Ok(());
        };
        match probed? {
            ProbeResult::Passed => Ok(()),
            ProbeResult::NoneEnded { waited_ms } => {
                on_event(RunEvent::NoneEnded { waited_ms });
                Ok(())
            }
            ProbeResult::Failed(why) => Err(anyhow::Error::msg(why)),
        }
    }

    /// Returns the open chunks, with the earliest start time of each.
    fn schedule(&self) -> Vec<(u32, u64)> {
        let begun_ms = Machine.now_ms();
        let mut before = 0;
        let start = |number| {
            let wait_ms = self.rate.wait_ms(before);
            before += self.job.planned_of_chunk(number).len() as u64;
            (number, begun_ms.saturating_add(wait_ms))
        };
        self.job.open_chunks().into_iter().map(start).collect()
    }

    /// Sends at most `at_most` dead letters of a chunk: reads them, writes the ledger, sends,
    /// writes the ledger again.
    pub(super) async fn send_chunk(
        &self,
        number: u32,
        at_most: usize,
    ) -> anyhow::Result<SentChunk> {
        let (name, container) = (&self.job.header.job, &self.job.letters.container);
        let before = self.job.chunks.get(&number).map(Vec::as_slice);
        let planned = self.job.planned_of_chunk(number);
        let (closed, skip, now_ms) = (&self.job.closed, self.skip_uncertain, Machine.now_ms());
        let mut entries = start_chunk(name, planned, before, closed, skip, now_ms);
        let tried = self.tried(before);
        let open = open_deliveries(&entries).filter(|delivery| !tried.contains(delivery));
        let later: Vec<Uuid> = open.skip(at_most).chain(tried.iter().copied()).collect();
        restore(&mut entries, before, &later);
        let items = self.read_items(number, &mut entries, &later).await?;
        let key = self.job.letters.ledger_key(name, &number.to_string());
        // Write before sending: after a crash the ledger must contain everything that may have been
        // sent.
        container.put(&key, write_entries(&entries)).await?;
        let results = self.send(&items).await;
        let not_sent: Vec<Uuid> =
            items.iter().skip(results.len()).map(|item| item.delivery).collect();
        restore(&mut entries, before, &not_sent);
        let accepted =
            items.iter().zip(&results).filter(|(_, result)| **result == SendResult::Sent);
        let sent = accepted.map(|(item, _)| item.letter.id).collect();
        let stop = self.failures().add(&results);
        for (item, result) in items.iter().zip(results) {
            let entry = entries.iter_mut().find(|entry| entry.delivery == item.delivery);
            entry.context("every item belongs to an entry")?.apply(result);
        }
        container.put(&key, write_entries(&entries)).await?;
        Ok(SentChunk { number, entries, sent, stop })
    }

    /// Returns the deliveries that this run sent without receiving a response. Only a resumed job
    /// sends them again, after listing them as uncertain.
    fn tried(&self, before: Option<&[LedgerEntry]>) -> Vec<Uuid> {
        let entries = before.unwrap_or_default().iter();
        let uncertain = entries.filter(|entry| entry.state == ReplayState::Intent);
        uncertain
            .filter(|entry| recorded_ms(&entry.at) >= self.began_ms)
            .map(|entry| entry.delivery)
            .collect()
    }

    /// Reads the dead letters of a chunk that are sent now. Omits the deliveries in `later`.
    /// Entries of missing dead letters become [`ReplayState::Missing`].
    async fn read_items(
        &self,
        number: u32,
        entries: &mut [LedgerEntry],
        later: &[Uuid],
    ) -> anyhow::Result<Vec<ReplayItem>> {
        let planned = self.job.planned_of_chunk(number);
        let is_sent_now = |entry: &LedgerEntry| {
            entry.state == ReplayState::Intent && !later.contains(&entry.delivery)
        };
        let key_of = |letter| planned.iter().find(|planned| planned.letter() == letter);
        let wanted = entries.iter().filter(|entry| is_sent_now(entry));
        let wanted = wanted.filter_map(|entry| Some((entry.delivery, key_of(entry.letter)?)));
        let reads: Vec<_> =
            wanted.map(|(delivery, planned)| self.read_item(delivery, planned)).collect();
        let items: Vec<Option<ReplayItem>> =
            stream::iter(reads).buffered(CHUNK).try_collect().await?;
        let items: Vec<ReplayItem> = items.into_iter().flatten().collect();
        let found: HashSet<Uuid> = items.iter().map(|item| item.delivery).collect();
        let missing = entries
            .iter_mut()
            .filter(|entry| is_sent_now(entry) && !found.contains(&entry.delivery));
        missing.for_each(|entry| entry.state = ReplayState::Missing);
        Ok(items)
    }

    /// Reads one dead letter of the plan; `None` if its blob is missing or unreadable.
    async fn read_item(
        &self,
        delivery: Uuid,
        planned: &PlannedReplay,
    ) -> anyhow::Result<Option<ReplayItem>> {
        let (header, container) = (&self.job.header, &self.job.letters.container);
        let bytes = container.get(&planned.key).await?;
        // An unreadable blob must not block the others of its job.
        let letter = bytes.and_then(|bytes| read(&planned.key, &container.prefix, &bytes).ok());
        let job = Some(&header.job).filter(|_| header.results);
        let replay = job.and_then(|job| Replay::new(job, planned.letter()));
        Ok(letter.map(|letter| ReplayItem { delivery, letter, replay }))
    }

    /// Sends the items of a chunk at the permitted rate. Returns fewer results than items if a halt
    /// occurs during a wait.
    async fn send(&self, items: &[ReplayItem]) -> Vec<SendResult> {
        let (begun_ms, mut results) = (Machine.now_ms(), Vec::new());
        for burst in items.chunks(self.rate.burst(CHUNK)) {
            let due_ms = begun_ms.saturating_add(self.rate.wait_ms(results.len() as u64));
            let wait = Machine.sleep(due_ms.saturating_sub(Machine.now_ms()));
            // Send the first burst without waiting, so that every chunk makes progress.
            if !results.is_empty()
                && let Either::Right(_) = select(pin!(wait), self.halt.clone()).await
            {
                break;
            }
            results.extend(self.sender.send(burst).await);
        }
        results
    }
}

/// Returns the unfinished deliveries of a chunk, in the order of the plan.
fn open_deliveries(entries: &[LedgerEntry]) -> impl Iterator<Item = Uuid> {
    entries.iter().filter(|entry| entry.state == ReplayState::Intent).map(|entry| entry.delivery)
}

/// Restores the earlier entries of deliveries that were not sent, and removes their new entries.
fn restore(entries: &mut Vec<LedgerEntry>, before: Option<&[LedgerEntry]>, not_sent: &[Uuid]) {
    let before = before.unwrap_or_default();
    let earlier =
        |entry: &LedgerEntry| before.iter().find(|other| other.delivery == entry.delivery).cloned();
    let restored = |entry: LedgerEntry| match not_sent.contains(&entry.delivery) {
        true => earlier(&entry),
        false => Some(entry),
    };
    *entries = std::mem::take(entries).into_iter().filter_map(restored).collect();
}

impl LedgerEntry {
    fn apply(&mut self, result: SendResult) {
        self.at = moment::rfc3339(Machine.now_ms());
        (self.state, self.problem) = match result {
            SendResult::Sent => (ReplayState::Sent, None),
            SendResult::Refused(problem) => (ReplayState::Refused, Some(problem)),
            SendResult::Unfit(problem) => (ReplayState::Unfit, Some(problem)),
            // A dead letter that was sent without a response is as uncertain as after a crash.
            SendResult::Uncertain(problem) => (ReplayState::Intent, Some(problem)),
        };
    }
}

/// Sends several chunks at once. After a failure or a stop no further chunk begins. Chunks in
/// progress are finished, so that their entries are written.
fn until_failed<'a, F: Future<Output = anyhow::Result<SentChunk>> + 'a>(
    chunks: impl Stream<Item = F> + 'a,
    stop: &'a AtomicBool,
) -> impl Stream<Item = anyhow::Result<SentChunk>> + 'a {
    let run = move |chunk: F| async move {
        // Check again: another chunk may have failed since this one was taken from the stream.
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let result = chunk.await;
        let is_last = !matches!(result, Ok(SentChunk { stop: None, .. }));
        stop.fetch_or(is_last, Ordering::Relaxed);
        Some(result)
    };
    let wanted = chunks.take_while(|_| ready(!stop.load(Ordering::Relaxed)));
    wanted.map(run).buffer_unordered(CHUNKS_AT_ONCE).filter_map(ready)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use anyhow::ensure;

    use super::*;

    #[test]
    fn only_a_send_with_an_uncertain_result_stays_open() {
        let problem = || "no response".to_owned();
        for (result, state, is_open) in [
            (SendResult::Sent, ReplayState::Sent, false),
            (SendResult::Refused(problem()), ReplayState::Refused, false),
            (SendResult::Unfit(problem()), ReplayState::Unfit, false),
            (SendResult::Uncertain(problem()), ReplayState::Intent, true),
        ] {
            let mut entry = LedgerEntry {
                letter: Uuid::nil(),
                delivery: Uuid::nil(),
                state: ReplayState::Intent,
                at: String::new(),
                problem: None,
                end: None,
            };
            entry.apply(result);
            assert_eq!(entry.state, state);
            assert_eq!(entry.problem.is_none(), state == ReplayState::Sent);
            assert_eq!(open_deliveries(&[entry]).count() == 1, is_open);
        }
    }

    #[tokio::test]
    async fn after_a_chunk_that_has_failed_or_stops_the_run_none_begins() {
        for fails in [true, false] {
            let (stop, begun) = (AtomicBool::new(false), Mutex::new(Vec::new()));
            let begun = &begun;
            let chunk = |number: u32| async move {
                begun.lock().unwrap().push(number);
                ensure!(number != 2 || !fails, "it fails");
                let stop = (number == 2).then(|| "enough".to_owned());
                Ok(SentChunk { number, entries: Vec::new(), sent: Vec::new(), stop })
            };
            let results: Vec<_> =
                until_failed(stream::iter(1..9).map(chunk), &stop).collect().await;
            assert_eq!((results.len(), &begun.lock().unwrap()[..]), (2, &[1, 2][..]), "{fails}");
        }
    }
}
