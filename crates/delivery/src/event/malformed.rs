//! The reasons why a text is not a valid event.
//!
//! This module is separate because two modules return these reasons: the parser of members, and the
//! decoder that creates an event from its members.

use thiserror::Error;

/// The reason why a text is not a valid event. It does not contain the text itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The text is not valid JSON. The value is the error of the parser.
    #[error("the event is not JSON: {0}")]
    NotJson(String),
    /// Two members have the same name.
    #[error("the member \"{0}\" is defined twice")]
    DuplicateMember(String),
    /// The text is not a valid CloudEvent, although it has the member `specversion` or its topic
    /// accepts only CloudEvents.
    #[error("the event is not a valid CloudEvent: {0}")]
    CloudEvent(String),
    /// The topic accepts only events in the Event Grid schema, but the text lacks a required member
    /// of that schema.
    #[error("the event is not a valid Event Grid event: {0}")]
    EventGrid(String),
    /// The text is not a message of the service that the topic's input names. The values are the
    /// input and the rule that the text violates.
    #[error("the message does not match the input {0}: {1}")]
    Envelope(&'static str, String),
    /// The value of `deliverat` is not a date-time of RFC 3339.
    #[error("deliverat must be an RFC 3339 date-time such as 2026-12-01T09:00:00Z")]
    NoMoment,
    /// `deliverat` is 14 days or more after the publication. The values are `deliverat` and the
    /// time of publication, as text.
    #[error("deliverat is {0}, but must be within 14 days of the publication at {1}")]
    TooFarAhead(String, String),
}
