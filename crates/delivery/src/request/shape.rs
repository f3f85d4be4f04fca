//! An event in another shape than it was published in.
//!
//! Event Grid becomes CloudEvents; a custom event becomes either, by its topic's mapping. Values keep the publisher's
//! spelling: they are put together as they stand, never parsed and written again. A CloudEvent becomes nothing else:
//! no table says what its attributes would be.
//!
//! Event Grid, "event schemas": CloudEvents `source` is the topic, `type` the event type.

use std::sync::Arc;

use super::Unsendable;
use crate::delivery::Delivery;
use crate::event::Shape;
use crate::mapping::{Field, Mapping};
use crate::moment;

/// The event as a structured CloudEvent.
///
/// # Errors
/// [`Unsendable`] when the event says too little for one.
pub(super) fn cloud_event(delivery: &Delivery, mapping: &Mapping) -> Result<Arc<str>, Unsendable> {
    let members = delivery.event.members();
    let mut event = Object::default();
    event.text("specversion", "1.0");
    match delivery.event.shape() {
        Shape::CloudEvent => return Ok(Arc::clone(delivery.event.text())),
        Shape::Opaque => return Err(impossible("text of an opaque topic", "a CloudEvent", "it has no attributes")),
        Shape::EventGrid => {
            for (name, from) in [("type", "eventType"), ("id", "id"), ("time", "eventTime"), ("subject", "subject")] {
                event.raw(name, members.get(from));
            }
            match members.text("topic").is_some_and(|topic| !topic.is_empty()) {
                true => event.raw("source", members.get("topic")),
                false => event.text("source", &delivery.subscription.topic.to_string()),
            }
            event.raw("data", members.get("data"));
        }
        Shape::Custom => {
            let mapped = Mapped { delivery, mapping };
            event.text("type", &mapped.required("eventType", &mapping.event_type, "a CloudEvent")?);
            event.text("source", &mapped.topic());
            event.text("id", &mapped.id());
            event.text("time", &mapped.event_time());
            if let Some(subject) = mapping.subject.of(&members) {
                event.text("subject", &subject);
            }
            event.raw("data", Some(delivery.event.text()));
        }
    }
    Ok(event.finish())
}

/// The event in the Event Grid schema.
///
/// # Errors
/// [`Unsendable`] when the event says too little for it.
pub(super) fn event_grid(delivery: &Delivery, mapping: &Mapping) -> Result<Arc<str>, Unsendable> {
    const SCHEMA: &str = "an Event Grid event";
    match delivery.event.shape() {
        Shape::EventGrid => Ok(Arc::clone(delivery.event.text())),
        Shape::CloudEvent => Err(impossible("a CloudEvent", SCHEMA, "Event Grid converts into CloudEvents only")),
        Shape::Opaque => Err(impossible("text of an opaque topic", SCHEMA, "it has no fields")),
        Shape::Custom => {
            let mapped = Mapped { delivery, mapping };
            let members = delivery.event.members();
            let mut event = Object::default();
            event.text("id", &mapped.id());
            event.text("eventTime", &mapped.event_time());
            event.text("eventType", &mapped.required("eventType", &mapping.event_type, SCHEMA)?);
            event.text("dataVersion", &mapping.data_version.of(&members).unwrap_or_default());
            event.text("metadataVersion", "1");
            event.text("topic", &mapped.topic());
            event.text("subject", &mapped.required("subject", &mapping.subject, SCHEMA)?);
            event.raw("data", Some(delivery.event.text()));
            Ok(event.finish())
        }
    }
}

fn impossible(what: &str, into: &str, why: &str) -> Unsendable {
    Unsendable::Impossible(format!("{what} cannot be delivered as {into}: {why}"))
}

/// A custom event, seen through its topic's mapping.
struct Mapped<'a> {
    delivery: &'a Delivery,
    mapping: &'a Mapping,
}

impl Mapped<'_> {
    fn required(&self, name: &str, field: &Field, into: &str) -> Result<String, Unsendable> {
        field.of(&self.delivery.event.members()).ok_or_else(|| {
            let why = format!("its topic's mapping finds no {name} in it and has no default");
            impossible("a custom event", into, &why)
        })
    }

    fn id(&self) -> String {
        let mapped = self.mapping.id.of(&self.delivery.event.members());
        mapped.unwrap_or_else(|| match &self.delivery.origin {
            origin if origin.index == 0 => origin.message.clone(),
            origin => format!("{}-{}", origin.message, origin.index),
        })
    }

    fn topic(&self) -> String {
        let mapped = self.mapping.topic.of(&self.delivery.event.members());
        mapped.unwrap_or_else(|| self.delivery.subscription.topic.to_string())
    }

    fn event_time(&self) -> String {
        let mapped = self.mapping.event_time.of(&self.delivery.event.members());
        mapped.unwrap_or_else(|| moment::rfc3339(self.delivery.published_ms))
    }
}

/// A JSON object that is written member by member.
#[derive(Default)]
struct Object(String);

impl Object {
    /// A member whose value is JSON already; nothing where there is none.
    fn raw(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&format!("\"{name}\":{value}"));
    }

    fn text(&mut self, name: &str, value: &str) {
        let value = serde_json::to_string(value).expect("a string is always JSON");
        self.raw(name, Some(&value));
    }

    fn finish(mut self) -> Arc<str> {
        self.0.push('}');
        self.0.into()
    }
}
