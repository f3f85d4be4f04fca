//! The limits of AWS, scaled down so that a small world reaches them.

use delivery::ports::QueueName;
use delivery::time::duration::SECOND_MS;

use super::faults::SeededRandom;

/// The largest error of the clock of a process.
pub(crate) const SKEW_MAX_MS: u64 = 2_000;

/// The limits of one world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Concurrent invocations of the events queue. The other queues have fewer.
    pub(crate) concurrency: usize,
    /// The batch window of a mapping.
    pub(crate) window_ms: u64,
    /// The number of batches that a mapping gathers at the same time.
    pub(crate) pollers: usize,
    /// True if mappings gather batches even while all invocations are busy. AWS does not do this,
    /// but it is a harder test.
    pub(crate) overpulls: bool,
    /// The quota of messages in flight of a queue: 120,000 on AWS.
    pub(crate) in_flight: usize,
    /// True if messages carry groups, and a noisy group is received after the others.
    pub(crate) fair: bool,
    /// True if there are several processes, so that invocations share memory only in succession.
    /// Otherwise, one process runs all invocations.
    pub(crate) processes: bool,
    /// The largest clock error of a process in this world.
    pub(crate) skew_ms: u64,
    /// Percentage of invocations that start a new process although one is idle.
    pub(crate) restarts: u64,
    /// True if batches are as large as possible whenever there are enough messages.
    pub(crate) full_batches: bool,
}

impl Limits {
    /// Limits that no small world reaches.
    pub(crate) const NONE: Self = Self {
        concurrency: usize::MAX,
        window_ms: 0,
        pollers: usize::MAX,
        overpulls: true,
        in_flight: 120_000,
        fair: false,
        processes: false,
        skew_ms: 0,
        restarts: 0,
        full_batches: false,
    };

    /// Draws the limits of a world. A world without faults has no limits, because each attempt must
    /// be made exactly when it is due.
    pub(crate) fn choose(random: &mut SeededRandom) -> Self {
        if random.quiet || random.percent(50) {
            return Self::NONE;
        }
        Self {
            concurrency: random.pick(&[1, 2, 5]),
            window_ms: random.pick(&[0, 1, 5, 300]) * SECOND_MS,
            pollers: 1 + random.below(3) as usize,
            overpulls: true,
            in_flight: random.pick(&[10, 20, 120_000]),
            fair: random.percent(50),
            processes: true,
            skew_ms: SKEW_MAX_MS,
            restarts: 3,
            full_batches: random.percent(20),
        }
    }

    /// The number of concurrent invocations of dispatch.
    pub(crate) fn functions(&self) -> u32 {
        let queues = [QueueName::Events, QueueName::Retry, QueueName::Slow, QueueName::Isolation];
        let all = || queues.map(|queue| self.concurrency_of(queue)).iter().sum::<usize>();
        if self.processes { u32::try_from(all()).unwrap_or(u32::MAX) } else { 1 }
    }

    /// The number of concurrent invocations of a queue.
    pub(crate) fn concurrency_of(self, queue: QueueName) -> usize {
        match queue {
            QueueName::Events => self.concurrency,
            QueueName::Retry => self.concurrency.div_ceil(2),
            QueueName::Slow
            | QueueName::Isolation
            | QueueName::DeadLetter
            | QueueName::LastResort => self.concurrency.div_ceil(5),
        }
    }

    /// The maximum number of records in a batch of a queue.
    pub(crate) fn batch_of(queue: QueueName) -> usize {
        match queue {
            QueueName::Isolation => 1,
            QueueName::Events
            | QueueName::Retry
            | QueueName::DeadLetter
            | QueueName::LastResort => 10,
            // Like the mapping in the template.
            QueueName::Slow => 500,
        }
    }

    /// The batch window of a queue. The slow queue has a window of one second, as in the template,
    /// unless one process runs everything.
    pub(crate) fn window_of(self, queue: QueueName) -> u64 {
        match queue {
            QueueName::Events | QueueName::Retry => self.window_ms,
            QueueName::Slow if self.processes => SECOND_MS,
            QueueName::Slow
            | QueueName::Isolation
            | QueueName::DeadLetter
            | QueueName::LastResort => 0,
        }
    }
}
