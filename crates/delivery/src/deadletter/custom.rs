//! Writes the custom format (Event Grid, "delivery event formats", custom schema): the mapped
//! attributes of the event, the facts about its failure, and then the published payload.
//!
//! Unmapped attributes have defaults: the message id for `id`, the time of publication for
//! `eventTime`, and `namespace/topic` for `topic`. Other unmapped fields are empty. For an event of
//! a different schema, the fields are the event's own attributes.

use super::eventgrid::{NAMES, STATUS};
use super::fields::BlobFields;
use crate::delivery::DeadLetter;
use crate::event::Members;
use crate::event::json::Object;
use crate::event::mapping::{Mapped, Mapping};

/// Writes the dead letter; returns `None` if the event is not JSON.
pub(super) fn element(fields: &BlobFields<'_>) -> Option<String> {
    let event = fields.json?;
    let mapped_fields = mapped_fields(fields.letter);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut object = Object::default();
    object.text("id", &mapped_fields.id);
    object.text("eventTime", &mapped_fields.event_time);
    object.text("eventType", &text(&mapped_fields.event_type));
    object.text("dataVersion", &text(&mapped_fields.data_version));
    object.text("metadataVersion", "1");
    object.text("topic", &mapped_fields.topic);
    object.text("subject", &text(&mapped_fields.subject));
    fields.flat(&mut object, &NAMES, STATUS, None);
    object.raw("data", Some(event.get()));
    Some(object.finish())
}

/// Returns the mapped attributes of a custom event, or the attributes of an event of a different
/// schema.
fn mapped_fields(letter: &DeadLetter) -> Mapped {
    if let Some(mapped) = &letter.mapped {
        return mapped.clone();
    }
    let members: Members<'_> = letter.delivery.event.members();
    let either =
        |names: [&str; 2]| names.into_iter().find_map(|name| members.text(name)).map(Into::into);
    let unmapped = letter.delivery.mapped(&Mapping::default());
    Mapped {
        id: members.id().map_or(unmapped.id, Into::into),
        topic: members.source().map_or(unmapped.topic, Into::into),
        event_time: either(["time", "eventTime"]).unwrap_or(unmapped.event_time),
        event_type: members.event_type().map(Into::into),
        subject: members.text("subject").map(Into::into),
        data_version: either(["dataversion", "dataVersion"]),
    }
}
