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

use delivery::ports::QueueName;
use delivery::time::duration::{DAY_MS, SECOND_MS};
use dispatch::Deadline;

use super::faults::Fault;
use super::invocations::Invocation;
use super::mappings::Mappings;
use super::processes::{Function, Processes};
use super::queued::Queued;
use super::queues::READ;
use super::world::{Inner, World};

/// The end of the simulated time.
pub(crate) const LIFETIME_MS: u64 = 20 * DAY_MS;
/// The time limit of an invocation without a fault: twice the default of `DispatchTimeout`.
const TIMEOUT_MS: u64 = 120 * SECOND_MS;
/// The limits of polling rounds: for each world, and in addition for each published record. A world
/// that reaches its limit spins.
const ROUNDS_MAX: usize = 2_000_000;
const ROUNDS_OF_EACH: usize = 200;

/// A flag that a waker sets when its invocation wants to be polled.
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
    queue: QueueName,
    process: usize,
    function: Function,
    future: Pin<Box<dyn Future<Output = Vec<String>>>>,
    flag: Arc<Flag>,
    ends_ms: u64,
}

/// Runs the functions over one world.
pub(crate) struct Driver {
    world: World,
    mappings: Mappings,
    processes: Processes,
    running: Vec<Running>,
}

impl Driver {
    /// Creates a driver without any process.
    pub(crate) fn new(world: World) -> Self {
        let (mappings, processes) = (Mappings::default(), Processes::default());
        Self { world, mappings, processes, running: Vec::new() }
    }

    /// Runs until every queue is empty or the simulated time is over.
    pub(crate) fn run(&mut self) {
        self.run_while(|_| true);
    }

    /// Runs like `run`, but stops when `goes_on` returns false.
    pub(crate) fn run_while(&mut self, goes_on: impl Fn(&Inner) -> bool) {
        let published = self.world.with(|world| world.ledger.published.len());
        for _ in 0..ROUNDS_MAX + ROUNDS_OF_EACH * published {
            if !self.world.with(|world| goes_on(world)) {
                return;
            }
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

    /// Starts the invocations that a queue's mapping may start now.
    fn receive(&mut self, queue: QueueName) {
        loop {
            let running =
                self.running.iter().filter(|invocation| invocation.queue == queue).count();
            let world = self.world.clone();
            let next = world.with(|world| self.mappings.next(world, queue, running));
            let Some(batch) = next else { return };
            self.start(queue, batch);
        }
    }

    fn start(&mut self, queue: QueueName, batch: Vec<Queued>) {
        let records = self.world.with(|world| world.records(queue, &batch));
        let stores = matches!(queue, QueueName::DeadLetter);
        let (process, function) = self.processes.take(&self.world, stores);
        let (number, ends_ms, deadline) = self.world.with(|world| {
            let short = world.random.injects(Fault::ShortDeadline);
            let timeout_ms = if short {
                world.random.pick(&[500, 1_500, 4_000, 7_000, 16_000])
            } else {
                TIMEOUT_MS
            };
            world.current = world.invocations.len();
            world.trace(|| {
                let received: Vec<_> =
                    records.iter().map(|record| (&record.message, record.receives)).collect();
                format!("RECEIVES {received:?} from {queue:?} in process {process}")
            });
            let taken = batch.iter().map(|held| (queue, held.clone())).collect();
            let started_ms = world.now_ms;
            let new =
                Invocation { stores, taken, short, process, started_ms, ..Invocation::default() };
            world.invocations.push(new);
            batch.iter().for_each(|held| world.maybe_duplicate(queue, held));
            let ends_ms = started_ms + timeout_ms;
            (world.current, ends_ms, Deadline::new(world.clock_ms(), ends_ms))
        });
        let running = function.clone();
        let future: Pin<Box<dyn Future<Output = Vec<String>>>> = match running {
            Function::Letters(letters) => Box::pin(async move { letters.handle(&records).await }),
            Function::Dispatch(dispatch) => {
                Box::pin(async move { dispatch.handle(&records, &deadline).await })
            }
        };
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.running.push(Running { number, queue, process, function, future, flag, ends_ms });
    }

    /// Polls every invocation that was woken; returns true if there was one.
    fn poll(&mut self) -> bool {
        let mut polled = false;
        let Self { world, processes, running, .. } = self;
        running.retain_mut(|running| {
            if !running.flag.0.swap(false, Ordering::Relaxed) {
                return true;
            }
            polled = true;
            world.with(|world| world.current = running.number);
            let waker = Waker::from(Arc::clone(&running.flag));
            let mut context = Context::from_waker(&waker);
            // A panic that escapes the function ends the process on Lambda, but not the simulation.
            world.with(|world| world.polling = true);
            let poll = std::panic::catch_unwind(AssertUnwindSafe(|| {
                running.future.as_mut().poll(&mut context)
            }));
            world.with(|world| world.polling = false);
            match poll {
                Ok(Poll::Ready(returned_records)) => {
                    world.with(|world| world.acknowledge(&returned_records));
                    processes.release(world, running.process, running.function.clone());
                    false
                }
                // The function failed as a whole: every record is redelivered.
                Err(_) => {
                    world.with(Inner::note_unanswered);
                    processes.end(running.process);
                    false
                }
                Ok(Poll::Pending) => {
                    let crashed = world.with(|world| world.invocation().crashed);
                    if crashed {
                        world.with(Inner::note_unanswered);
                        processes.end(running.process);
                    }
                    !crashed
                }
            }
        });
        polled
    }

    /// Advances time to the next event; returns true if there is one within the simulated time.
    fn jump(&mut self) -> bool {
        let ends_ms = self.running.iter().map(|running| running.ends_ms).min();
        let mappings = &mut self.mappings;
        let now_ms = self.world.with(|world| {
            let gathered_ms = mappings.next_ms(world.now_ms);
            let timer_ms = world.timers.iter().map(|(at_ms, _)| *at_ms).min();
            let next_ms = [ends_ms, timer_ms, world.queues.next_ms(), gathered_ms]
                .into_iter()
                .flatten()
                .min()?;
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
            let expired = world.queues.delete_expired(now_ms);
            expired.iter().for_each(|(queue, queued)| world.note_expired(*queue, queued));
            mappings.give_up(world);
            Some(now_ms)
        });
        let Some(now_ms) = now_ms else { return false };
        let Self { world, processes, running, .. } = self;
        running.retain(|running| {
            // An invocation that was woken just now may still finish in time.
            let ended = now_ms >= running.ends_ms && !running.flag.0.load(Ordering::Relaxed);
            if ended {
                world.with(|world| {
                    world.current = running.number;
                    world.trace(|| "KILLED".to_owned());
                    world.note_killed();
                    world.note_unanswered();
                });
                processes.end(running.process);
            }
            !ended
        });
        true
    }
}
