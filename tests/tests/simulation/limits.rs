//! The limits of AWS, scaled down so that a small world reaches them.

use delivery::ports::QueueName;
use delivery::time::duration::SECOND_MS;

use super::faults::SeededRandom;

/// The most that the clock of a process is wrong.
pub(crate) const SKEW_MAX_MS: u64 = 2_000;

/// The limits of one world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How many invocations of the events queue run at a time; the other queues have fewer.
    pub(crate) concurrency: usize,
    /// How long a mapping gathers a batch.
    pub(crate) window_ms: u64,
    /// How many batches a mapping gathers at a time.
    pub(crate) pollers: usize,
    /// Batches are gathered also while as many invocations run as may: not on AWS, where what waits is
    /// handed out as late as possible, but harder.
    pub(crate) overpulls: bool,
    /// How many messages of a queue may be received and not deleted: 120,000 on AWS.
    pub(crate) in_flight: usize,
    /// Messages carry groups, and a noisy group is received after the others.
    pub(crate) fair: bool,
    /// Invocations share no memory unless one follows the other in the same process. Otherwise all
    /// share one process.
    pub(crate) processes: bool,
    /// How wrong the clock of a process is at most.
    pub(crate) skew_ms: u64,
    /// How many of a hundred invocations begin a new process although there is an idle one.
    pub(crate) restarts: u64,
    /// Batches are as large as they may be, if there are enough messages.
    pub(crate) full_batches: bool,
}

impl Limits {
    /// None that a small world reaches.
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

    /// The limits of a world; without faults there are none, because there every attempt has to be
    /// made exactly when it is due.
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

    /// The sum of the invocations of dispatch that run at a time.
    pub(crate) fn functions(&self) -> u32 {
        let queues = [QueueName::Events, QueueName::Retry, QueueName::Slow, QueueName::Isolation];
        let all = || queues.map(|queue| self.concurrency_of(queue)).iter().sum::<usize>();
        if self.processes { u32::try_from(all()).unwrap_or(u32::MAX) } else { 1 }
    }

    /// How many invocations of a queue run at a time.
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

    /// How many records of a queue an invocation gets at most.
    pub(crate) fn batch_of(queue: QueueName) -> usize {
        match queue {
            QueueName::Isolation => 1,
            QueueName::Events
            | QueueName::Retry
            | QueueName::DeadLetter
            | QueueName::LastResort => 10,
            // As its mapping in the template.
            QueueName::Slow => 500,
        }
    }

    /// How long the mapping of a queue waits to fill a batch, as in the template. One process that runs everything has no window
    /// but that of new events.
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
