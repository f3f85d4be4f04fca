//! The machine's clock and random numbers: the only file that reads either.
//!
//! Everything else takes time and jitter as values or through the ports; lints enforce that.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delivery::ports::{Clock, JitterSource};
use delivery::subscription::schedule::Jitter;

/// The clock and the random numbers of the machine this runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Clock for Machine {
    fn now_ms(&self) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "the one place where the time is read")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    async fn sleep(&self, wait_ms: u64) {
        // The timer is monotonic and the clock is not. Callers compare clock readings, so the sleep
        // lasts until the clock has passed the wait.
        let until_ms = self.now_ms().saturating_add(wait_ms);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        while self.now_ms() < until_ms {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl JitterSource for Machine {
    fn next_jitter(&self) -> Jitter {
        #[expect(clippy::disallowed_methods, reason = "the one place where randomness comes from")]
        let next_jitter = rand::random();
        Jitter(next_jitter)
    }
}
