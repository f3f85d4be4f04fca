//! [`Reason`]: the reason why a delivery became a dead letter.

use std::fmt;
use std::str::FromStr;

use crate::document::hint::hint;

/// Prefix of the names for statuses without a variant of their own. No other reason has this
/// prefix.
const OF_STATUS: &str = "UndeliverableDueToHttpStatus";

/// The reason why a delivery ended without success. Log fields, metric dimensions, dead letters and
/// filters use the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// All attempts that the policy allows have failed.
    MaxDeliveryAttemptsExceeded,
    /// The time to live had passed when the next attempt was due.
    TimeToLiveExceeded,
    /// The destination returned status 400.
    UndeliverableDueToHttpBadRequest,
    /// The destination returned status 401.
    UndeliverableDueToHttpUnauthorized,
    /// The destination returned status 403.
    UndeliverableDueToHttpForbidden,
    /// The destination returned status 404.
    UndeliverableDueToHttpNotFound,
    /// The destination returned status 405.
    UndeliverableDueToHttpMethodNotAllowed,
    /// The destination returned status 410: it no longer exists.
    UndeliverableDueToHttpGone,
    /// The destination returned status 413.
    UndeliverableDueToHttpPayloadTooLarge,
    /// The destination returned status 415.
    UndeliverableDueToHttpUnsupportedMediaType,
    /// The destination returned status 422.
    UndeliverableDueToHttpUnprocessable,
    /// The destination returned this status, which is never retried. The variant is for statuses
    /// that are not redirects and have no variant of their own.
    UndeliverableDueToHttpStatus(u16),
    /// The destination returned a status from 300 to 399. Redirects are never followed.
    UndeliverableDueToRedirect,
    /// Requests to the address are not allowed.
    UndeliverableDueToBlockedAddress,
    /// No valid request can be built from the event.
    UndeliverableDueToInvalidRequest,
    /// The subscription no longer exists: it was removed, or its name changed.
    SubscriptionNotFound,
    /// The record names no topic, or the topic of the record, reply or forward does not exist.
    TopicNotFound,
    /// The record, one of its elements, or a reply is not a valid event.
    MalformedEvent,
    /// The functions repeatedly failed to process the record.
    ProcessingFailed,
    /// The event and the state of its delivery exceed the maximum size of one message.
    EventTooLargeToResend,
    /// The chain of replies and forwards is too long, or the reply budget is used up.
    ReplyLoop,
    /// The subscription was paused.
    Paused,
    /// An operator or a rule had disabled the destination.
    DestinationDisabled,
}

impl Reason {
    /// All reasons whose name does not contain a status.
    pub const NAMED: [Self; 22] = [
        Self::MaxDeliveryAttemptsExceeded,
        Self::TimeToLiveExceeded,
        Self::UndeliverableDueToHttpBadRequest,
        Self::UndeliverableDueToHttpUnauthorized,
        Self::UndeliverableDueToHttpForbidden,
        Self::UndeliverableDueToHttpNotFound,
        Self::UndeliverableDueToHttpMethodNotAllowed,
        Self::UndeliverableDueToHttpGone,
        Self::UndeliverableDueToHttpPayloadTooLarge,
        Self::UndeliverableDueToHttpUnsupportedMediaType,
        Self::UndeliverableDueToHttpUnprocessable,
        Self::UndeliverableDueToRedirect,
        Self::UndeliverableDueToBlockedAddress,
        Self::UndeliverableDueToInvalidRequest,
        Self::SubscriptionNotFound,
        Self::TopicNotFound,
        Self::MalformedEvent,
        Self::ProcessingFailed,
        Self::EventTooLargeToResend,
        Self::ReplyLoop,
        Self::Paused,
        Self::DestinationDisabled,
    ];

    /// Parses the name of a reason; case is ignored.
    ///
    /// # Errors
    /// Fails if no reason has this name. The error suggests the most similar name, or lists all
    /// names.
    pub fn named(text: &str) -> Result<Self, String> {
        let mut names: Vec<String> = Self::NAMED.iter().map(ToString::to_string).collect();
        let at = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        if let Some(reason) = at.and_then(|at| Self::NAMED.get(at)) {
            return Ok(*reason);
        }
        names.push(format!("{OF_STATUS}<code>"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        text.parse().map_err(|problem| format!("{problem}; {}", hint(text, &names)))
    }

    /// Returns the reason for an HTTP status that is never retried.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            300..=399 => Self::UndeliverableDueToRedirect,
            400 => Self::UndeliverableDueToHttpBadRequest,
            401 => Self::UndeliverableDueToHttpUnauthorized,
            403 => Self::UndeliverableDueToHttpForbidden,
            404 => Self::UndeliverableDueToHttpNotFound,
            405 => Self::UndeliverableDueToHttpMethodNotAllowed,
            410 => Self::UndeliverableDueToHttpGone,
            413 => Self::UndeliverableDueToHttpPayloadTooLarge,
            415 => Self::UndeliverableDueToHttpUnsupportedMediaType,
            422 => Self::UndeliverableDueToHttpUnprocessable,
            other => Self::UndeliverableDueToHttpStatus(other),
        }
    }

