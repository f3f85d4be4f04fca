//! What the fields of a custom event mean: a topic's input mapping.
//!
//! Separate from the events themselves because it belongs to the topic: publishers keep their own shape, and the
//! mapping says which of its fields is the id, the type, the subject (Event Grid, "input schema mapping").

use crate::event::Members;
use crate::path::Path;

/// Where one attribute of a custom event comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// The field of the event.
    pub path: Option<Path>,
    /// What stands for it where the event has none.
    pub default: Option<String>,
}

impl Field {
    /// The attribute's value in this event, if it has one.
    #[must_use]
    pub fn of(&self, members: &Members<'_>) -> Option<String> {
        let found = self.path.as_ref().and_then(|path| path.scalar(members)).filter(|text| !text.is_empty());
        found.or_else(|| self.default.clone())
    }
}

/// What the fields of a topic's custom events mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The event's id; unmapped: the id of its delivery's record and its place there.
    pub id: Field,
    /// The Event Grid topic, or the CloudEvents source; unmapped: `namespace/topic`.
    pub topic: Field,
    /// When it happened, RFC 3339; unmapped: publication.
    pub event_time: Field,
    /// Its type; it has to be mapped or have a default.
    pub event_type: Field,
    /// Its subject; for the Event Grid schema it has to be mapped or have a default.
    pub subject: Field,
    /// The version of its data; unmapped: empty.
    pub data_version: Field,
}
