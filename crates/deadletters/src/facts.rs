//! Facts about a dead letter, which the modules for causes, filters and statistics use. Pure.

use delivery::deadletter::stored::StoredDeadLetter;

/// Maximum number of characters of a response that causes and searches read. Blobs of other writers
/// may contain longer responses.
pub(crate) const RESPONSE_MAX_CHARS: usize = 4_096;

/// Returns the time at which the event became a dead letter. Blobs of other writers may lack this
/// time. It is then the end of the last attempt, the start of this attempt, or the time of
/// publication: the first that is known. The result is limited to the latest valid timestamp.
#[must_use]
pub fn decided_ms(letter: &StoredDeadLetter) -> Option<u64> {
    let end_of_last =
        letter.history.last().map(|attempt| attempt.at_ms.saturating_add(attempt.duration_ms));
    let times = [letter.decided_ms, end_of_last, letter.last_attempt_ms, letter.published_ms];
    let latest_ms = u64::try_from(jiff::Timestamp::MAX.as_millisecond()).unwrap_or(u64::MAX);
    times.into_iter().flatten().next().map(|at_ms| at_ms.min(latest_ms))
}
