//! One fake world behind all ports: time, randomness, queues, endpoints, storage, subscriptions.
//!
//! The world decides which faults disturb a call, and the effect of the call. Every message and
//! every request passes `checks` on its way and is recorded in the ledger. Rules that can only be
//! judged at the end are in `verdict`.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use delivery::ports::QueueName;
use delivery::subscription::catalogue::Catalogue;
use uuid::Uuid;

use super::adaptive::Loads;
use super::endpoints::{Behaviour, Served};
use super::faults::{Fault, SeededRandom};
use super::invocations::Invocation;
use super::ledger::Ledger;
use super::limits::Limits;
use super::probations::Watch;
use super::processes::Memory;
use super::queued::{Carried, Queued};
use super::queues::Queues;
use super::rules::Rules;
use super::sabotage::Saboteur;
use super::shared::SharedTable;
use super::storage::Storage;
use super::trace::Trace;
use super::versions::Versions;

/// The whole environment of the functions.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) now_ms: u64,
    /// The start of the world.
    pub(crate) began_ms: u64,
    pub(crate) random: SeededRandom,
    pub(crate) queues: Queues,
    pub(crate) storage: Storage,
    pub(crate) versions: Versions,
    pub(crate) rules: Vec<Rules>,
    pub(crate) behaviours: Vec<Behaviour>,
    /// The requests to an endpoint of limited capacity.
    pub(crate) served: Served,
    /// The behaviours of the sinks' addresses.
    pub(crate) sink_behaviours: Vec<Behaviour>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) loads: Loads,
    /// The table that all processes share.
    pub(crate) shared: SharedTable,
    pub(crate) ledger: Ledger,
    pub(crate) saboteur: Saboteur,
    pub(crate) limits: Limits,
    /// Every process so far.
    pub(crate) processes: Vec<Memory>,
    /// The period in which Lambda invokes no function.
    pub(crate) throttled_ms: Range<u64>,
    /// A queue that refuses every message, and the end of that time.
    pub(crate) refuses_until_ms: Option<(QueueName, u64)>,
    /// The end of the time in which the retry and slow queues refuse every message.
    pub(crate) no_retries_until_ms: Option<u64>,
    /// Wakers, each with the time that it waits for.
    pub(crate) timers: Vec<(u64, Waker)>,
    /// Every invocation so far.
    pub(crate) invocations: Vec<Invocation>,
    /// The index of the invocation that is being polled, or was polled last.
    pub(crate) current: usize,
    /// True while an invocation is being polled.
    pub(crate) polling: bool,
    /// The record whose requests always crash the function.
    pub(crate) crashing_record: Option<usize>,
    /// True if storing always makes the function panic.
    pub(crate) storage_panics: bool,
    pub(crate) trace: Trace,
}

/// A handle on the world; every function has one.
#[derive(Debug, Clone)]
pub(crate) struct World(Arc<Mutex<Inner>>);

/// The content that a port call touches. The ledger uses it to account for faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touched {
    Everything,
    /// A published record, by its message id.
    Record(String),
    Deliveries(Vec<Uuid>),
    Request(Vec<Uuid>),
    Blob,
}

impl Touched {
    pub(crate) fn single(id: Uuid) -> Self {
        Self::Deliveries(vec![id])
    }

    /// The content that a message touches.
    pub(crate) fn from_carried(carried: &Carried) -> Self {
        match (carried.id(), carried) {
            (Some(id), _) => Self::single(id),
            (None, Carried::Publication(publication)) => Self::Record(publication.message.clone()),
            (
                None,
                Carried::Nothing
                | Carried::Delivery(_)
                | Carried::DeadLetter(_)
                | Carried::ReplayEnd(_),
            ) => Self::Everything,
        }
    }
}

/// An effect that disturbs a port call.
#[derive(Debug)]
pub(crate) enum Disturbance {
    None,
    Yield,
    Delay(u64),
    Crash,
    Panic,
}

