//! A published event, byte for byte, and how a record is decoded into events.
//!
//! The bytes of an event are never rebuilt: the same text is queued, posted and stored. Everything
//! else (is it well formed, what is its id, does a filter match) comes from [`Members`], a view
//! that borrows the text and keeps every value in the publisher's own spelling. An event stores the
//! positions of its members, so it is parsed once. A record may hold one event or a JSON array of
//! them; a malformed element does not affect the others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::deliver_at::{self, DELIVER_AT};
use crate::event::json::{Object, quoted};
use crate::event::malformed::Malformed;
use crate::event::members::{Members, Span};
use crate::time::moment;

words! {
    /// How the records of a topic are read (`spec.input`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Input {
        /// By their shape: CloudEvents, Event Grid, or custom JSON.
        #[default]
        Auto = "auto",
        /// Every event is a CloudEvent.
        CloudEvents = "cloudevents",
        /// Every event follows the Event Grid schema.
        EventGrid = "eventgrid",
        /// Any JSON.
        Custom = "custom",
        /// Any text, not parsed.
        Opaque = "opaque",
        /// Notifications of Amazon SNS, converted to CloudEvents by
        /// [`envelope`](crate::event::envelope), without what could end the subscription.
        Sns = "sns",
        /// The same with all of their members.
        #[serde(rename = "sns-whole")]
        SnsWhole = "sns-whole",
        /// Events of Amazon EventBridge, converted to CloudEvents by
        /// [`envelope`](crate::event::envelope).
        EventBridge = "eventbridge",
        /// Event notifications of Amazon S3: one CloudEvent for each record, converted by
        /// [`envelope`](crate::event::envelope).
        S3 = "s3",
    }
}

words! {
    /// The schema an event was published in.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Shape {
        /// CloudEvents 1.0, structured JSON.
        CloudEvent = "cloudevents",
        /// The Event Grid event schema.
        EventGrid = "eventgrid",
        /// Any other JSON.
        Custom = "custom",
        /// Any text.
        Opaque = "opaque",
    }
}

/// One published event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    text: Arc<str>,
    shape: Shape,
    members: Arc<[Span]>,
}

/// One element of a record: an event, or text that is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A well-formed event.
    Event(Event),
    /// Text that is not an event, and why.
    Malformed {
        /// The text, as published.
        text: Arc<str>,
        /// What is wrong with it.
        why: Malformed,
    },
}

/// Reads one event.
pub fn decode_one(text: &Arc<str>, input: Input) -> Element {
    if input == Input::Opaque {
        return Element::Event(Event::unread(text, Shape::Opaque));
    }
    let read = Members::parse(text).and_then(|members| {
        let shape = shape_of(&members, input)?;
        if shape == Shape::CloudEvent {
            deliver_at::read(&members)?;
        }
        Ok((shape, members.into_spans().into()))
    });
    match read {
        Ok((shape, members)) => Element::Event(Event { text: Arc::clone(text), shape, members }),
        Err(why) => Element::Malformed { text: Arc::clone(text), why },
    }
}

fn shape_of(members: &Members<'_>, input: Input) -> Result<Shape, Malformed> {
    match input {
        Input::CloudEvents | Input::Sns | Input::SnsWhole | Input::EventBridge | Input::S3 => {
            check_cloud_event(members).map(|()| Shape::CloudEvent)
        }
        Input::EventGrid => check_event_grid(members).map(|()| Shape::EventGrid),
        Input::Custom => Ok(Shape::Custom),
        Input::Opaque => Ok(Shape::Opaque),
        // What says that it is a CloudEvent has to be a valid one, and is never custom JSON.
        Input::Auto if members.get("specversion").is_some() => {
            check_cloud_event(members).map(|()| Shape::CloudEvent)
        }
        // This schema has no marker of its own, so a near miss is custom JSON.
        Input::Auto if check_event_grid(members).is_ok() => Ok(Shape::EventGrid),
        Input::Auto => Ok(Shape::Custom),
    }
}

/// Whether a text is a valid structured CloudEvent.
pub(crate) fn is_cloud_event(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && Members::parse(text).is_ok_and(|members| check_cloud_event(&members).is_ok())
}

