//! Whether a topic's events can become what a subscription asks for.
//!
//! Separate because it takes two documents to see, a topic and a subscription, of whatever
//! families. Only what is certain from the files is told: events of a topic with automatic input
//! have the shape they have, and one that cannot be converted ends its own delivery
//! (`request::shape` is what converts).

use super::findings::Message;
use crate::event::Input;
use crate::event::mapping::{Field, Mapping};
use crate::event::schema::Schema;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Topic;

/// Why no event of the topic can be delivered in the schema that the subscription names.
pub(super) fn impossible(subscription: &Subscription, topic: &Topic) -> Option<Message> {
    let schema = subscription.destination.schema?;
    let (name, word) = (&topic.name, schema.as_str());
    let mapping = &topic.mapping;
    match (topic.input, schema) {
        (
            Input::Opaque,
            Schema::CloudEventsStructured
            | Schema::CloudEventsBinary
            | Schema::EventGrid
            | Schema::Custom,
        ) => {
            let problem = format!(
                "the topic {name} has input opaque; its text cannot be delivered as {word}"
            );
            Some(Message::new(problem).help("without a schema it is sent as it was published"))
        }
        (Input::CloudEvents | Input::Sns | Input::EventBridge | Input::S3, Schema::EventGrid) => {
            let input = topic.input.as_str();
            let problem = format!(
                "the topic {name} has input {input}; a CloudEvent cannot be delivered as {word}"
            );
            Some(Message::new(problem).help("it can be delivered as a CloudEvent"))
        }
        (Input::Custom, Schema::EventGrid) => {
            unmapped(topic, word, &[event_type(mapping), subject(mapping)])
        }
        (Input::Custom, Schema::CloudEventsStructured | Schema::CloudEventsBinary) => {
            unmapped(topic, word, &[event_type(mapping)])
        }
        (
            Input::Custom | Input::CloudEvents | Input::Sns | Input::EventBridge | Input::S3,
            Schema::Custom,
        )
        | (
            Input::CloudEvents | Input::Sns | Input::EventBridge | Input::S3,
            Schema::CloudEventsStructured | Schema::CloudEventsBinary,
        )
        | (
            Input::Auto | Input::EventGrid,
            Schema::CloudEventsStructured
            | Schema::CloudEventsBinary
            | Schema::EventGrid
            | Schema::Custom,
        ) => None,
    }
}

/// Why no two events of the subscription can ever share a request that asks for it.
pub(super) fn never_batched(subscription: &Subscription) -> Option<Message> {
    subscription.batch?;
    match subscription.destination.schema? {
        schema @ Schema::CloudEventsBinary => {
            let problem = format!(
                "events in the schema {} cannot share a request: its body is the data of one",
                schema.as_str()
            );
            Some(Message::new(problem).help("schema: cloudevents-structured, or no batch"))
        }
        Schema::CloudEventsStructured | Schema::EventGrid | Schema::Custom => None,
    }
}

/// Why batches that a subscription asks for are never made of the topic's events.
pub(super) fn travels_alone(subscription: &Subscription, topic: &Topic) -> Option<Message> {
    subscription.batch?;
    match topic.input {
        Input::Opaque => {
            let warning = format!(
                "not used: the topic {} has input opaque, and each text travels alone",
                topic.name
            );
            Some(Message::new(warning).help("leave batch out"))
        }
        Input::Auto
        | Input::CloudEvents
        | Input::EventGrid
        | Input::Custom
        | Input::Sns
        | Input::EventBridge
        | Input::S3 => None,
    }
}

/// An attribute that the schema needs, and where the mapping finds it.
type Needed<'m> = (&'static str, &'m Field);

fn event_type(mapping: &Mapping) -> Needed<'_> {
    ("eventType", &mapping.event_type)
}

fn subject(mapping: &Mapping) -> Needed<'_> {
    ("subject", &mapping.subject)
}

fn unmapped(topic: &Topic, schema: &str, needed: &[Needed<'_>]) -> Option<Message> {
    let missing = |(_, field): &&Needed<'_>| field.path.is_none() && field.default.is_none();
    let missing: Vec<&str> = needed.iter().filter(missing).map(|(name, _)| *name).collect();
    let (first, named) = (missing.first()?, missing.join(" and no "));
    let problem =
        format!("the mapping of the topic {} gives no {named}, which {schema} needs", topic.name);
    Some(
        Message::new(problem)
            .help(format!("in its spec, mapping: {{{first}: {{field: …, default: …}}}}")),
    )
}

#[cfg(test)]
mod tests;
