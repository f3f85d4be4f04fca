//! A clock for tests with real I/O: a sleep advances it at once. [`VirtualClock`](crate::virtual_clock::VirtualClock)
//! instead advances when no future can make progress, which is never known beside real I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use delivery::ports::Clock;

/// The clock, in milliseconds from zero. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Lets time pass.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    async fn sleep(&self, wait_ms: u64) {
        self.advance(wait_ms);
        // Lets other tasks run, as a real sleep would.
        tokio::task::yield_now().await;
    }
}
