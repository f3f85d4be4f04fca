//! Runs the functions over the world in virtual time: receives, polls, kills, acknowledges.
//!
//! Invocations run concurrently, each polled by hand. When none can make progress, time jumps to
//! the next scheduled event.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use deadletter::DeadLetters;
use delivery::ports::QueueName;
use delivery::time::duration::{DAY_MS, SECOND_MS};
use dispatch::{Deadline, Dispatch};

use super::faults::Fault;
use super::ledger::Invocation;
use super::publish::ElementKind;
use super::queued::Queued;
use super::queues::READ;
use super::rules::TOPIC;
use super::storage::DEFAULT_CONTAINER;
use super::world::World;

/// The end of the simulated time.
pub(crate) const LIFETIME_MS: u64 = 20 * DAY_MS;
/// The time limit of an invocation without a fault.
const TIMEOUT_MS: u64 = 120 * SECOND_MS;
/// The limit of polling rounds; reaching it means that something spins.
const ROUNDS_MAX: u32 = 400_000;

/// Set by a waker: somebody wants to be polled.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A running invocation.
struct Running {
    number: usize,
    future: Pin<Box<dyn Future<Output = Vec<String>>>>,
    flag: Arc<Flag>,
    ends_ms: u64,
}

/// The functions, over one world.
pub(crate) struct Driver {
    world: World,
    dispatch: Arc<Dispatch<World>>,
    letters: Arc<DeadLetters<World>>,
    running: Vec<Running>,
}

impl Driver {
    /// Creates the functions.
    pub(crate) fn new(world: World) -> Self {
        let container = || DEFAULT_CONTAINER.parse().expect("a container");
        let topic = TOPIC.parse().expect("a topic");
        let dispatch = Arc::new(Dispatch::new(world.clone(), container(), Some(topic)));
        let letters = Arc::new(DeadLetters::new(world.clone(), container()));
        Self { world, dispatch, letters, running: Vec::new() }
    }

    /// Runs until every queue is empty or the simulated time is over.
    pub(crate) fn run(&mut self) {
        for _ in 0..ROUNDS_MAX {
            READ.into_iter().for_each(|queue| self.receive(queue));
            if self.poll() {
                continue;
            }
            if !self.jump() {
                return;
            }
        }
        self.world.with(|world| {
            world.ledger.record_violation("the functions never stop making progress".to_owned());
        });
    }

    /// Starts invocations for everything that can be received from a queue.
    fn receive(&mut self, queue: QueueName) {
        loop {
            let batch = self.world.with(|world| {
                // Lambda receives batches of any size up to the maximum.
                let alone = matches!(queue, QueueName::Isolation | QueueName::Unprocessed);
                let most = if alone { 1 } else { 1 + world.random.below(10) as usize };
                let received = world.queues.receive(queue, most, world.now_ms);
                received.redriven.iter().for_each(|held| world.note_redriven(queue, held));
                received.batch
            });
            if batch.is_empty() {
                return;
            }
            self.start(queue, batch);
        }
    }

    fn start(&mut self, queue: QueueName, batch: Vec<Queued>) {
        let records: Vec<_> = batch.iter().map(|held| held.record(queue)).collect();
        let stores = matches!(queue, QueueName::DeadLetter | QueueName::Unprocessed);
        let (number, now_ms, timeout_ms) = self.world.with(|world| {
            let short = world.random.injects(Fault::ShortDeadline);
            let timeout_ms = if short {
                world.random.pick(&[500, 1_500, 4_000, 7_000, 16_000])
            } else {
                TIMEOUT_MS
            };
            world.current = world.invocations.len();
            world.print(|| {
                let what: Vec<_> =
                    records.iter().map(|record| (&record.message, record.receives)).collect();
                format!("RECEIVES {what:?} from {queue:?}")
            });
            let taken = batch.iter().map(|held| (queue, held.clone())).collect();
            world.invocations.push(Invocation { stores, taken, short, ..Invocation::default() });
            batch.iter().for_each(|held| world.maybe_duplicate(queue, held));
            (world.current, world.now_ms, timeout_ms)
        });
        let (dispatch, letters) = (Arc::clone(&self.dispatch), Arc::clone(&self.letters));
        let future: Pin<Box<dyn Future<Output = Vec<String>>>> = if stores {
            Box::pin(async move { letters.handle(&records).await })
        } else {
            let deadline = Deadline::new(now_ms, now_ms + timeout_ms);
            Box::pin(async move { dispatch.handle(&records, &deadline).await })
        };
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.running.push(Running { number, future, flag, ends_ms: now_ms + timeout_ms });
    }

