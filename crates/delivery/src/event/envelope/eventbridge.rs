//! Converts the events that a rule of Amazon EventBridge sends to a queue.
//!
//! The CloudEvents project defines no adapter for EventBridge, so the mapping is our own:
//! - `id`, `source` and `time` keep their names.
//! - `detail-type` becomes `type`, and `detail` becomes `data`.
//! - The first of the `resources` becomes `subject`. If there are several, the extension
//!   `resources` has the list as JSON in one string.
//! - `account`, `region` and `replay-name` (of an event replayed from an archive) become the
//!   extensions `account`, `region` and `replayname`.
//! - `version` is dropped, because it is always "0".
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html>

use serde_json::value::RawValue;

use super::cloud_event::{Unconverted, cloud_event, non_empty, required};
use super::publisher::Publisher;
use crate::event::Members;
use crate::event::json::quoted;
use crate::event::uri::reference;

pub(super) fn publisher(members: &Members<'_>) -> Option<Publisher> {
    let texts = ["detail-type", "source", "id", "time", "account", "region"];
    let is_event = texts.iter().all(|name| non_empty(members, name).is_some())
        && members.get("detail").is_some();
    members
        .text("source")
        .filter(|_| is_event)
        .map(|source| Publisher::EventSource(source.into_owned()))
}

pub(super) fn event(text: &str, members: &Members<'_>) -> Result<String, Unconverted> {
    converted(members).map_err(|why| Unconverted::new(text, why))
}

fn converted(members: &Members<'_>) -> Result<String, String> {
    let data = members.get("detail").ok_or("detail is missing")?;
    let resources: Vec<&RawValue> = members
        .get("resources")
        .and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default();
    let subject = resources
        .first()
        .map(|first| first.get())
        .filter(|first| first.starts_with('"') && *first != "\"\"");
    let several = members.get("resources").filter(|_| resources.len() > 1).map(quoted);
    required(members, "source")?;
    // EventBridge allows any text as a source, but CloudEvents requires a URI reference.
    let source = quoted(&reference(&members.text("source").ok_or("source is not a string")?));
    let attributes = [
        ("type", Some(required(members, "detail-type")?)),
        ("source", Some(source.as_str())),
        ("id", Some(required(members, "id")?)),
        ("time", non_empty(members, "time")),
        ("subject", subject),
        ("account", non_empty(members, "account")),
        ("region", non_empty(members, "region")),
        ("replayname", non_empty(members, "replay-name")),
        ("resources", several.as_deref()),
    ];
    Ok(cloud_event(&attributes, data))
}
