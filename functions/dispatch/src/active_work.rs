//! Counts the work of an invocation that is under way. A late response is awaited until ten seconds after the last of it has ended, a
//! response of a slow destination until it has ended.
//!
//! Work is reading a part and running a group, also while the group sleeps before a retry in place. These do not count while they wait:
//! an attempt that may be abandoned, an exchange that is open for a late response, and a request without room (`pause`).

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Exchanges of one invocation that are kept open at a time; each is a socket.
const OPEN_MAX: usize = 100;

/// The work of an invocation.
#[derive(Debug)]
pub(crate) struct ActiveWork {
    count: AtomicUsize,
    none_left: Notify,
    /// How often somebody found that no work was left.
    ends: AtomicUsize,
    open: Semaphore,
}

impl ActiveWork {
    /// Starts with this many pieces of work.
    pub(crate) fn of(count: usize) -> Self {
        Self {
            count: AtomicUsize::new(count),
            none_left: Notify::new(),
            ends: AtomicUsize::new(0),
            open: Semaphore::new(OPEN_MAX),
        }
    }

    /// Adds this number of pieces of work.
    pub(crate) fn more(&self, count: usize) {
        self.count.fetch_add(count, Ordering::AcqRel);
    }

    /// One piece of work is done, or does nothing but wait.
    pub(crate) fn one_less(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Not `notify_one`: all late exchanges wait for it, and no permit may be left behind.
            self.none_left.notify_waiters();
        }
    }

    /// One piece of work does nothing but wait, until the guard is dropped.
    pub(crate) fn pause(&self) -> PauseGuard<'_> {
        self.one_less();
        PauseGuard(self)
    }

    /// A permit to keep one more exchange open.
    pub(crate) fn open(&self) -> Option<SemaphorePermit<'_>> {
        // Not waited for: beyond the limit an exchange has failed as without a late window.
        self.open.try_acquire().ok()
    }

    /// Waits until no work is left but such as is paused.
    ///
    /// Work that ends hands its permit to the next, which is paused until it is polled: then nothing
    /// seems left for a moment. So the count is read again after each notification. All that wait are
    /// told together, and the first to go on is work again, which must not keep the others waiting.
    pub(crate) async fn none_left(&self) {
        let ends = self.ends.load(Ordering::Acquire);
        loop {
            // Made before the count is read, or a notification in between would be missed.
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

/// Work that is paused. Dropping the guard, also by a panic, makes it active again.
pub(crate) struct PauseGuard<'a>(&'a ActiveWork);

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
    }
}
