//! How much work of an invocation is under way: late answers are waited for until little after the
//! last of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Exchanges of one invocation that are kept open at a time; each is a socket.
const OPEN_MAX: usize = 100;

/// How much work of an invocation does something other than wait for late answers.
#[derive(Debug)]
pub(crate) struct ActiveWork {
    count: AtomicUsize,
    none_left: Notify,
    open: Semaphore,
}

impl ActiveWork {
    /// Starts with this many pieces of work.
    pub(crate) fn of(count: usize) -> Self {
        Self {
            count: AtomicUsize::new(count),
            none_left: Notify::new(),
            open: Semaphore::new(OPEN_MAX),
        }
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

    /// Waits until no work is left but such as waits for late answers.
    pub(crate) async fn none_left(&self) {
        // Made before the count is read, or a notification in between would be missed.
        let notified = self.none_left.notified();
        if self.count.load(Ordering::Acquire) > 0 {
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
