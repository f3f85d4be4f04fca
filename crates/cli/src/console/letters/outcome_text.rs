//! Explains the outcome of an attempt. Pure.

use delivery::delivery::outcome::Outcome;

/// Explains an outcome in a sentence; `None` for an unknown outcome.
pub(in crate::console) fn meaning(outcome: &str, status: Option<u16>) -> Option<&'static str> {
    Some(match outcome.parse::<Outcome>().ok()? {
        Outcome::Success => "The destination accepted the event.",
        Outcome::NotFound => "The destination does not know this address.",
        Outcome::Unauthorized => "The destination requires credentials that it did not get.",
        Outcome::Forbidden => "The destination refuses access.",
        Outcome::BadRequest => "The destination refused the request as malformed.",
        Outcome::PayloadTooLarge => "The request is too large for the destination.",
        Outcome::TimedOut if status.is_some() => {
            "The destination timed out while it waited for the request."
        }
        Outcome::TimedOut => "There was no response within the timeout.",
        Outcome::Busy if status == Some(429) => "The destination receives too many requests.",
        Outcome::Busy => "The destination is overloaded or temporarily unavailable.",
        Outcome::GenericError => of_class(status),
        Outcome::SocketError => "The connection was refused, reset or closed.",
        Outcome::ResolutionError => "The host name of the destination did not resolve.",
        Outcome::TlsError => "The destination's certificate was not accepted.",
        Outcome::Blocked => "The address is not allowed; nothing was sent.",
        Outcome::Probation => "The destination is on probation; nothing was sent.",
        Outcome::Aborted => "lastmile aborted the attempt, or could not start it.",
    })
}

fn of_class(status: Option<u16>) -> &'static str {
    match status {
        Some(300..=399) => "The destination redirected the request; redirects are not followed.",
        Some(400..=499) => "The destination refused the request.",
        Some(500..=599) => "The destination failed.",
        Some(_) | None => "The response does not count as success.",
    }
}
