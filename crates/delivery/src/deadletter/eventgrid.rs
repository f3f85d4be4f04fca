//! Writes the Event Grid format (Event Grid, "delivery event formats", Event Grid schema): the
//! event, then the facts about its failure.

use super::fields::{BlobFields, FieldNames};
use super::flat;

/// Names of the added members in the Event Grid schema, which the custom schema shares.
pub(super) const NAMES: FieldNames = FieldNames {
    reason: "deadLetterReason",
    attempts: "deliveryAttempts",
    outcome: "lastDeliveryOutcome",
    published: "publishTime",
    attempted: "lastDeliveryAttemptTime",
};

/// Name of the member with the HTTP status of the last attempt.
pub(super) const STATUS: &str = "lastHttpStatusCode";
/// Names of the members that this format adds to an event.
pub(super) const RESERVED: [&str; 7] = NAMES.reserved(STATUS);

/// Writes the dead letter; returns `None` if this format cannot hold the event.
pub(super) fn element(fields: &BlobFields<'_>) -> Option<String> {
    let event = fields.json?;
    let (mut object, published) = flat::open_event_grid(fields.letter, event, &RESERVED)?;
    fields.flat(&mut object, &NAMES, STATUS, published.as_deref());
    Some(object.finish())
}
