//! Replays dead letters: the original event, only to its own subscription, as a new delivery with
//! a new id and no attempts.
//!
//! First the plan, complete and counted; then chunks of ten, each written to the ledger before it
//! is sent and again after. Killed at any time, a job is resumed from its [`ledger`], which names
//! what is uncertain then. What became of the deliveries is in its [`ends`]. Separate from [`sender`], which knows targets and no ledgers.
//!
//! Promises: every dead letter of the plan is sent at least once, or has an entry that says why
//! not. Repeats are within the chunks that a resume names. Does not promise order.

pub mod ends;
pub(crate) mod ledger_files;
pub mod sender;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use adapters::machine::Machine;
use anyhow::{Context as _, bail, ensure};
use delivery::deadletter::stored::{StoredDeadLetter, read};
use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::delivery::replay::Replay;
use delivery::ports::Clock as _;
use delivery::subscription::name::NAMELESS;
use delivery::time::moment;
use futures::future::{BoxFuture, Either, FutureExt as _, Shared, ready, select};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use self::ends::{EndCounts, Ends};
use self::sender::{ReplayItem, ReplaySender, ReplayTarget, SendResult};
use crate::dead_letters::DeadLetters;
use crate::facts::decided_ms;
use crate::ledger::{
    self, CHUNK, JobHeader, LedgerEntry, PlannedReplay, ReplayCounts, ReplayState, start_chunk,
    write_entries, write_plan,
};
use crate::rate::Rate;

pub use self::ledger_files::{Jobs, Replayed, UnreadableLedger};

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

/// What would be sent, counted exactly.
#[derive(Debug, Default)]
pub struct ReplayPlan {
    letters: Vec<PlanEntry>,
    /// How many dead letters have no subscription to be sent to, by what is in its place.
    pub without_subscription: BTreeMap<String, u64>,
    /// How many dead letters are answers that are no events, and cannot be sent as replies.
    pub malformed_replies: u64,
    /// The number of dead letters of each subscription that would be sent.
    pub subscriptions: BTreeMap<String, u64>,
}

/// A dead letter of a plan.
#[derive(Debug)]
struct PlanEntry {
    decided_ms: Option<u64>,
    planned: PlannedReplay,
    subscription: String,
    /// The dead letter that it was a replay of.
    replay_of: Option<Uuid>,
    is_set_aside: bool,
}

impl ReplayPlan {
    /// Adds a dead letter. One that its subscription cannot take is counted, and only planned if it can be
    /// sent elsewhere: it has none, or is an answer that is no event.
    pub fn add(&mut self, letter: &StoredDeadLetter, target: &ReplayTarget) {
        let name = letter.subscription.to_string();
        let has_subscription = ![MALFORMED, UNKNOWN_TOPIC, UNPROCESSED, NAMELESS]
            .contains(&letter.subscription.name.as_str());
        if matches!(target, ReplayTarget::Subscription) {
            if !has_subscription {
                *self.without_subscription.entry(name).or_default() += 1;
                return;
            }
            if letter.is_malformed_reply() {
                self.malformed_replies += 1;
                return;
            }
        }
        *self.subscriptions.entry(name.clone()).or_default() += 1;
        self.letters.push(PlanEntry {
            decided_ms: decided_ms(letter),
            planned: PlannedReplay { letter: letter.id, key: letter.key.clone() },
            subscription: name,
            replay_of: letter.replay.as_ref().map(|replay| replay.letter),
            is_set_aside: letter.is_set_aside(),
        });
    }

    /// Leaves out what was replayed before: dead letters that a job has sent or may have sent, and those
    /// that a replay has become unless they were `named` or set aside. Returns how many.
    ///
    /// # Errors
    /// A ledger that cannot be read: its job may have sent any of them.
    pub fn leave_out_replayed(
        &mut self,
        replayed: &Replayed,
        named: bool,
    ) -> Result<u64, UnreadableLedger> {
        if let Some(ledger) = replayed.unreadable.first() {
            return Err(ledger.clone());
        }
        Ok(self.retain(|entry| {
            let is_replayed = replayed.records.contains_key(&entry.planned.letter);
            (named || entry.is_set_aside || entry.replay_of.is_none()) && !is_replayed
        }))
    }

    /// The subscriptions of dead letters that were set aside: of those that a person has stopped.
    #[must_use]
    pub fn set_aside(&self) -> BTreeSet<&str> {
        let set_aside = self.letters.iter().filter(|entry| entry.is_set_aside);
        set_aside.map(|entry| entry.subscription.as_str()).collect()
    }

    /// Leaves out what was set aside of subscriptions that are still stopped. Returns how many.
    pub fn leave_out_stopped(&mut self, is_stopped: impl Fn(&str) -> bool) -> u64 {
        self.retain(|entry| !(entry.is_set_aside && is_stopped(&entry.subscription)))
    }

    /// True if each of them is a replay that was set aside again.
    #[must_use]
    pub fn are_all_back(&self) -> bool {
        self.letters.iter().all(|entry| entry.is_set_aside && entry.replay_of.is_some())
    }

    /// Leaves out dead letters of which a replay is in the plan: the event of both is the same, and would
    /// be sent twice. Returns how many.
    pub fn leave_out_older(&mut self) -> u64 {
        let older: HashSet<Uuid> = self.letters.iter().filter_map(|it| it.replay_of).collect();
        self.retain(|entry| !older.contains(&entry.planned.letter))
    }

