//! The machine's clock and random numbers. No other file reads them.
//!
//! All other code receives time and jitter as values or through ports; lints enforce this. One
//! offset for the whole process corrects a wrong clock; [`crate::aws_time`] computes the offset.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delivery::ports::{Clock, JitterSource};
use delivery::waits::Jitter;
use rand::TryRngCore as _;
use rand::rngs::OsRng;

/// The correction of the machine's clock. `Relaxed` is enough, because it publishes no other data.
static OFFSET_MS: AtomicI64 = AtomicI64::new(0);

/// The clock and the random numbers of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Machine {
    /// Returns the time of the machine's clock, without the correction.
    pub(crate) fn own_ms(self) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "the one place where the time is read")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the current correction of the clock, in milliseconds.
    pub(crate) fn offset_ms() -> i64 {
        OFFSET_MS.load(Ordering::Relaxed)
    }

    /// Returns random bytes from the operating system, which may be used as a key.
    ///
    /// # Errors
    /// Fails if the operating system cannot provide them.
    pub fn random_bytes<const COUNT: usize>(self) -> io::Result<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        OsRng.try_fill_bytes(&mut bytes).map_err(io::Error::other)?;
        Ok(bytes)
    }

    /// Sets the correction of the clock, in milliseconds.
    pub(crate) fn set_offset_ms(offset_ms: i64) {
        OFFSET_MS.store(offset_ms, Ordering::Relaxed);
    }
}

impl Clock for Machine {
    fn now_ms(&self) -> u64 {
        self.own_ms().saturating_add_signed(Self::offset_ms())
    }

    async fn sleep(&self, wait_ms: u64) {
        // The timer is monotonic, but the clock is not. Callers compare clock readings, so sleep
        // until the clock has advanced by the wait. Use the uncorrected clock: a change of the
        // offset must neither end nor extend a sleep.
        let until_ms = self.own_ms().saturating_add(wait_ms);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        while self.own_ms() < until_ms {
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

/// Implements `Clock` for a type, with the clock of this machine.
macro_rules! machine_clock {
    ([$($parameters:tt)*] $ports:ty) => {
        impl<$($parameters)*> delivery::ports::Clock for $ports {
            fn now_ms(&self) -> u64 {
                $crate::machine::Machine.now_ms()
            }

            async fn sleep(&self, wait_ms: u64) {
                $crate::machine::Machine.sleep(wait_ms).await;
            }
        }
    };
}
pub(crate) use machine_clock;
