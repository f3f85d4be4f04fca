//! An event in another shape than it was published in.
//!
//! Event Grid becomes CloudEvents; a custom event becomes either, by its topic's mapping. Values
//! keep the publisher's spelling: they are put together as they stand, never parsed and written
//! again. A CloudEvent becomes nothing else: no table says what its attributes would be.
//!
//! Event Grid, "event schemas": CloudEvents `source` is the topic, `type` the event type.

use std::sync::Arc;

use super::Unsendable;
use crate::delivery::Delivery;
use crate::event::Shape;
use crate::json::Object;
use crate::mapping::Mapped;
use crate::uri::reference;

/// What it could not become, for people.
const CLOUD_EVENT: &str = "a CloudEvent";

/// The event as a structured CloudEvent; a custom one by what its topic's mapping says of it.
///
/// # Errors
/// [`Unsendable`] when the event says too little for one.
pub(crate) fn cloud_event(
    delivery: &Delivery,
    mapped: Option<&Mapped>,
) -> Result<Arc<str>, Unsendable> {
    match (delivery.event.shape(), mapped) {
        (_, Some(mapped)) => of_custom(delivery, mapped),
        (Shape::CloudEvent, None) => Ok(Arc::clone(delivery.event.text())),
        (Shape::EventGrid, None) => of_event_grid(delivery),
        (Shape::Opaque, None) => {
            Err(impossible("text of an opaque topic", CLOUD_EVENT, "it has no attributes"))
        }
        (Shape::Custom, None) => {
            Err(impossible("a custom event", CLOUD_EVENT, "nothing says what its fields mean"))
        }
    }
}

fn of_custom(delivery: &Delivery, mapped: &Mapped) -> Result<Arc<str>, Unsendable> {
    let mut event = Object::default();
    event.text("specversion", "1.0");
    event.text("type", required("eventType", mapped.event_type.as_deref(), CLOUD_EVENT)?);
    event.text("source", &reference(&mapped.topic));
    event.text("id", &mapped.id);
    event.text("time", moment("eventTime", &mapped.event_time, CLOUD_EVENT)?);
    if let Some(subject) = &mapped.subject {
        event.text("subject", subject);
    }
    event.raw("data", Some(delivery.event.text()));
    Ok(event.finish().into())
}

fn of_event_grid(delivery: &Delivery) -> Result<Arc<str>, Unsendable> {
    let (members, mut event) = (delivery.event.members(), Object::default());
    event.text("specversion", "1.0");
    moment("eventTime", &members.text("eventTime").unwrap_or_default(), CLOUD_EVENT)?;
    for (name, from) in
        [("type", "eventType"), ("id", "id"), ("time", "eventTime"), ("subject", "subject")]
    {
        event.raw(name, members.get(from));
    }
    match members.text("topic").is_some_and(|topic| !topic.is_empty()) {
        true => event.raw("source", members.get("topic")),
        false => event.text("source", &delivery.subscription.topic.to_string()),
    }
    event.raw("data", members.get("data"));
    Ok(event.finish().into())
}

/// The event in the Event Grid schema; a custom one by what its topic's mapping says of it.
///
/// # Errors
/// [`Unsendable`] when the event says too little for it.
pub(crate) fn event_grid(
    delivery: &Delivery,
    mapped: Option<&Mapped>,
) -> Result<Arc<str>, Unsendable> {
    const SCHEMA: &str = "an Event Grid event";
    match (delivery.event.shape(), mapped) {
        (_, Some(mapped)) => {
            let mut event = Object::default();
            event.text("id", &mapped.id);
            event.text("eventTime", moment("eventTime", &mapped.event_time, SCHEMA)?);
            event.text("eventType", required("eventType", mapped.event_type.as_deref(), SCHEMA)?);
            event.text("dataVersion", mapped.data_version.as_deref().unwrap_or_default());
            event.text("metadataVersion", "1");
            event.text("topic", &mapped.topic);
            event.text("subject", required("subject", mapped.subject.as_deref(), SCHEMA)?);
            event.raw("data", Some(delivery.event.text()));
            Ok(event.finish().into())
        }
        (Shape::EventGrid, None) => Ok(Arc::clone(delivery.event.text())),
        (Shape::CloudEvent, None) => {
            Err(impossible("a CloudEvent", SCHEMA, "Event Grid converts into CloudEvents only"))
        }
        (Shape::Opaque, None) => {
            Err(impossible("text of an opaque topic", SCHEMA, "it has no fields"))
        }
        (Shape::Custom, None) => {
            Err(impossible("a custom event", SCHEMA, "nothing says what its fields mean"))
        }
    }
}

/// A time that both schemas want in RFC 3339.
fn moment<'a>(name: &str, text: &'a str, into: &str) -> Result<&'a str, Unsendable> {
    match text.parse::<jiff::Timestamp>() {
        Ok(_) => Ok(text),
        Err(_) => {
            Err(impossible("an event", into, &format!("its {name} is no moment of RFC 3339")))
        }
    }
}

fn impossible(what: &str, into: &str, why: &str) -> Unsendable {
    Unsendable::Impossible(format!("{what} cannot be delivered as {into}: {why}"))
}

fn required<'a>(name: &str, value: Option<&'a str>, into: &str) -> Result<&'a str, Unsendable> {
    value.ok_or_else(|| {
        let why = format!("its topic's mapping finds no {name} in it and has no default");
        impossible("a custom event", into, &why)
    })
}
