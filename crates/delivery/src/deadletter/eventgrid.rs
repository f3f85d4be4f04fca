//! Event Grid, "delivery event formats", Event Grid schema: the event, then why and when.

use super::fields::{BlobFields, FieldNames};
use super::flat;

/// The names of the Event Grid schema; the custom schema has them too.
pub(super) const NAMES: FieldNames = FieldNames {
    reason: "deadLetterReason",
    attempts: "deliveryAttempts",
    outcome: "lastDeliveryOutcome",
    published: "publishTime",
    attempted: "lastDeliveryAttemptTime",
};

/// The name of the status.
pub(super) const STATUS: &str = "lastHttpStatusCode";
/// What this format adds to an event.
pub(super) const RESERVED: [&str; 7] = NAMES.reserved(STATUS);

/// The dead letter; `None` for an event that this format cannot hold.
pub(super) fn element(fields: &BlobFields<'_>) -> Option<String> {
    let event = fields.json?;
    let (mut object, published) = flat::open_event_grid(fields.letter, event, &RESERVED)?;
    fields.flat(&mut object, &NAMES, STATUS, published.as_deref());
    Some(object.finish())
}