impl World {
    /// Wraps a world in a shared handle.
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Reads or changes the world.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.lock())
    }

    /// The locked world.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The time on the clock of the running function.
    pub(crate) fn clock_ms(&self) -> u64 {
        let process = self.invocations.get(self.current).map(|invocation| invocation.process);
        let memory = process.and_then(|process| self.processes.get(process));
        self.now_ms.saturating_add_signed(memory.map_or(0, |memory| memory.skew_ms))
    }

    /// The invocation that is being polled.
    pub(crate) fn invocation(&mut self) -> &mut Invocation {
        &mut self.invocations[self.current]
    }

    pub(crate) fn disturbance(&mut self, touched: &Touched) -> Disturbance {
        let of_poisonous =
            |id: &Uuid| self.ledger.known.get(id).map(|known| known.record) == self.crashing_record;
        let poisoned = match touched {
            Touched::Request(ids) => self.crashing_record.is_some() && ids.iter().any(of_poisonous),
            Touched::Blob => self.storage_panics && self.invocation().stores,
            Touched::Everything | Touched::Record(_) | Touched::Deliveries(_) => false,
        };
        if poisoned {
            self.random.count(Fault::CrashLoop);
            self.fork(&Touched::Everything);
            self.invocation().crashed |= *touched != Touched::Blob;
            return if *touched == Touched::Blob { Disturbance::Panic } else { Disturbance::Crash };
        }
        if self.random.injects(Fault::Crash) {
            self.trace(|| format!("CRASH {touched:?}"));
            self.fork(&Touched::Everything);
            self.invocation().crashed = true;
            return Disturbance::Crash;
        }
        if self.random.injects(Fault::Panic) {
            self.trace(|| format!("PANIC {touched:?}"));
            self.fork(touched);
            self.invocation().panics += 1;
            return Disturbance::Panic;
        }
        match self.random.below(100) {
            0..4 => Disturbance::Yield,
            4..7 if !self.random.quiet => Disturbance::Delay(1 + self.random.below(50)),
            _ => Disturbance::None,
        }
    }

    /// Records that a fault touched these messages of the running invocation.
    pub(crate) fn fork(&mut self, touched: &Touched) {
        let Self { invocations, current, ledger, .. } = self;
        let invocation = &mut invocations[*current];
        // A delivery that no message carries yet follows from the dead letter of another one.
        let carriers = |id: Uuid| {
            let from = |id: &Uuid| ledger.known.get(id).and_then(|known| known.from);
            let mut line = std::iter::successors(Some(id), from)
                .map(|id| invocation.messages_for(id, ledger.origin(id)));
            line.find(|held| !held.is_empty()).unwrap_or_default()
        };
        let held = match touched {
            Touched::Everything | Touched::Blob => Vec::new(),
            Touched::Record(message) => invocation.messages_of(message),
            Touched::Deliveries(ids) | Touched::Request(ids) => {
                ids.iter().flat_map(|id| carriers(*id)).collect()
            }
        };
        let all = || invocation.taken.iter().map(|(_, held)| held).collect();
        let held: Vec<&Queued> = if held.is_empty() { all() } else { held };
        held.iter().for_each(|held| ledger.fork(held));
        let copies: Vec<u64> = held.iter().map(|held| held.copy).collect();
        invocation.touched.extend(copies);
    }
}

impl Inner {
    /// The newest subscriptions. If they cannot be read, the last good ones, unless `newest_only`
    /// is set.
    pub(crate) fn catalogue(
        &mut self,
        looked_at_every_ms: u64,
        newest_only: bool,
    ) -> Result<Arc<Catalogue>, String> {
        let process = self.invocation().process;
        let newest =
            self.versions.look(&mut self.processes[process], self.now_ms, looked_at_every_ms);
        if self.versions.catalogue(newest).is_none() {
            self.random.count(Fault::Unusable);
        }
        let version = if newest_only { Some(newest) } else { self.versions.last_good(newest) };
        let found = version.and_then(|version| Some((version, self.versions.catalogue(version)?)));
        let Some((version, catalogue)) = found else {
            self.invocation().unreadable = true;
            return Err("the file is broken".to_owned());
        };
        self.invocation().versions.push(version);
        self.versions.brings(version).into_iter().for_each(|fault| self.random.count(fault));
        Ok(catalogue)
    }
}