    fn retain(&mut self, is_kept: impl Fn(&PlanEntry) -> bool) -> u64 {
        let before = self.letters.len();
        self.letters.retain(is_kept);
        self.subscriptions.clear();
        for entry in &self.letters {
            *self.subscriptions.entry(entry.subscription.clone()).or_default() += 1;
        }
        (before - self.letters.len()) as u64
    }

    /// The key of one of its dead letters.
    #[must_use]
    pub fn any_key(&self) -> Option<&str> {
        self.letters.first().map(|entry| entry.planned.key.as_str())
    }

    /// The number of dead letters that would be sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// True if nothing would be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// The ids of the dead letters that would be sent.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        self.letters.iter().map(|entry| entry.planned.letter).collect()
    }

    /// In the order of sending: the oldest decision first.
    fn ordered(mut self) -> Vec<PlannedReplay> {
        self.letters.sort_by_key(|entry| (entry.decided_ms, entry.planned.letter));
        self.letters.into_iter().map(|entry| entry.planned).collect()
    }
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
            let entries = write_entries(self.chunks.values().flatten());
            self.letters.container.put(&key, entries).await?;
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
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;
    use crate::ledger::ReplayRecord;
    use crate::samples::letter;

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

    #[test]
    fn a_plan_is_ordered_from_the_oldest_to_the_newest_and_counts_what_has_no_subscription() {
        let mut plan = ReplayPlan::default();
        for number in [3, 1, 2] {
            plan.add(&letter(number), &ReplayTarget::Subscription);
        }
        let without_subscription = StoredDeadLetter {
            subscription: "shop/orders/_malformed".parse().unwrap(),
            ..letter(4)
        };
        plan.add(&without_subscription, &ReplayTarget::Subscription);
        assert_eq!((plan.len(), plan.without_subscription["shop/orders/_malformed"]), (3, 1));
        plan.add(&without_subscription, &ReplayTarget::Topic("a/b".parse().unwrap()));
        let order: Vec<u128> =
            plan.ordered().iter().map(|planned| planned.letter.as_u128()).collect();
        assert_eq!(order, [1, 2, 3, 4]);
    }

    #[test]
    fn what_was_replayed_is_left_out_and_of_a_letter_and_its_replay_only_the_newer_is_sent() {
        let replay = |of| Replay::new("j", Uuid::from_u128(of));
        let again = |number, of| StoredDeadLetter { replay: replay(of), ..letter(number) };
        let plan = || {
            let mut plan = ReplayPlan::default();
            for letter in [letter(1), letter(2), again(3, 1), again(4, 3)] {
                plan.add(&letter, &ReplayTarget::Subscription);
            }
            plan
        };
        let entry = LedgerEntry {
            letter: Uuid::from_u128(1),
            delivery: Uuid::from_u128(3),
            state: ReplayState::Sent,
            at: String::new(),
            problem: None,
        };
        let records = HashMap::from([(entry.letter, ReplayRecord { job: "j".into(), entry })]);
        let replayed = Replayed { records, unreadable: Vec::new() };
        let mut by_default = plan();
        assert_eq!(by_default.leave_out_replayed(&replayed, false), Ok(3));
        assert_eq!(by_default.ids(), [Uuid::from_u128(2)]);
        // One that is named is a dead letter like any other until it was replayed itself.
        let mut named = plan();
        assert_eq!(named.leave_out_replayed(&replayed, true), Ok(1));
        assert_eq!(named.ids(), [2, 3, 4].map(Uuid::from_u128));
        assert_eq!(by_default.subscriptions["shop/orders/billing"], 1);
        let mut again = plan();
        assert_eq!(again.leave_out_older(), 2);
        assert_eq!(again.ids(), [Uuid::from_u128(2), Uuid::from_u128(4)]);
    }

    #[test]
    fn what_was_set_aside_again_is_sent_again_unless_its_subscription_is_still_stopped() {
        let mut first = letter(1);
        first.reason = "Paused".to_owned();
        let mut back = letter(2);
        back.reason = "DestinationDisabled".to_owned();
        back.replay = Replay::new("j", first.id);
        let mut plan = ReplayPlan::default();
        for letter in [&first, &back, &letter(3)] {
            plan.add(letter, &ReplayTarget::Subscription);
        }
        assert_eq!(plan.set_aside(), BTreeSet::from(["shop/orders/billing"]));
        let entry = LedgerEntry {
            letter: first.id,
            delivery: Uuid::from_u128(9),
            state: ReplayState::Sent,
            at: moment::rfc3339(7),
            problem: None,
        };
        let records = HashMap::from([(first.id, ReplayRecord { job: "j".into(), entry })]);
        let replayed = Replayed { records, unreadable: Vec::new() };
        assert_eq!(plan.leave_out_replayed(&replayed, false), Ok(1));
        assert_eq!(plan.ids(), [back.id, letter(3).id]);
        assert!(!plan.are_all_back());
        assert_eq!(plan.leave_out_stopped(|_| false), 0);
        assert_eq!(plan.leave_out_stopped(|name| name == "shop/orders/billing"), 1);
        assert_eq!(plan.ids(), [letter(3).id]);
    }
}
