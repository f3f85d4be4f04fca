//! The reasons why a text is not an event.
//!
//! Separate because reading members can fail with these reasons too, and an event is built on its
//! members.

use thiserror::Error;

/// The reason why a text is not an event. The caller keeps the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A member is defined twice.
    #[error("the member \"{0}\" is defined twice")]
    DuplicateMember(String),
    /// The text has to be a CloudEvent, or declares to be one, and is not valid.
    #[error("not a valid CloudEvent: {0}")]
    CloudEvent(String),
    /// The text has to follow the Event Grid schema, and does not.
    #[error("not a valid Event Grid event: {0}")]
    EventGrid(String),
    /// The text is not a message of the service that this input names.
    #[error("not a message for the input {0}: {1}")]
    Envelope(&'static str, String),
    /// `deliverat` is not a valid time.
    #[error("deliverat has to be a date-time of RFC 3339 such as 2026-12-01T09:00:00Z")]
    NoMoment,
    /// `deliverat` is too far from the publication: both times, as text.
    #[error("deliverat is {0}, which is not within 14 days of the publication at {1}")]
    TooFarAhead(String, String),
}
