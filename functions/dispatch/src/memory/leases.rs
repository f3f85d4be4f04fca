//! The permits that this process holds of destinations that take so many requests at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use delivery::delivery::health::DestinationKey;
use tokio::sync::Notify;
use uuid::Uuid;

/// The destinations for which this process holds permits, or did.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Who holds them.
    pub(crate) holder: OnceLock<Uuid>,
    own: Mutex<HashMap<DestinationKey, Arc<OwnLease>>>,
}

/// The permits of one destination that this process holds.
#[derive(Debug, Default)]
pub(crate) struct OwnLease {
    /// How many deliveries wait for one.
    pub(crate) waiting: AtomicU32,
    held: Mutex<Held>,
    /// Locked while the document is changed.
    pub(crate) asking: tokio::sync::Mutex<()>,
    pub(crate) freed: Notify,
}

/// How many permits it holds, until when, and how many are in use.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) count: u32,
    pub(crate) until_ms: u64,
    pub(crate) in_use: u32,
    pub(crate) asked_ms: Option<u64>,
}

impl OwnLease {
    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for an attempt that ends before this time.
    pub(crate) fn take(self: &Arc<Self>, ends_ms: u64) -> Option<LeasedPermit> {
        let mut held = self.held();
        let is_free = held.in_use < held.count && ends_ms <= held.until_ms;
        is_free.then(|| {
            held.in_use += 1;
            LeasedPermit(Arc::clone(self))
        })
    }
}

/// A permit to make one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct LeasedPermit(Arc<OwnLease>);

impl Drop for LeasedPermit {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.in_use = held.in_use.saturating_sub(1);
        drop(held);
        self.0.freed.notify_waiters();
    }
}

impl Leases {
    /// The permits of this destination.
    pub(crate) fn of(&self, key: DestinationKey) -> Arc<OwnLease> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(own.entry(key).or_default())
    }

    /// Those of which nothing is in use, to be returned.
    pub(crate) fn idle(&self) -> Vec<(DestinationKey, Arc<OwnLease>)> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |lease: &Arc<OwnLease>| {
            let held = lease.held();
            held.count > 0 && held.in_use == 0
        };
        own.iter().filter(|(_, it)| is_idle(it)).map(|(key, it)| (*key, Arc::clone(it))).collect()
    }
}

/// One more delivery that waits for a permit.
pub(crate) struct Waiting<'a>(&'a OwnLease);

impl<'a> Waiting<'a> {
    pub(crate) fn of(own: &'a OwnLease) -> Self {
        own.waiting.fetch_add(1, Ordering::Relaxed);
        Self(own)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
