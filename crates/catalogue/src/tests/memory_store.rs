//! Storage in memory that counts, has a clock, and fails when told to.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use delivery::ports::{Clock, JitterSource};
use delivery::subscription::schedule::Jitter;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::steps::step;
use crate::{Fetched, Id, Listed, Objects, StoreError};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does nothing.
    Before,
    /// It does its work, and the answer is an error.
    After,
    /// A replacement is done, and the answer is that somebody else was faster; other calls are done.
    LostAnswer,
}

/// What was asked since the counts were last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) reads: u64,
    pub(super) bytes_read: u64,
    pub(super) writes: u64,
    pub(super) bytes_written: u64,
}

struct Stored {
    bytes: Vec<u8>,
    modified_ms: u64,
}

struct State {
    objects: BTreeMap<String, Stored>,
    counts: Counts,
    calls: u64,
    /// The calls that fail, by their number, and how.
    faults: BTreeMap<u64, Fault>,
    /// So many of the next replacements are refused, as if somebody had been faster.
    refusals: u32,
    random: StdRng,
}

pub(super) struct MemoryStore {
    state: Mutex<State>,
    pub(super) now_ms: AtomicU64,
    /// How much time each call takes.
    pub(super) call_ms: AtomicU64,
}

/// At most so many keys are listed at once.
const PAGE: usize = 7;

impl MemoryStore {
    pub(super) fn new() -> Self {
        let random = StdRng::seed_from_u64(7);
        let (objects, counts) = (BTreeMap::new(), Counts::default());
        let faults = BTreeMap::new();
        let state = Mutex::new(State { objects, counts, calls: 0, faults, refusals: 0, random });
        Self { state, now_ms: AtomicU64::new(1_800_000_000_000), call_ms: AtomicU64::new(1) }
    }

    /// The call after so many others fails.
    pub(super) fn fail(&self, after: u64, fault: Fault) {
        let mut state = self.lock();
        let call = state.calls + after;
        state.faults.insert(call, fault);
    }

    /// So many of the next replacements are refused.
    pub(super) fn refuse(&self, replacements: u32) {
        self.lock().refusals = replacements;
    }

    /// How many faults have not happened yet; from now on there are none.
    pub(super) fn stop_failing(&self) -> usize {
        std::mem::take(&mut self.lock().faults).len()
    }

    pub(super) fn is_failing(&self) -> bool {
        !self.lock().faults.is_empty()
    }

    pub(super) fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.lock().counts)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.lock().objects.keys().cloned().collect()
    }

    pub(super) fn content(&self, key: &str) -> Option<Vec<u8>> {
        Some(self.lock().objects.get(key)?.bytes.clone())
    }

    pub(super) fn set(&self, key: &str, bytes: Vec<u8>) {
        let modified_ms = self.now_ms();
        self.lock().objects.insert(key.to_owned(), Stored { bytes, modified_ms });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// One call: others may take steps before and after it.
    async fn call<T>(
        &self,
        lost: impl FnOnce(T) -> T,
        work: impl FnOnce(&mut State, u64) -> T,
    ) -> Result<T, StoreError> {
        step().await;
        let result = {
            let now_ms =
                self.now_ms.fetch_add(self.call_ms.load(Ordering::SeqCst), Ordering::SeqCst);
            let mut state = self.lock();
            state.counts.calls += 1;
            let call = state.calls;
            state.calls += 1;
            let fault = state.faults.remove(&call);
            let failed = Err(StoreError("the storage does not answer".to_owned()));
            match fault {
                None => Ok(work(&mut state, now_ms)),
                Some(Fault::Before) => failed,
                Some(Fault::After) => {
                    work(&mut state, now_ms);
                    failed
                }
                Some(Fault::LostAnswer) => Ok(lost(work(&mut state, now_ms))),
            }
        };
        step().await;
        result
    }
}

impl State {
    fn write(&mut self, key: &str, bytes: Vec<u8>, modified_ms: u64) {
        self.counts.writes += 1;
        self.counts.bytes_written += bytes.len() as u64;
        self.objects.insert(key.to_owned(), Stored { bytes, modified_ms });
    }

    fn etag(&self, key: &str) -> Option<String> {
        // As of a bucket: a digest of the content.
        self.objects.get(key).map(|stored| Id::of(&stored.bytes).to_string())
    }
}

impl Objects for MemoryStore {
    async fn get(&self, key: &str, known_etag: Option<&str>) -> Result<Fetched, StoreError> {
        let work = |state: &mut State, _| {
            state.counts.reads += 1;
            let Some(etag) = state.etag(key) else { return Fetched::Missing };
            if known_etag == Some(&*etag) {
                return Fetched::Unchanged;
            }
            let bytes = state.objects[key].bytes.clone();
            state.counts.bytes_read += bytes.len() as u64;
            Fetched::Changed { bytes, etag }
        };
        self.call(|result| result, work).await
    }

    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.call(|()| (), |state, now_ms| state.write(key, bytes, now_ms)).await
    }

    async fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
    ) -> Result<bool, StoreError> {
        let work = |state: &mut State, now_ms| {
            let is_known = state.refusals == 0 && state.etag(key).as_deref() == known_etag;
            state.refusals = state.refusals.saturating_sub(1);
            if is_known {
                state.write(key, bytes, now_ms);
            }
            is_known
        };
        self.call(|_| false, work).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Listed>, StoreError> {
        let work = |state: &mut State, _| {
            let from = after.unwrap_or_default().to_owned();
            let keys = state.objects.range(from.clone()..).filter(|(key, _)| **key != from);
            let listed = keys.filter(|(key, _)| key.starts_with(prefix));
            let listed = listed
                .map(|(key, stored)| Listed { key: key.clone(), modified_ms: stored.modified_ms });
            listed.take(PAGE).collect()
        };
        self.call(|result| result, work).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        assert!(keys.len() <= crate::DELETE_MAX);
        let work = |state: &mut State, _| state.objects.retain(|key, _| !keys.contains(key));
        self.call(|()| (), work).await
    }
}

impl Clock for MemoryStore {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    /// One step for each ten milliseconds.
    async fn sleep(&self, wait_ms: u64) {
        for _ in 0..wait_ms / 10 {
            step().await;
        }
        self.now_ms.fetch_add(wait_ms, Ordering::SeqCst);
    }
}

impl JitterSource for MemoryStore {
    fn next_jitter(&self) -> Jitter {
        Jitter(self.lock().random.random())
    }
}
