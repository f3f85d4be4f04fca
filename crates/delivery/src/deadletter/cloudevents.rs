//! Event Grid, "delivery event formats", CloudEvents 1.0 schema: the event, then why and when as
//! extension attributes.

use super::fields::{BlobFields, FieldNames};
use super::flat;

const NAMES: FieldNames = FieldNames {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "lastdeliveryoutcome",
    published: "publishtime",
    attempted: "lastdeliveryattempttime",
};

/// The name of the status.
const STATUS: &str = "lasthttpstatuscode";
/// What this format adds to an event.
pub(super) const RESERVED: [&str; 7] = NAMES.reserved(STATUS);

/// The dead letter; `None` for an event that cannot be a CloudEvent.
pub(super) fn element(fields: &BlobFields<'_>) -> Option<String> {
    let event = fields.json?;
    let (mut object, published) = flat::open_cloud_event(fields.letter, event, &RESERVED)?;
    fields.flat(&mut object, &NAMES, STATUS, published.as_deref());
    Some(object.finish())
}
