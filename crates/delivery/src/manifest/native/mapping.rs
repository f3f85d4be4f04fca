//! `mapping`: which fields of a topic's custom events are their id, type, subject.
//!
//! Separate because its fields have rules of their own (Event Grid, "input schema mapping"): the
//! type, the subject and the version of the data may have a default, while an id, a topic and a
//! time must differ from event to event.

use super::super::findings::Message;
use super::super::reader::{Cursor, Fields};
use crate::event::Input;
use crate::event::mapping::{Field, Mapping};
use crate::event::path::PATH_RULE;

/// Reads `mapping` of a Topic's `spec`; what is not mapped is empty.
pub(super) fn read(spec: &Fields<'_>, input: Input) -> Mapping {
    if let Some(key) = spec.given_key("mapping") {
        report_unused(&key, input);
    }
    let read = |fields: &Fields<'_>| Mapping {
        id: found(fields, "id"),
        topic: found(fields, "topic"),
        event_time: found(fields, "eventTime"),
        event_type: found_or_default(fields, "eventType"),
        subject: found_or_default(fields, "subject"),
        data_version: found_or_default(fields, "dataVersion"),
    };
    spec.section("mapping", read).unwrap_or_default()
}

/// Only custom events are mapped.
fn report_unused(key: &Cursor<'_>, input: Input) {
    if matches!(input, Input::Auto | Input::Custom) {
        return;
    }
    let message = Message::new(format!(
        "not used: the input of this topic is {}, and only custom events are mapped",
        input.as_str()
    ));
    key.warn(message.help("input: custom or auto"));
}

/// An attribute that differs from event to event.
fn found(fields: &Fields<'_>, name: &'static str) -> Field {
    let path = fields.section(name, |of| {
        if let Some(key) = of.key("default") {
            key.error(
                Message::new(format!("{name} has no default")).help("field: its path in the event"),
            );
        }
        of.required("field").and_then(|at| at.parsed("a path", PATH_RULE))
    });
    Field { path: path.flatten(), default: None }
}

/// An attribute that may be the same for every event.
fn found_or_default(fields: &Fields<'_>, name: &'static str) -> Field {
    let read = |of: &Fields<'_>| {
        let (path, default) = (of.get("field"), of.get("default"));
        if path.is_none() && default.is_none() {
            of.parent().error(
                Message::new("field or default is missing")
                    .help("such as {field: data.kind, default: order}"),
            );
        }
        Field {
            path: path.and_then(|at| at.parsed("a path", PATH_RULE)),
            default: default.and_then(|at| not_empty(&at)),
        }
    };
    fields.section(name, read).unwrap_or_default()
}

fn not_empty(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.scalar()?;
    if text.is_empty() {
        return cursor.refuse("a default cannot be empty");
    }
    Some(text)
}