/// CloudEvents 1.0, required attributes: `specversion` 1.0 and non-empty `id`, `source`, `type`;
/// attributes are no objects or arrays; `data` or `data_base64`, not both. What real publishers
/// send against the letter of the specification (odd attribute names, `dataschema: "#"`) is
/// accepted.
fn check_cloud_event(members: &Members<'_>) -> Result<(), Malformed> {
    let invalid = |what: String| Err(Malformed::CloudEvent(what));
    if members.text("specversion").as_deref() != Some("1.0") {
        return invalid("specversion has to be \"1.0\"".to_owned());
    }
    for name in ["id", "source", "type"] {
        if members.text(name).is_none_or(|text| text.is_empty()) {
            return invalid(format!("{name} has to be a non-empty string"));
        }
    }
    // Null is absent: an event may have both members, one of them null.
    let has = |name: &str| members.get(name).is_some_and(|value| value != "null");
    if has("data") && has("data_base64") {
        return invalid("data and data_base64 exclude each other".to_owned());
    }
    if has("data_base64") && members.text("data_base64").is_none() {
        return invalid("data_base64 has to be a string".to_owned());
    }
    for (name, value) in members.iter().filter(|(name, _)| !matches!(*name, "data" | "data_base64"))
    {
        if value.starts_with(['{', '[']) {
            return invalid(format!("the attribute {name} is neither string, number nor boolean"));
        }
    }
    Ok(())
}

/// Event Grid event schema, required members.
fn check_event_grid(members: &Members<'_>) -> Result<(), Malformed> {
    for name in ["id", "subject", "eventType", "eventTime"] {
        if members.text(name).is_none_or(|text| text.is_empty()) {
            return Err(Malformed::EventGrid(format!("{name} has to be a non-empty string")));
        }
    }
    Ok(())
}

impl Event {
    /// An event from our own queues: its bytes were checked before they were queued.
    #[must_use]
    pub fn recall(text: &Arc<str>, input: Input) -> Self {
        match decode_one(text, input) {
            Element::Event(event) => event,
            // The topic's input may have changed since; the bytes are still the accepted event.
            Element::Malformed { text, why: Malformed::NotJson(_) } => {
                Self::unread(&text, Shape::Opaque)
            }
            Element::Malformed { text, .. } => {
                let members = Members::parse(&text)
                    .map(|members| members.into_spans().into())
                    .unwrap_or_default();
                Self { shape: Shape::Custom, members, text }
            }
        }
    }

    fn unread(text: &Arc<str>, shape: Shape) -> Self {
        Self { text: Arc::clone(text), shape, members: Arc::default() }
    }

    /// The same bytes in the schema they are known to have, not parsed again: an event that was
    /// recalled as opaque text has no members, and one that becomes opaque loses them.
    #[must_use]
    pub fn in_shape(self, shape: Shape) -> Self {
        match shape {
            Shape::Opaque => Self::unread(&self.text, Shape::Opaque),
            Shape::CloudEvent | Shape::EventGrid | Shape::Custom => Self { shape, ..self },
        }
    }

    /// Replaces characters by others of equal length, outside of the names of its members.
    #[must_use]
    pub(crate) fn with_text(&self, text: &str) -> Self {
        debug_assert_eq!(text.len(), self.text.len(), "its members are where they were");
        Self { text: text.into(), ..self.clone() }
    }

    /// The bytes, as published.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The schema it was published in.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The moment for which it is published, in milliseconds; `None` for an event that may be delivered at once.
    #[must_use]
    pub fn deliver_at_ms(&self) -> Option<u64> {
        match self.shape {
            // A value that cannot be read made it malformed.
            Shape::CloudEvent => deliver_at::read(&self.members()).ok().flatten(),
            Shape::EventGrid | Shape::Custom | Shape::Opaque => None,
        }
    }

    /// Its text with this moment as its `deliverat`; `None` for an event that is no CloudEvent. Everything else keeps its spelling.
    #[must_use]
    pub fn text_with_deliver_at(&self, at_ms: u64) -> Option<String> {
        let moment = moment::rfc3339(at_ms);
        match (self.shape, self.members().around(DELIVER_AT)) {
            (Shape::EventGrid | Shape::Custom | Shape::Opaque, _) => None,
            (Shape::CloudEvent, Some((before, after))) => {
                Some(format!("{before}{}{after}", quoted(&moment)))
            }
            (Shape::CloudEvent, None) => {
                let mut object = Object::beginning_with(&self.text)?;
                object.text(DELIVER_AT, &moment);
                Some(object.finish())
            }
        }
    }

    /// A view of its top-level members; empty where it is not a JSON object.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members::known(&self.text, &self.members)
    }
}
