//! A topic's input mapping: which fields of a custom event are its id, type, subject.
//!
//! Separate from the events themselves because it belongs to the topic: publishers keep their own
//! schema (Event Grid, "input schema mapping").

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::path::Path;
use crate::event::{Event, Members};
use crate::time::moment;

/// Where one attribute of a custom event comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// The field of the event.
    pub path: Option<Path>,
    /// The value where the event has none.
    pub default: Option<String>,
}

impl Field {
    /// The attribute's value in this event, if it has one.
    #[must_use]
    pub fn of(&self, members: &Members<'_>) -> Option<String> {
        let found = self
            .path
            .as_ref()
            .and_then(|path| path.scalar(members))
            .filter(|text| !text.is_empty());
        found.or_else(|| self.default.clone())
    }
}

/// Which fields of a topic's custom events are its attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The event's id; unmapped: the id of its delivery's record and its index there.
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

impl Mapping {
    /// Every field with its name in documents.
    #[must_use]
    pub const fn fields(&self) -> [(&'static str, &Field); 6] {
        let Self { id, topic, event_time, event_type, subject, data_version } = self;
        [
            ("id", id),
            ("topic", topic),
            ("eventTime", event_time),
            ("eventType", event_type),
            ("subject", subject),
            ("dataVersion", data_version),
        ]
    }
}

/// The mapped attributes of one custom event, with defaults for fields that are not mapped.
///
/// Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct MappedV1")]
pub struct Mapped {
    /// Its id; unmapped: the id of its delivery's record, and its index there unless that is 0.
    pub id: String,
    /// The Event Grid topic, or the CloudEvents source; unmapped: `namespace/topic`.
    pub topic: String,
    /// When it happened; unmapped: publication.
    pub event_time: String,
    /// Its type, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Its subject, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The version of its data, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_version: Option<String>,
}

/// What is known of a custom event beside its bytes: the defaults of fields that are not mapped.
#[derive(Clone, Copy)]
pub struct Published<'a> {
    /// The message id of its record.
    pub message: &'a str,
    /// Its index in its record.
    pub index: u32,
    /// Its topic, `namespace/topic`.
    pub topic: &'a dyn fmt::Display,
    /// When it was published.
    pub published_ms: u64,
}

impl Mapped {
    /// Applies the mapping to an event.
    #[must_use]
    pub fn of(event: &Event, mapping: &Mapping, published: Published<'_>) -> Self {
        let members = event.members();
        let Published { message, index, topic, published_ms } = published;
        let record = || match index {
            0 => message.to_owned(),
            index => format!("{message}-{index}"),
        };
        let publication = || moment::rfc3339(published_ms);
        Self {
            id: mapping.id.of(&members).unwrap_or_else(record),
            topic: mapping.topic.of(&members).unwrap_or_else(|| topic.to_string()),
            event_time: mapping.event_time.of(&members).unwrap_or_else(publication),
            event_type: mapping.event_type.of(&members),
            subject: mapping.subject.of(&members),
            data_version: mapping.data_version.of(&members),
        }
    }
}
