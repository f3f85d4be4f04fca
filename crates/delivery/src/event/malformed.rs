//! The reasons for which a text is not an event.
//!
//! Separate because reading the members of a text already fails for some of these reasons, and an event is made of
//! its members.

use thiserror::Error;

/// Why a text is not an event. The caller keeps the text itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A member of the event is defined twice.
    #[error("the member \"{0}\" is defined twice")]
    DuplicateMember(String),
    /// It declares itself a CloudEvent, or has to be one, and is not valid.
    #[error("not a valid CloudEvent: {0}")]
    CloudEvent(String),
    /// It has to follow the Event Grid schema and does not.
    #[error("not a valid Event Grid event: {0}")]
    EventGrid(String),
    /// It is not a message of the service that this input names.
    #[error("not a message for the input {0}: {1}")]
    Envelope(&'static str, String),
    /// The moment that it is published for cannot be read.
    #[error("deliverat has to be a date-time of RFC 3339 such as 2026-12-01T09:00:00Z")]
    NoMoment,
    /// The moment that it is published for is too far ahead: that moment, and the time of publication.
    #[error("deliverat is {0}, which is not within 14 days of the publication at {1}")]
    TooFarAhead(String, String),
}
