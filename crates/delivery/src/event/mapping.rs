//! The input mapping of a topic, which selects the fields of a custom event that contain its id,
//! type, subject and other attributes.
//!
//! This module is separate from events because a mapping belongs to the topic: publishers keep
//! their own schema (Event Grid, "input schema mapping").

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::document::findings::Message;
use crate::document::kind::{DEFINITION, Kind};
use crate::document::reader::{Cursor, Fields};
use crate::document::record::Or;
use crate::event::path::{PATH_RULE, Path};
use crate::event::{Event, Members};
use crate::time::moment;

/// The source of one attribute of a custom event: a path, a default, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// Path of the attribute in the event; `None` if it has only a default.
    pub path: Option<Path>,
    /// Value of the attribute if the event has no value at the path.
    pub default: Option<String>,
}

impl Field {
    /// Returns the value of the attribute in an event with these members; `None` if neither the
    /// event nor the mapping has one.
    #[must_use]
    pub fn value(&self, members: &Members<'_>) -> Option<String> {
        let found = self
            .path
            .as_ref()
            .and_then(|path| path.scalar(members))
            .filter(|text| !text.is_empty());
        found.or_else(|| self.default.clone())
    }
}

record! {
    /// Fields of custom events that contain their id, type, subject and other attributes.
    /// Conversions to other formats need them.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Mapping {
        /// Id of the event. Without a mapping, it is the id of the message. The second and later
        /// events of an array also get their index, such as MESSAGE-1.
        "id" => pub id: Field = Or(FOUND, Field::default()),
        /// Topic of the event in the Event Grid schema, and source of the event in CloudEvents.
        /// Without a mapping, it is namespace/topic.
        "topic" => pub topic: Field = Or(FOUND, Field::default()),
        /// Time of the event in RFC 3339, such as 2026-12-01T00:00:00Z. Without a mapping, it is
        /// the time of publication.
        "eventTime" => pub event_time: Field = Or(FOUND, Field::default()),
        /// Type of the event, such as order.created.
        "eventType" => pub event_type: Field = Or(FOUND_OR_DEFAULT, Field::default()),
        /// Subject of the event, such as eu/orders/7.
        "subject" => pub subject: Field = Or(FOUND_OR_DEFAULT, Field::default()),
        /// Version of the event's data. Without a mapping, it is empty.
        "dataVersion" => pub data_version: Field = Or(FOUND_OR_DEFAULT, Field::default()),
    }
}

/// The field type of an attribute whose mapping cannot have a default, because each event needs a
/// value of its own.
const FOUND: Attribute = Attribute { may_have_default: false };
/// The field type of an attribute that may have a default, such as `subject`. One value can be
/// right for all events of a topic.
const FOUND_OR_DEFAULT: Attribute = Attribute { may_have_default: true };

/// The field type of a mapped attribute: a path, and possibly a default (Event Grid, "input schema
/// mapping").
struct Attribute {
    may_have_default: bool,
}

impl Kind for Attribute {
    type Value = Field;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Field> {
        at.mapping(
            |fields| if self.may_have_default { found_or_default(fields) } else { found(fields) },
        )?
    }

    fn write(&self, Field { path, default }: &Field) -> Json {
        let path = path.as_ref().map(|path| ("field".to_owned(), json!(path.to_string())));
        let default = default.as_ref().map(|default| ("default".to_owned(), json!(default)));
        Json::Object(path.into_iter().chain(default).collect())
    }

    fn schema(&self) -> Json {
        let path =
            json!({ "$ref": "#/$defs/path", "description": "Path of the value in the event." });
        let default = json!({
            "description": "Value if the event has none at the path.",
            "type": ["string", "integer", "boolean"],
            "minLength": 1,
        });
        let mut schema = json!({ "type": ["object", "null"], "additionalProperties": false });
        if self.may_have_default {
            schema[DEFINITION] = json!("MappedOrDefault");
            schema["minProperties"] = json!(1);
            schema["properties"] = json!([["field", path], ["default", default]]);
        } else {
            schema[DEFINITION] = json!("Mapped");
            schema["required"] = json!(["field"]);
            schema["properties"] = json!([["field", path]]);
        }
        schema
    }
}

/// Reads the mapping of an attribute that must not have a default.
fn found(fields: &Fields<'_>) -> Option<Field> {
    if let Some(key) = fields.key("default") {
        let message = format!("{} cannot have a default", fields.parent().name());
        key.error(Message::new(message).help("set field to a path in the event"));
    }
    let path = fields.required("field").and_then(|at| at.parsed("a path", PATH_RULE));
    Some(Field { path: Some(path?), default: None })
}

/// Reads the mapping of an attribute that may have a default.
fn found_or_default(fields: &Fields<'_>) -> Option<Field> {
    let (path, default) = (fields.get("field"), fields.get("default"));
    if path.is_none() && default.is_none() {
        let message = Message::new("field or default is missing");
        let help = "such as {field: data.kind, default: order}";
        return fields.parent().refuse(message.help(help));
    }
    // Both fields are read even after an error, to report every error.
    let path = path.map(|at| at.parsed("a path", PATH_RULE));
    let default = default.map(|at| not_empty(&at));
    let path = path.map_or(Some(None), |read| read.map(Some));
    let default = default.map_or(Some(None), |read| read.map(Some));
    Some(Field { path: path?, default: default? })
}

fn not_empty(at: &Cursor<'_>) -> Option<String> {
    let text = at.scalar()?;
    if text.is_empty() {
        return at.refuse("default must not be empty");
    }
    Some(text)
}

/// The attributes of one custom event, after the mapping and its defaults were applied.
///
/// The field names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct MappedV1")]
pub struct Mapped {
    /// The id. If it is not mapped, the first event of a record gets the message id. The other
    /// events get the message id and their index, such as `MESSAGE-1`.
    pub id: String,
    /// The `topic` of an Event Grid event, or the `source` of a CloudEvent. If it is not mapped, it
    /// is `namespace/topic`.
    pub topic: String,
    /// The event time. If it is not mapped, it is the time of publication.
    pub event_time: String,
    /// The event type; `None` if the event and the mapping have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The subject; `None` if the event and the mapping have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The data version; `None` if the event and the mapping have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_version: Option<String>,
}

/// Facts about the publication of a custom event, which supply the values of attributes without a
/// mapping.
#[derive(Clone, Copy)]
pub struct Published<'a> {
    /// SQS message id of the published record.
    pub message: &'a str,
    /// Index of the event in the published record.
    pub index: u32,
    /// Full name of the topic, `namespace/topic`.
    pub topic: &'a dyn fmt::Display,
    /// Time of publication in milliseconds since 1970.
    pub published_ms: u64,
}

impl Mapped {
    /// Applies a mapping to an event. Attributes that are not mapped get their values from
    /// `published`.
    #[must_use]
    pub fn new(event: &Event, mapping: &Mapping, published: Published<'_>) -> Self {
        let members = event.members();
        let Published { message, index, topic, published_ms } = published;
        let record = || match index {
            0 => message.to_owned(),
            index => format!("{message}-{index}"),
        };
        let publication = || moment::rfc3339(published_ms);
        Self {
            id: mapping.id.value(&members).unwrap_or_else(record),
            topic: mapping.topic.value(&members).unwrap_or_else(|| topic.to_string()),
            event_time: mapping.event_time.value(&members).unwrap_or_else(publication),
            event_type: mapping.event_type.value(&members),
            subject: mapping.subject.value(&members),
            data_version: mapping.data_version.value(&members),
        }
    }
}
