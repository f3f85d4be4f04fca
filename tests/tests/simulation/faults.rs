//! Injected faults: kinds, probabilities and counts.
//!
//! Every fault is drawn from the seed's random numbers and counted where it happens, so that the
//! summary reports which faults were survived. A seed has a budget of faults, because a world with
//! endless faults would never end.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A queue delivers a message twice.
    DeliveredTwice,
    /// A delayed message is received before its delay has passed.
    DeliveredEarly,
    /// A message is received long after its delay has passed.
    DeliveredLate,
    /// The queue has the message, but the sender gets an error.
    SendAnswerLost,
    /// The queue refuses the message.
    SendFailed,
    /// The endpoint has the event, but its response is lost.
    HttpAnswerLost,
    /// The function crashes between two steps.
    Crash,
    /// The function panics within a step.
    Panic,
    /// The invocation has little time.
    ShortDeadline,
    /// The platform kills an invocation that had too little time.
    Killed,
    /// A record's visibility cannot be changed.
    ChangeVisibilityFailed,
    /// The subscriptions cannot be read.
    Unusable,
    /// A subscription is paused.
    Paused,
    /// A subscription is removed.
    Removed,
    /// A subscription allows fewer attempts than before.
    FewerAttempts,
    /// Storage refuses a blob.
    StorageRefused,
    /// Storage has no such container.
    ContainerMissing,
    /// The blob is written, but the writer gets an error.
    StorageAnswerLost,
    /// One event, or storage itself, crashes the function every time.
    CrashLoop,
    /// A queue moves a message to its redrive target after too many receives.
    Redriven,
    /// A record moves to isolation.
    Isolated,
    /// Lambda does not invoke a function, and the messages it received stay hidden.
    Throttled,
    /// All invocations that a mapping may have are running.
    ConcurrencyReached,
    /// A queue has as many messages in flight as it may have.
    QuotaReached,
    /// A process ends while it is idle.
    Restarted,
    /// A call takes seconds, or times out.
    SlowCall,
    /// A call is throttled until its tries are used up.
    CallThrottled,
    /// KMS is throttled: every message of a batch is refused.
    BatchRefused,
    /// A publisher writes attributes that only we may write.
    Forged,
    /// The table cannot be reached.
    Unshared,
}

impl Fault {
    /// Every kind.
    pub(crate) const ALL: [Self; 30] = [
        Self::DeliveredTwice,
        Self::DeliveredEarly,
        Self::DeliveredLate,
        Self::SendAnswerLost,
        Self::SendFailed,
        Self::HttpAnswerLost,
        Self::Crash,
        Self::Panic,
        Self::ShortDeadline,
        Self::Killed,
        Self::ChangeVisibilityFailed,
        Self::Unusable,
        Self::Paused,
        Self::Removed,
        Self::FewerAttempts,
        Self::StorageRefused,
        Self::ContainerMissing,
        Self::StorageAnswerLost,
        Self::CrashLoop,
        Self::Redriven,
        Self::Isolated,
        Self::Throttled,
        Self::ConcurrencyReached,
        Self::QuotaReached,
        Self::Restarted,
        Self::SlowCall,
        Self::CallThrottled,
        Self::BatchRefused,
        Self::Forged,
        Self::Unshared,
    ];
}

/// The number of occurrences of each kind.
pub(crate) type Counts = BTreeMap<Fault, u64>;

/// The random numbers of a seed, and its budget of faults.
#[derive(Debug)]
pub(crate) struct SeededRandom {
    rng: StdRng,
    budget: u32,
    preferred: Fault,
    /// Occurrences of each fault so far.
    pub(crate) counts: Counts,
    /// True if the world has no faults.
    pub(crate) quiet: bool,
}

impl SeededRandom {
    /// The random numbers of a seed. Every fourth world has no faults; each other one prefers one
    /// kind.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let quiet = seed.is_multiple_of(4);
        let budget = if quiet { 0 } else { rng.random_range(1..=10) };
        let preferred = Fault::ALL[rng.random_range(0..Fault::ALL.len())];
        Self { rng, budget, preferred, counts: Counts::new(), quiet }
    }

    /// The random numbers of a seed with this budget of faults, most of them of one kind.
    pub(crate) fn with_faults(seed: u64, budget: u32, preferred: Fault) -> Self {
        Self { budget, preferred, quiet: false, ..Self::new(seed) }
    }

    /// A number from 0 up to, but not including, `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.rng.random_range(0..end.max(1))
    }

    /// `true` in this percentage of cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Picks one of these values.
    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.rng.random_range(0..values.len())]
    }

    /// A value for jitter.
    pub(crate) fn jitter(&mut self) -> u32 {
        self.rng.random()
    }

    /// Decides whether this fault happens now; if so, counts it.
    pub(crate) fn injects(&mut self, fault: Fault) -> bool {
        // A preferred kind makes combinations of the same fault likely within one seed.
        let chance = if fault == self.preferred { 15 } else { 2 };
        if self.budget == 0 || !self.percent(chance) {
            return false;
        }
        self.budget -= 1;
        self.count(fault);
        true
    }

    /// Counts a fault that the world planned itself.
    pub(crate) fn count(&mut self, fault: Fault) {
        *self.counts.entry(fault).or_default() += 1;
    }
}
