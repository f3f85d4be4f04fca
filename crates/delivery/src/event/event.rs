//! [`Event`]: a published event with its original bytes, and the decoder that creates it.
//!
//! The bytes of an event are never rebuilt: the same text is queued, posted and stored. Validation,
//! ids and filters use [`Members`], a view that borrows the text and keeps the publisher's spelling
//! of every value. An event stores the positions of its members, so it is parsed once. A record may
//! be one event or a JSON array of events, and a malformed element does not affect the others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::deliver_at::{self, DELIVER_AT};
use crate::event::json::{Object, quoted};
use crate::event::malformed::Malformed;
use crate::event::members::{Members, Span};
use crate::time::moment;

words! {
    /// The format in which the records of a topic are parsed (`spec.input`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Input {
        /// The format is detected: CloudEvents, Event Grid, or custom JSON.
        #[default]
        Auto = "auto",
        /// Every event must be a CloudEvent.
        CloudEvents = "cloudevents",
        /// Every event must follow the Event Grid schema.
        EventGrid = "eventgrid",
        /// Every event must be JSON, of any schema.
        Custom = "custom",
        /// Every record is one event, whose text is not parsed.
        Opaque = "opaque",
        /// Notifications of Amazon SNS, converted to CloudEvents by
        /// [`envelope`](crate::event::envelope). Members that would allow a reader to end the
        /// subscription are removed.
        Sns = "sns",
        /// Notifications of Amazon SNS with all of their members, converted to CloudEvents.
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
    /// The schema in which an event was published. It also determines how the event can be
    /// converted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Shape {
        /// A CloudEvent 1.0 as structured JSON.
        CloudEvent = "cloudevents",
        /// An event in the Event Grid event schema.
        EventGrid = "eventgrid",
        /// JSON of any other schema.
        Custom = "custom",
        /// Text that is not parsed.
        Opaque = "opaque",
    }
}

/// One published event. Its bytes never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    text: Arc<str>,
    shape: Shape,
    members: Arc<[Span]>,
}

/// One element of a record: an event, or text that is not a valid event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A well-formed event, in any schema.
    Event(Event),
    /// Text that is not a valid event.
    Malformed {
        /// The text, as it was published.
        text: Arc<str>,
        /// The reason why the text is not a valid event.
        why: Malformed,
    },
}

/// Decodes one event by the input format of its topic.
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
        // An object with `specversion` must be a valid CloudEvent, and never counts as custom JSON.
        Input::Auto if members.get("specversion").is_some() => {
            check_cloud_event(members).map(|()| Shape::CloudEvent)
        }
        // The Event Grid schema has no marker, so an object that lacks a required member is custom
        // JSON.
        Input::Auto if check_event_grid(members).is_ok() => Ok(Shape::EventGrid),
        Input::Auto => Ok(Shape::Custom),
    }
}

/// Returns true if the text is a valid structured CloudEvent.
pub(crate) fn is_cloud_event(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && Members::parse(text).is_ok_and(|members| check_cloud_event(&members).is_ok())
}

/// Checks the rules of CloudEvents 1.0: `specversion` is 1.0, and `id`, `source` and `type` are not
/// empty. No attribute is an object or array. At most one of `data` and `data_base64` is present.
/// Deviations of real publishers are accepted, such as odd attribute names and `dataschema: "#"`.
fn check_cloud_event(members: &Members<'_>) -> Result<(), Malformed> {
    let invalid = |reason: String| Err(Malformed::CloudEvent(reason));
    if members.text("specversion").as_deref() != Some("1.0") {
        return invalid("specversion must be \"1.0\"".to_owned());
    }
    for name in ["id", "source", "type"] {
        if members.text(name).is_none_or(|text| text.is_empty()) {
            return invalid(format!("{name} must be a non-empty string"));
        }
    }
    // Null counts as absent, so both members may be present if one of them is null.
    let has = |name: &str| members.get(name).is_some_and(|value| value != "null");
    if has("data") && has("data_base64") {
        return invalid("data and data_base64 cannot be combined".to_owned());
    }
    if has("data_base64") && members.text("data_base64").is_none() {
        return invalid("data_base64 must be a string".to_owned());
    }
    for (name, value) in members.iter().filter(|(name, _)| !matches!(*name, "data" | "data_base64"))
    {
        if value.starts_with(['{', '[']) {
            return invalid(format!(
                "the attribute {name} must be a string, a number or a boolean"
            ));
        }
    }
    Ok(())
}

/// Checks the required members of the Event Grid event schema.
fn check_event_grid(members: &Members<'_>) -> Result<(), Malformed> {
    for name in ["id", "subject", "eventType", "eventTime"] {
        if members.text(name).is_none_or(|text| text.is_empty()) {
            return Err(Malformed::EventGrid(format!("{name} must be a non-empty string")));
        }
    }
    Ok(())
}

impl Event {
    /// Restores an event from the text of an internal queue. The text was validated before it was
    /// queued.
    #[must_use]
    pub fn recall(text: &Arc<str>, input: Input) -> Self {
        match decode_one(text, input) {
            Element::Event(event) => event,
            // The input of the topic may have changed after the event was queued. The text is still
            // the validated event.
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

    /// Replaces the schema of the event without parsing its text again. An event that was opaque
    /// has no members. An event that becomes opaque loses its members.
    #[must_use]
    pub fn in_shape(self, shape: Shape) -> Self {
        match shape {
            Shape::Opaque => Self::unread(&self.text, Shape::Opaque),
            Shape::CloudEvent | Shape::EventGrid | Shape::Custom => Self { shape, ..self },
        }
    }

    /// Replaces the text with another text of equal length. All members must keep their positions.
    #[must_use]
    pub(crate) fn with_text(&self, text: &str) -> Self {
        debug_assert_eq!(text.len(), self.text.len(), "a new length would move the members");
        Self { text: text.into(), ..self.clone() }
    }

    /// Returns the text of the event, as it was published.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the schema in which the event was published.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the value of `deliverat` in milliseconds since 1970; `None` if the event has none.
    #[must_use]
    pub fn deliver_at_ms(&self) -> Option<u64> {
        match self.shape {
            // An invalid value would have made the event malformed.
            Shape::CloudEvent => deliver_at::read(&self.members()).ok().flatten(),
            Shape::EventGrid | Shape::Custom | Shape::Opaque => None,
        }
    }

    /// Returns the text with this time as `deliverat`. Returns `None` if the event is not a
    /// CloudEvent. Everything else keeps its spelling.
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

    /// Returns a view of the event's top-level members. The view is empty if the text is not a JSON
    /// object.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members::known(&self.text, &self.members)
    }
}
