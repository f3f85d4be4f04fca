//! Describes the attempts of a stored delivery, one line for each. Pure.
//!
//! Separate because the history of a delivery may omit entries in the middle. The history also
//! contains deferrals, which are not attempts.

use delivery::deadletter::stored::StoredAttempt;
use delivery::delivery::HISTORY_FIRST;
use delivery::delivery::outcome::Outcome;

use super::{at, counted, line, rounded, status_name};

/// The attempts of a delivery, some of which may be omitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempts<'a> {
    /// The total number of attempts.
    pub(crate) count: u32,
    /// The stored entries, oldest first.
    pub(crate) history: &'a [StoredAttempt],
    /// The number of entries that were omitted from the middle of the history.
    pub(crate) omitted: u32,
    /// The time when the event was published, if known.
    pub(crate) published_ms: Option<u64>,
}

impl Attempts<'_> {
    /// Returns one line for each stored entry, and one line with the number of omitted entries.
    pub(crate) fn lines(self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut number = 0;
        for (index, attempt) in self.history.iter().enumerate() {
            if self.omitted > 0 && index == HISTORY_FIRST {
                lines.push(format!("{} more, not stored", self.omitted));
                number = self.count.saturating_sub(count(self.history.get(index..)));
            }
            number += u32::from(!is_put_off(attempt));
            let next = self.history.get(index + 1).filter(|_| !self.is_before_omitted(index));
            lines.push(format!(
                "{}{}: {}{}",
                name(attempt, number),
                if index == 0 { since(self.published_ms, attempt) } else { String::new() },
                happened(attempt),
                next.map(|next| until(attempt, next)).unwrap_or_default()
            ));
        }
        let unknown = self.count.saturating_sub(count(Some(self.history)));
        if self.omitted == 0 && unknown > 0 {
            let more = if self.history.is_empty() { "" } else { " more" };
            let (attempts, were) =
                (counted(unknown.into(), "attempt"), if unknown == 1 { "was" } else { "were" });
            lines.push(format!("{attempts}{more} {were} made, but not stored in the blob"));
        }
        lines
    }

    fn is_before_omitted(&self, index: usize) -> bool {
        self.omitted > 0 && index + 1 == HISTORY_FIRST
    }
}

/// Describes the outcome and the duration of an attempt.
fn happened(attempt: &StoredAttempt) -> String {
    let took = rounded(attempt.duration_ms);
    let words = without_duration(&attempt.outcome, attempt.status);
    match (attempt.status, attempt.outcome.parse()) {
        (None, Ok(Outcome::TimedOut)) => format!("{words} within {took}"),
        // No request was sent, so there is no duration.
        (None, Ok(Outcome::Blocked | Outcome::Probation)) => words,
        (Some(_) | None, Ok(_) | Err(_)) => format!("{words} after {took}"),
    }
}

/// Describes the outcome of an attempt: the status with its name, or the reason why there was no
/// response.
pub(crate) fn without_duration(outcome: &str, status: Option<u16>) -> String {
    if let Some(status) = status {
        let name = status_name(status).map(|name| format!(" {name}")).unwrap_or_default();
        return format!("{status}{name}");
    }
    let words = match outcome.parse() {
        Ok(Outcome::TimedOut) => "no complete response",
        Ok(Outcome::SocketError) => "connection refused, reset or closed",
        Ok(Outcome::ResolutionError) => "the host name did not resolve",
        Ok(Outcome::TlsError) => "the certificate was not accepted",
        Ok(Outcome::Blocked) => "the address is not allowed, so nothing was sent",
        Ok(Outcome::Probation) => "the destination kept failing",
        Ok(Outcome::Aborted) => "the request could not be sent or was aborted",
        Ok(
            Outcome::Success
            | Outcome::NotFound
            | Outcome::Unauthorized
            | Outcome::Forbidden
            | Outcome::BadRequest
            | Outcome::PayloadTooLarge
            | Outcome::Busy
            | Outcome::GenericError,
        )
        | Err(_) => return line(outcome),
    };
    words.to_owned()
}

