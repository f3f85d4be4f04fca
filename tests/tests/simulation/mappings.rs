//! Event source mappings: they receive messages, gather batches, and invoke a function with each
//! batch. While no function may be invoked, the batch stays hidden until its visibility timeout
//! ends.

use delivery::ports::QueueName;
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

use super::faults::Fault;
use super::limits::Limits;
use super::queued::Queued;
use super::world::Inner;

/// A batch without an invocation is given up after this time, before its messages become visible
/// again.
const STALE_MS: u64 = 10 * MINUTE_MS;

/// A batch that is being gathered, or waits for its invocation.
#[derive(Debug)]
struct Gathered {
    queue: QueueName,
    batch: Vec<Queued>,
    most: usize,
    since_ms: u64,
    until_ms: u64,
}

impl Gathered {
    fn is_ready(&self, now_ms: u64) -> bool {
        self.batch.len() >= self.most || self.until_ms <= now_ms
    }
}

/// The mappings of all queues.
#[derive(Debug, Default)]
pub(crate) struct Mappings(Vec<Gathered>);

impl Mappings {
    /// Returns the next batch of a queue for an invocation.
    pub(crate) fn next(
        &mut self,
        world: &mut Inner,
        queue: QueueName,
        running: usize,
    ) -> Option<Vec<Queued>> {
        let full = running >= world.limits.concurrency_of(queue);
        loop {
            let now_ms = world.now_ms;
            let is_ready =
                |gathered: &Gathered| gathered.queue == queue && gathered.is_ready(now_ms);
            if let Some(ready) = self.0.iter().position(is_ready).filter(|_| !full) {
                return Some(self.0.remove(ready).batch);
            }
            if !self.gather(world, queue, running) {
                let waits = full && self.0.iter().any(is_ready);
                if waits {
                    world.random.count(Fault::ConcurrencyReached);
                }
                return None;
            }
        }
    }

    /// Receives messages of a queue into a batch; returns true if there were any.
    fn gather(&mut self, world: &mut Inner, queue: QueueName, running: usize) -> bool {
        let now_ms = world.now_ms;
        if !world.queues.has_visible(queue, now_ms) {
            return false;
        }
        let of_queue = || self.0.iter().filter(|gathered| gathered.queue == queue);
        let begun = self
            .0
            .iter()
            .position(|gathered| gathered.queue == queue && !gathered.is_ready(now_ms));
        let free = match world.limits.overpulls {
            true => world.limits.pollers,
            false => world.limits.concurrency_of(queue).saturating_sub(running),
        };
        if begun.is_none() && of_queue().count() >= world.limits.pollers.min(free) {
            return false;
        }
        // Lambda receives batches of any size up to the maximum.
        let most = match begun {
            Some(begun) => self.0[begun].most - self.0[begun].batch.len(),
            None if world.limits.full_batches => Limits::batch_of(queue),
            None => 1 + world.random.below(Limits::batch_of(queue) as u64) as usize,
        };
        let received = world.queues.receive(queue, most, now_ms, &world.limits);
        received.redriven.iter().for_each(|queued| world.note_redriven(queue, queued));
        if received.quota_reached {
            world.random.count(Fault::QuotaReached);
        }
        let (batch, any) = (received.batch, !received.redriven.is_empty());
        if batch.is_empty() {
            return any;
        }
        batch.iter().for_each(|queued| world.check_receives(queue, queued));
        if world.throttles(queue, &batch) {
            return true;
        }
        match begun {
            Some(begun) => self.0[begun].batch.extend(batch),
            None => {
                let (since_ms, until_ms) = (now_ms, now_ms + world.limits.window_of(queue));
                self.0.push(Gathered { queue, batch, most, since_ms, until_ms });
            }
        }
        true
    }

    /// Gives up batches that waited too long for an invocation.
    pub(crate) fn give_up(&mut self, world: &mut Inner) {
        let now_ms = world.now_ms;
        self.0.retain(|gathered| {
            let stale = gathered.since_ms + STALE_MS <= now_ms;
            if stale {
                world.random.count(Fault::Throttled);
                gathered
                    .batch
                    .iter()
                    .for_each(|queued| world.queues.excuse(gathered.queue, queued.copy));
            }
            !stale
        });
    }

    /// The next time at which a batch is complete or given up.
    pub(crate) fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let next = |gathered: &Gathered| {
            if gathered.until_ms > now_ms {
                gathered.until_ms
            } else {
                gathered.since_ms + STALE_MS
            }
        };
        self.0.iter().map(next).min()
    }
}

impl Inner {
    /// True if Lambda refuses to invoke a function with a batch. The messages of the batch stay
    /// hidden.
    fn throttles(&mut self, queue: QueueName, batch: &[Queued]) -> bool {
        if self.limits.processes && self.random.injects(Fault::Throttled) {
            let lasts_ms = self.random.pick(&[0, 30 * SECOND_MS, 15 * MINUTE_MS, HOUR_MS]);
            self.throttled_ms = self.now_ms..self.now_ms + lasts_ms + 1;
        }
        let throttled = self.throttled_ms.contains(&self.now_ms);
        if throttled {
            self.trace(|| format!("THROTTLED {} messages of {queue:?}", batch.len()));
            batch.iter().for_each(|queued| self.queues.excuse(queue, queued.copy));
        }
        throttled
    }

    /// Checks that a message is received once, or as often as its hold plans. More receives need an
    /// earlier failure, and a wait is not a failure.
    fn check_receives(&mut self, queue: QueueName, queued: &Queued) {
        let planned = queued.planned_receives(queue);
        self.ledger.most_receives = self.ledger.most_receives.max(queued.receives);
        // An invocation that a fault touched may not have returned the message yet.
        let unreturned =
            || self.invocations.iter().any(|invocation| invocation.touched.contains(&queued.copy));
        let explained = planned + queued.excused;
        if queued.receives > explained && !(queued.receives == explained + 1 && unreturned()) {
            self.ledger.record_violation(format!(
                "{} of {queue:?} was received {} times, but its waits and the faults explain {}",
                queued.message, queued.receives, explained
            ));
        }
    }
}
