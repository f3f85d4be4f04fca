//! A clock that moves only when a test or a sleep advances it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use delivery::ports::Clock;

/// The clock; its clones show the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub(crate) fn advance(&self, ms: u64) {
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