fn name(attempt: &StoredAttempt, number: u32) -> String {
    let at = at(Some(attempt.at_ms));
    if is_put_off(attempt) {
        format!("deferred at {at}")
    } else {
        format!("attempt {number} at {at}")
    }
}

/// Returns the time from publication to an attempt. Returns an empty text if clocks differ so much
/// that the attempt seems to precede the publication.
fn since(published_ms: Option<u64>, attempt: &StoredAttempt) -> String {
    match published_ms.and_then(|published_ms| attempt.at_ms.checked_sub(published_ms)) {
        Some(since_ms) if since_ms > 0 => format!(", {} after publication", rounded(since_ms)),
        Some(_) | None => String::new(),
    }
}

fn until(attempt: &StoredAttempt, next: &StoredAttempt) -> String {
    let ended_ms = attempt.at_ms.saturating_add(attempt.duration_ms);
    format!("; next {} later", rounded(next.at_ms.saturating_sub(ended_ms)))
}

/// Returns true if the entry is a deferral during probation, for which no request was sent.
pub(crate) fn is_put_off(attempt: &StoredAttempt) -> bool {
    attempt.outcome == Outcome::Probation.as_str()
}

/// Counts the entries that are attempts, not deferrals.
fn count(entries: Option<&[StoredAttempt]>) -> u32 {
    let attempts = entries.unwrap_or_default().iter().filter(|entry| !is_put_off(entry));
    u32::try_from(attempts.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: u64 = 1_795_158_180_000;

    fn attempt(seconds: u64, outcome: &str, status: Option<u16>) -> StoredAttempt {
        let at_ms = START_MS + seconds * 1_000;
        StoredAttempt { at_ms, outcome: outcome.to_owned(), status, duration_ms: 1_200 }
    }

    fn lines(count: u32, history: &[StoredAttempt], omitted: u32) -> Vec<String> {
        Attempts { count, history, omitted, published_ms: Some(START_MS) }.lines()
    }

    #[test]
    fn each_attempt_is_described_with_the_wait_after_it() {
        let history = [
            attempt(2, "Busy", Some(503)),
            attempt(240, "Probation", None),
            attempt(300, "SocketError", None),
        ];
        assert_eq!(
            lines(2, &history, 0),
            [
                "attempt 1 at 2026-11-20 07:03:02Z, 2 s after publication: 503 Service Unavailable \
                 after 1.2 s; next 3 min 57 s later",
                "deferred at 2026-11-20 07:07:00Z: the destination kept failing; next 59 s later",
                "attempt 2 at 2026-11-20 07:08:00Z: connection refused, reset or closed after 1.2 s",
            ]
        );
    }

    #[test]
    fn attempts_without_a_history_are_not_denied() {
        assert_eq!(lines(3, &[], 0), ["3 attempts were made, but not stored in the blob"]);
        assert_eq!(
            lines(2, &[attempt(0, "Busy", Some(503))], 0)[1],
            "1 attempt more was made, but not stored in the blob"
        );
        assert!(lines(0, &[], 0).is_empty());
    }

    #[test]
    fn attempts_after_those_left_out_are_numbered_from_the_end() {
        let history: Vec<StoredAttempt> =
            (0..7).map(|second| attempt(second * 10, "TimedOut", None)).collect();
        let lines = lines(40, &history, 33);
        assert!(lines[4].ends_with("no complete response within 1.2 s"), "{}", lines[4]);
        assert_eq!(lines[5], "33 more, not stored");
        assert!(lines[6].starts_with("attempt 39 at ") && lines[7].starts_with("attempt 40 at "));
    }

    #[test]
    fn no_outcome_of_this_system_is_shown_by_its_word() {
        for outcome in Outcome::ALL {
            let is_of_status = matches!(
                outcome,
                Outcome::Success
                    | Outcome::NotFound
                    | Outcome::Unauthorized
                    | Outcome::Forbidden
                    | Outcome::BadRequest
                    | Outcome::PayloadTooLarge
                    | Outcome::Busy
                    | Outcome::GenericError
            );
            let status = is_of_status.then_some(500);
            let said = happened(&attempt(0, outcome.as_str(), status));
            assert!(!said.contains(outcome.as_str()), "{said}");
        }
    }
}