    /// Returns true if the reason is not a failure: an operator or a rule stopped the delivery, and
    /// it can be replayed.
    #[must_use]
    pub const fn sets_aside(self) -> bool {
        matches!(self, Self::Paused | Self::DestinationDisabled)
    }

    /// Returns the text that Event Grid namespaces write for this reason. For a reason that Event
    /// Grid does not have, returns the name of the reason.
    #[must_use]
    pub fn sentence(self) -> String {
        let sentence = match self {
            Self::MaxDeliveryAttemptsExceeded => "Maximum delivery attempts was exceeded.",
            Self::TimeToLiveExceeded => "Time to live was exceeded.",
            Self::UndeliverableDueToHttpBadRequest
            | Self::UndeliverableDueToHttpUnauthorized
            | Self::UndeliverableDueToHttpForbidden
            | Self::UndeliverableDueToHttpNotFound
            | Self::UndeliverableDueToHttpMethodNotAllowed
            | Self::UndeliverableDueToHttpGone
            | Self::UndeliverableDueToHttpPayloadTooLarge
            | Self::UndeliverableDueToHttpUnsupportedMediaType
            | Self::UndeliverableDueToHttpUnprocessable
            | Self::UndeliverableDueToHttpStatus(400..=499) => "Undeliverable due to client error",
            Self::UndeliverableDueToHttpStatus(_)
            | Self::UndeliverableDueToRedirect
            | Self::UndeliverableDueToBlockedAddress
            | Self::UndeliverableDueToInvalidRequest
            | Self::SubscriptionNotFound
            | Self::TopicNotFound
            | Self::MalformedEvent
            | Self::ProcessingFailed
            | Self::EventTooLargeToResend
            | Self::ReplyLoop
            | Self::Paused
            | Self::DestinationDisabled => return self.to_string(),
        };
        sentence.to_owned()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::UndeliverableDueToHttpStatus(status) = self {
            return write!(f, "{OF_STATUS}{status}");
        }
        // The names of the variants are also the names in logs and dead letters.
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Reason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("\"{text}\" is not a dead-letter reason");
        if let Some(status) = text.strip_prefix(OF_STATUS) {
            return status.parse().map(Self::UndeliverableDueToHttpStatus).map_err(|_| unknown());
        }
        Self::NAMED.into_iter().find(|reason| reason.to_string() == text).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_back_from_its_name() {
        for reason in Reason::NAMED.into_iter().chain((100..1_000).map(Reason::of_status)) {
            assert_eq!(reason.to_string().parse(), Ok(reason));
        }
        assert!("Nothing".parse::<Reason>().is_err());
        assert!("UndeliverableDueToHttpStatusX".parse::<Reason>().is_err());
    }

    #[test]
    fn a_person_names_a_reason_in_either_case_and_gets_the_nearest_one_suggested() {
        assert_eq!(Reason::named("timetoliveexceeded"), Ok(Reason::TimeToLiveExceeded));
        assert_eq!(Reason::named("UndeliverableDueToHttpStatus418"), Ok(Reason::of_status(418)));
        let problem = |text: &str| Reason::named(text).unwrap_err();
        assert_eq!(
            problem("TimeToLiveExceded"),
            "\"TimeToLiveExceded\" is not a dead-letter reason; did you mean TimeToLiveExceeded?"
        );
        let all = problem("late");
        assert!(all.contains("known: MaxDeliveryAttemptsExceeded, TimeToLiveExceeded"), "{all}");
        assert!(all.ends_with(", UndeliverableDueToHttpStatus<code>"), "{all}");
    }

    #[test]
    fn the_sentences_of_event_grid_namespaces_are_used() {
        for (reason, sentence) in [
            (Reason::of_status(401), "Undeliverable due to client error"),
            (Reason::of_status(418), "Undeliverable due to client error"),
            (Reason::of_status(501), "UndeliverableDueToHttpStatus501"),
            (Reason::MaxDeliveryAttemptsExceeded, "Maximum delivery attempts was exceeded."),
            (Reason::TimeToLiveExceeded, "Time to live was exceeded."),
        ] {
            assert_eq!(reason.sentence(), sentence);
        }
    }
}
