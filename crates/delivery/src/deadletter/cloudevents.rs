//! Writes the CloudEvents format (Event Grid, "delivery event formats", CloudEvents 1.0 schema):
//! the event, with the facts about its failure as extension attributes.

use super::fields::{BlobFields, FieldNames};
use super::flat;

const NAMES: FieldNames = FieldNames {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "lastdeliveryoutcome",
    published: "publishtime",
    attempted: "lastdeliveryattempttime",
};

/// Name of the extension attribute with the HTTP status of the last attempt.
const STATUS: &str = "lasthttpstatuscode";
/// Names of the attributes that this format adds to an event.
pub(super) const RESERVED: [&str; 7] = NAMES.reserved(STATUS);

/// Writes the dead letter; returns `None` if the event cannot be converted to a CloudEvent.
pub(super) fn element(fields: &BlobFields<'_>) -> Option<String> {
    let event = fields.json?;
    let (mut object, published) = flat::open_cloud_event(fields.letter, event, &RESERVED)?;
    fields.flat(&mut object, &NAMES, STATUS, published.as_deref());
    Some(object.finish())
}
