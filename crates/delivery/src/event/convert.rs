//! Converts an event into a different schema.
//!
//! An Event Grid event becomes a CloudEvent. A custom event becomes a CloudEvent or an Event Grid
//! event, with the mapping of its topic. Values keep the publisher's spelling: their raw text is
//! copied, and never parsed and serialized again. A CloudEvent is not converted, because no
//! specification maps its attributes to another schema.
//!
//! The mapping follows "event schemas" in the documentation of Event Grid: the CloudEvents `source`
//! is the topic, and `type` is the event type.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::event::json::Object;
use crate::event::mapping::Mapped;
use crate::event::uri::reference;
use crate::event::{Event, Shape};
use crate::time::moment::with_zone;

/// Name of the target schema, for error messages.
const CLOUD_EVENT: &str = "a CloudEvent";

/// Returns the event as a structured CloudEvent. `mapped` contains the mapped attributes of a
/// custom event.
///
/// # Errors
/// Fails if the event cannot be converted, for example because it lacks a required attribute. The
/// error states the reason.
pub(crate) fn cloud_event(
    event: &Event,
    topic: &impl fmt::Display,
    mapped: Option<&Mapped>,
) -> Result<Arc<str>, String> {
    match (event.shape(), mapped) {
        (_, Some(mapped)) => of_custom(event, mapped),
        (Shape::CloudEvent, None) => Ok(Arc::clone(event.text())),
        (Shape::EventGrid, None) => of_event_grid(event, topic),
        (Shape::Opaque, None) => {
            Err(impossible("text of an opaque topic", CLOUD_EVENT, "text has no attributes"))
        }
        (Shape::Custom, None) => {
            Err(impossible("a custom event", CLOUD_EVENT, "the topic has no mapping of the fields"))
        }
    }
}

fn of_custom(published: &Event, mapped: &Mapped) -> Result<Arc<str>, String> {
    let mut event = Object::default();
    event.text("specversion", "1.0");
    event.text("type", required("eventType", mapped.event_type.as_deref(), CLOUD_EVENT)?);
    event.text("source", &reference(&mapped.topic));
    event.text("id", &mapped.id);
    event.text("time", &moment(&mapped.event_time, CLOUD_EVENT)?);
    event.optional("subject", mapped.subject.as_deref());
    event.raw("data", Some(published.text()));
    Ok(event.finish().into())
}

fn of_event_grid(published: &Event, topic: &impl fmt::Display) -> Result<Arc<str>, String> {
    let (members, mut event) = (published.members(), Object::default());
    event.text("specversion", "1.0");
    let time = members.text("eventTime").unwrap_or_default();
    let with_zone = moment(&time, CLOUD_EVENT)?;
    event.raw("type", members.get("eventType"));
    event.raw("id", members.get("id"));
    match with_zone == time {
        true => event.raw("time", members.get("eventTime")),
        false => event.text("time", &with_zone),
    }
    event.raw("subject", members.get("subject"));
    match members.text("topic").is_some_and(|topic| !topic.is_empty()) {
        true => event.raw("source", members.get("topic")),
        false => event.text("source", &topic.to_string()),
    }
    event.raw("data", members.get("data"));
    Ok(event.finish().into())
}

/// Returns the event in the Event Grid schema. `mapped` contains the mapped attributes of a custom
/// event.
///
/// # Errors
/// Fails if the event cannot be converted, for example because it lacks a required field. The error
/// states the reason.
pub(crate) fn event_grid(published: &Event, mapped: Option<&Mapped>) -> Result<Arc<str>, String> {
    const SCHEMA: &str = "an Event Grid event";
    match (published.shape(), mapped) {
        (_, Some(mapped)) => {
            let mut event = Object::default();
            event.text("id", &mapped.id);
            event.text("eventTime", &moment(&mapped.event_time, SCHEMA)?);
            event.text("eventType", required("eventType", mapped.event_type.as_deref(), SCHEMA)?);
            event.text("dataVersion", mapped.data_version.as_deref().unwrap_or_default());
            event.text("metadataVersion", "1");
            event.text("topic", &mapped.topic);
            event.text("subject", required("subject", mapped.subject.as_deref(), SCHEMA)?);
            event.raw("data", Some(published.text()));
            Ok(event.finish().into())
        }
        (Shape::EventGrid, None) => Ok(Arc::clone(published.text())),
        (Shape::CloudEvent, None) => Err(impossible(
            "a CloudEvent",
            SCHEMA,
            "Event Grid converts events only into CloudEvents",
        )),
        (Shape::Opaque, None) => {
            Err(impossible("text of an opaque topic", SCHEMA, "text has no fields"))
        }
        (Shape::Custom, None) => {
            Err(impossible("a custom event", SCHEMA, "the topic has no mapping of the fields"))
        }
    }
}

/// Returns the time of an event in RFC 3339, which both schemas require. A time without a zone
/// counts as UTC. `into` is the name of the schema, for error messages.
fn moment<'a>(event_time: &'a str, into: &str) -> Result<Cow<'a, str>, String> {
    with_zone(event_time)
        .ok_or_else(|| impossible("an event", into, "eventTime is not an RFC 3339 time"))
}

fn impossible(event: &str, into: &str, why: &str) -> String {
    format!("{event} cannot be delivered as {into}: {why}")
}

fn required<'a>(name: &str, value: Option<&'a str>, into: &str) -> Result<&'a str, String> {
    value.ok_or_else(|| {
        let why =
            format!("the mapping of the topic finds no {name} in the event and has no default");
        impossible("a custom event", into, &why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Input;

    #[test]
    fn an_event_time_without_a_zone_is_utc_in_a_cloud_event() {
        for (written, time) in [
            ("2021-05-14T23:50:00.324", Some("2021-05-14T23:50:00.324Z")),
            ("2021-05-14T23:50:00.3240000Z", Some("2021-05-14T23:50:00.3240000Z")),
            ("2021-05-14T23:50:00+02:00", Some("2021-05-14T23:50:00+02:00")),
            ("9999-12-31T23:59:59.9999999Z", Some("9999-12-31T23:59:59.9999999Z")),
            ("yesterday", None),
        ] {
            let text = format!(
                r#"{{"id":"1","topic":"/t","subject":"s","eventType":"t","eventTime":"{written}","data":{{}}}}"#
            );
            let published = Event::recall(&text.as_str().into(), Input::Auto);
            let converted = cloud_event(&published, &"n/t", None);
            match time {
                Some(time) => {
                    let converted = converted.expect(written);
                    assert!(converted.contains(&format!(r#""time":"{time}""#)), "{converted}");
                }
                None => assert!(converted.is_err(), "{written}"),
            }
            let unchanged = event_grid(&published, None).expect("an Event Grid event");
            assert_eq!(*unchanged, *text, "the published text is unchanged");
        }
    }
}
