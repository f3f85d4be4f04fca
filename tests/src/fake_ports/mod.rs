//! One fake of all ports of both functions, for every suite that runs them.
//!
//! The fake responds as its test configures it, and records every call. Each file is about one port: its configuration,
//! its recorded calls, and its methods. Clones share everything but the random value of [`FakePorts::with_random`], so
//! that two clones can be two processes.
//!
//! The simulation has ports of its own, over the same [`MemoryTable`](crate::memory_table::MemoryTable): it may crash,
//! delay or repeat every call, before and after its effect. The two implementations of `Table` stay separate: three of
//! six operations have faults here, and another operation is checked there. A shared one would have more hooks than lines.

mod blobs;
mod consents;
mod destinations;
mod identity;
mod queues;
pub mod reactions;
mod subscriptions;
mod table;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::ports::{Clock, JitterSource};
use delivery::subscription::catalogue::Catalogue;
use delivery::waits::Jitter;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::its_own_ports;
use crate::virtual_clock::VirtualClock;
pub use queues::Fault;

/// The start of a test, unless it chooses another one: 2026-11-20, 07:03 UTC.
pub const NOW_MS: u64 = 1_795_158_180_000;

/// A port whose calls never end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hanging {
    /// Writing a blob.
    PutBlob,
    /// Hiding a message.
    ChangeVisibility,
    /// Storing a consent.
    KeepConsent,
    /// Every request to the table.
    Table,
}

/// All ports of both functions.
#[derive(Clone)]
pub struct FakePorts {
    clock: VirtualClock,
    start_ms: u64,
    jitter: Jitter,
    state: Arc<Mutex<State>>,
}

/// The configuration and the recorded calls of each port.
#[derive(Default)]
struct State {
    blobs: blobs::Blobs,
    consents: consents::StoredConsents,
    destinations: destinations::Destinations,
    identity: identity::Identity,
    queues: queues::Queues,
    subscriptions: subscriptions::Subscriptions,
    table: table::FaultyTable,
    hanging: Option<Hanging>,
    slept_ms: u64,
    random: Option<StdRng>,
}

impl FakePorts {
    /// Ports with these subscriptions, whose destinations answer 200 at once.
    #[must_use]
    pub fn new(catalogue: Catalogue) -> Self {
        let ports = Self::without_subscriptions();
        ports.state().subscriptions.set(catalogue);
        ports
    }

    /// Ports whose subscriptions cannot be read.
    #[must_use]
    pub fn without_subscriptions() -> Self {
        let clock = VirtualClock::starting_at(NOW_MS);
        Self { clock, start_ms: NOW_MS, jitter: Jitter::NONE, state: Arc::default() }
    }

    /// The test starts at this time.
    #[must_use]
    pub fn starting_at(self, start_ms: u64) -> Self {
        Self { clock: VirtualClock::starting_at(start_ms), start_ms, ..self }
    }

    /// Every random value of this clone is this one; without it, jitter adds nothing.
    #[must_use]
    pub fn with_random(self, jitter: u32) -> Self {
        Self { jitter: Jitter(jitter), ..self }
    }

    /// Random values follow from a seed.
    #[must_use]
    pub fn with_seeded_jitter(self, seed: u64) -> Self {
        self.state().random = Some(StdRng::seed_from_u64(seed));
        self
    }

    /// No call of this port ever ends.
    #[must_use]
    pub fn with_hanging(self, port: Hanging) -> Self {
        self.state().hanging = Some(port);
        self
    }

    /// Runs a future: whenever it cannot make progress, the clock jumps to the next time that somebody waits for.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.clock.run(future)
    }

    /// Lets time pass.
    pub fn advance_ms(&self, wait_ms: u64) {
        self.clock.advance(wait_ms);
    }

    /// The time at which the test started.
    #[must_use]
    pub fn start_ms(&self) -> u64 {
        self.start_ms
    }

    /// The time since the start of the test.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        self.now_ms() - self.start_ms
    }

    /// The sum of all sleeps.
    #[must_use]
    pub fn slept_ms(&self) -> u64 {
        self.state().slept_ms
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn hang(&self, port: Hanging) {
        if self.state().hanging == Some(port) {
            std::future::pending::<()>().await;
        }
    }
}

its_own_ports!(FakePorts);

impl Clock for FakePorts {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    async fn sleep(&self, wait_ms: u64) {
        self.clock.sleep(wait_ms).await;
        self.state().slept_ms += wait_ms;
    }
}

impl JitterSource for FakePorts {
    fn next_jitter(&self) -> Jitter {
        let mut state = self.state();
        state.random.as_mut().map_or(self.jitter, |random| Jitter(random.random()))
    }
}
