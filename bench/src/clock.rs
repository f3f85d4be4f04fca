//! The only module of the bench that reads the clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the current instant, for measuring durations.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the current time in milliseconds since 1970, as Lambda and SQS format times.
#[expect(
    clippy::disallowed_methods,
    reason = "the fake services put the time into their responses"
)]
pub(crate) fn unix_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
