//! Computes every wait of a delivery, a record or a message.
//!
//! This module is separate so that one module defines all waits. Many of them depend on the longest
//! delay of a message, [`DELAY_MAX_MS`]. The functions are pure: counts, times and jitter are
//! arguments.
//!
//! | waiting thing | duration | function |
//! |---|---|---|
//! | a delivery for its next attempt | by its schedule and the last response, with jitter | [`Schedule`], [`retry_ms`] |
//! | a delivery for which the invocation had no time | none, then 1 s longer each time, at most 30 s | [`no_time_ms`] |
//! | a delivery for its destination's consent | 1 min, then as long as it has waited, at most 15 min | [`consent_ms`] |
//! | a destination that did not consent, for the next handshake | 1 min, then twice as long each time, at most 15 min | [`handshake_ms`] |
//! | a record, until the subscriptions can be read | 5 min, then twice as long each time, at most an hour | [`unknown_ms`] |
//! | a message with an attribute of a newer version | 1, 2, 4, 8 and 15 min | [`unread_ms`] |
//! | a dead letter that storage refuses | until 10 s, 1 min, 5 min after the decision, then 5 min each | [`storage_ms`] |
//! | a message that its queue refuses | up to 100 ms, then twice as long each time; five times | [`resend_ms`] |
//! | a token whose request failed | until 5 s after that request | [`token_ms`] |
//! | a message in its queue | whole seconds, at most 900; a longer wait is several equal delays | [`delay_seconds`] |
//! | a record that waits in its queue | hidden for its wait, at most 11 hours | [`hidden_seconds`] |
//! | a record that returns to isolation | hidden for 1 min, then twice as long each time, at most 2 hours | [`isolated_seconds`] |
//! | a record without an attempt that is too large to be re-enqueued | hidden for 1 s per receive, at most 900 s | [`unattempted_seconds`] |
//! | a record that is too large for our attribute | hidden for an hour | [`TOO_LARGE_SECONDS`] |
//!
//! The waits for a destination that fails, is slow or has a limit depend on its health:
//! `delivery/health` and `table`.

mod held;
mod queue;
mod retry;
mod schedule;

pub use self::held::{
    UNREAD_MS, consent_ms, handshake_ms, no_time_ms, token_ms, unknown_ms, unread_for_ms, unread_ms,
};
pub use self::queue::{
    DELAY_MAX_MS, REPLAY_END_SECONDS, TOO_LARGE_SECONDS, delay_seconds, hidden_seconds,
    isolated_seconds, unattempted_seconds,
};
pub use self::retry::{ARRIVAL_MS, Jitter, Spread, resend_ms, retry_ms, storage_ms};
pub use self::schedule::{Kind, Moments, Schedule};
