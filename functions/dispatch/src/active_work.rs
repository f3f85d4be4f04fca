//! Counts the active work of an invocation.
//!
//! Three kinds of waiting depend on the count:
//! - The wait for a late response ends at most ten seconds after all other work has ended.
//! - An attempt at a slow destination is abandoned when all other work has ended.
//! - The wait for slow credentials is abandoned when all other work has ended.
//!
//! Reading a part and processing a group count as work, even while a group waits for a retry in
//! place. These three kinds of waiting do not count (`pause`), nor does waiting for a free slot or
//! a permit.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Maximum number of exchanges per invocation that stay open for a late response; each one uses a
/// socket.
const OPEN_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct ActiveWork {
    count: AtomicUsize,
    none_left: Notify,
    /// Number of times that `none_left` found a count of zero.
    ends: AtomicUsize,
    open: Semaphore,
}

impl ActiveWork {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            count: AtomicUsize::new(count),
            none_left: Notify::new(),
            ends: AtomicUsize::new(0),
            open: Semaphore::new(OPEN_MAX),
        }
    }

    pub(crate) fn more(&self, count: usize) {
        self.count.fetch_add(count, Ordering::AcqRel);
    }

    /// Subtracts one from the count, because a piece of work has ended or is paused.
    pub(crate) fn one_less(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Wakes every waiter. `notify_one` would wake only one of them, or store a permit if
            // none waits.
            self.none_left.notify_waiters();
        }
    }

    /// Pauses one piece of work until the guard is dropped.
    pub(crate) fn pause(&self) -> PauseGuard<'_> {
        self.one_less();
        PauseGuard(self)
    }

    /// Returns a permit to keep one more exchange open, or `None` at the limit.
    pub(crate) fn open(&self) -> Option<SemaphorePermit<'_>> {
        // Does not wait: beyond the limit, an exchange times out as it does without a
        // `lateResponseWindow`.
        self.open.try_acquire().ok()
    }

    /// Waits until all work has ended or is paused.
    ///
    /// Two races decide the shape of this loop. Work that ends can pass its permit to a paused
    /// waiter that was not polled yet, so the count may be zero for a moment. Therefore the loop
    /// reads the count again after each notification. A notification wakes all waiters, and the
    /// first one becomes active again. Therefore each waiter also returns if another one has found
    /// the count at zero (`ends`).
    pub(crate) async fn none_left(&self) {
        let ends = self.ends.load(Ordering::Acquire);
        loop {
            // Register before reading the count (see `Notify::notified`), or a wake-up is lost.
            let notified = self.none_left.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                self.ends.fetch_add(1, Ordering::AcqRel);
                return;
            }
            if self.ends.load(Ordering::Acquire) != ends {
                return;
            }
            notified.await;
        }
    }
}

/// Keeps a piece of work paused. Dropping the guard, including when a panic unwinds, makes the work
/// active again.
pub(crate) struct PauseGuard<'a>(&'a ActiveWork);

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
    }
}