    /// Polls every invocation that was woken; returns whether there was one.
    fn poll(&mut self) -> bool {
        let mut polled = false;
        let world = self.world.clone();
        self.running.retain_mut(|running| {
            if !running.flag.0.swap(false, Ordering::Relaxed) {
                return true;
            }
            polled = true;
            world.with(|world| world.current = running.number);
            let waker = Waker::from(Arc::clone(&running.flag));
            let mut context = Context::from_waker(&waker);
            // A panic that escapes the function ends the process on Lambda, but not the simulation.
            let poll = std::panic::catch_unwind(AssertUnwindSafe(|| {
                running.future.as_mut().poll(&mut context)
            }));
            match poll {
                Ok(Poll::Ready(returned_records)) => {
                    world.with(|world| world.acknowledge(&returned_records));
                    false
                }
                // The function failed as a whole: every record is redelivered.
                Err(_) => false,
                Ok(Poll::Pending) => !world.with(|world| world.invocation().crashed),
            }
        });
        polled
    }

    /// Advances time to the next event; returns whether there is one within the simulated time.
    fn jump(&mut self) -> bool {
        let ends_ms = self.running.iter().map(|running| running.ends_ms).min();
        let now_ms = self.world.with(|world| {
            let timer_ms = world.timers.iter().map(|(at_ms, _)| *at_ms).min();
            let next_ms =
                [ends_ms, timer_ms, world.queues.next_ms()].into_iter().flatten().min()?;
            if next_ms > world.began_ms + LIFETIME_MS {
                return None;
            }
            world.now_ms = world.now_ms.max(next_ms);
            let now_ms = world.now_ms;
            world.timers.retain(|(at_ms, waker)| {
                let waits = *at_ms > now_ms;
                if !waits {
                    waker.wake_by_ref();
                }
                waits
            });
            world.queues.delete_expired(now_ms);
            Some(now_ms)
        });
        let Some(now_ms) = now_ms else { return false };
        let world = self.world.clone();
        self.running.retain(|running| {
            // An invocation that was woken just now may still finish in time.
            let ended = now_ms >= running.ends_ms && !running.flag.0.load(Ordering::Relaxed);
            if ended {
                world.with(|world| {
                    world.current = running.number;
                    world.print(|| "KILLED".to_owned());
                    world.note_killed();
                });
            }
            !ended
        });
        true
    }
}

impl super::world::Inner {
    /// A queue moved a message to its redrive target.
    fn note_redriven(&mut self, queue: QueueName, held: &Queued) {
        self.random.count(Fault::Redriven);
        self.print(|| format!("REDRIVES {} from {queue:?}", held.message));
        if queue == QueueName::DeadLetter {
            return;
        }
        let unprocessed = || {
            let mut ids = self.ledger.unprocessed.keys();
            ids.find(|id| Some(self.ledger.origin(**id)) == held.origin()).copied()
        };
        let id = held.carried.id().or_else(unprocessed);
        if let Some(record) = held.origin() {
            self.ledger.redriven_records.insert(record.to_owned());
        }
        if let Some(id) = id {
            self.ledger.must_end.insert(id);
            *self.ledger.letters.entry(id).or_default() += 1;
        }
    }

    /// A queue may deliver a message a second time.
    fn maybe_duplicate(&mut self, queue: QueueName, held: &Queued) {
        if !self.random.injects(Fault::DeliveredTwice) {
            return;
        }
        self.ledger.fork(held);
        let visible_ms = self.now_ms + self.random.pick(&[0, 30, 1_000, 500_000]);
        let copy = self.queues.number();
        self.print(|| format!("TWICE {}", held.message));
        let receipt = String::new();
        self.queues.put(queue, Queued { copy, visible_ms, receipt, ..held.clone() });
    }

    /// Handles the batch response as Lambda does: failed records stay, all others are deleted.
    fn acknowledge(&mut self, returned_records: &[String]) {
        let taken = std::mem::take(&mut self.invocation().taken);
        self.print(|| format!("returns {returned_records:?} to the queue"));
        if returned_records.iter().any(|id| !taken.iter().any(|(_, held)| held.message == *id)) {
            self.ledger.record_violation(
                "a batch response names a message that was not received".to_owned(),
            );
        }
        for (queue, held) in &taken {
            if returned_records.contains(&held.message) {
                continue;
            }
            self.queues.delete(*queue, held.copy);
            self.note_replies_owed(held);
            if let Some(record) = held.origin()
                && !self.invocation().stores
                && !self.invocation().forwarded.contains(record)
            {
                self.note_acknowledged(record);
            }
        }
        self.invocation().taken = taken;
    }

    /// A published record is acknowledged, and does not wait as a message: from now on each of its
    /// deliveries has to end.
    fn note_acknowledged(&mut self, message: &str) {
        self.ledger.acknowledged.insert(message.to_owned());
        let record = self.ledger.published.iter().position(|(of, _)| of == message);
        let record = record.expect("every published record is known");
        let versions = self.invocation().versions.clone();
        for ((subscription, of, index), id) in self.ledger.ids.clone() {
            if of != record {
                continue;
            }
            let element = &self.ledger.published[record].1.elements[index];
            let wanted = match subscription {
                None => true,
                Some(number) => {
                    let facts = self.versions.facts(&versions, number);
                    let takes = !self.rules[number].filtered || element.kind == ElementKind::Wanted;
                    takes && !facts.is_empty() && facts.iter().all(Option::is_some)
                }
            };
            if wanted {
                self.ledger.must_end.insert(id);
            }
        }
    }
}
