//! The bench measures, so it reads the clock: here and nowhere else.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now, for durations.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Now, as Lambda and SQS write it.
#[expect(clippy::disallowed_methods, reason = "a bench plays services that tell the time")]
pub(crate) fn unix_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
