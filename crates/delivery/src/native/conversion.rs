//! Checks whether a topic's events can be delivered in the schema of a subscription.
//!
//! This module is separate because the check needs two documents, a topic and a subscription, of
//! any dialect. A problem is reported only if it is certain. Events of a topic with input `auto`
//! may have any schema, and a failed conversion ends only the delivery of that event (see
//! [`crate::event::convert`]).

use crate::document::findings::Message;
use crate::event::Input;
use crate::event::mapping::Field;
use crate::event::schema::Schema;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Topic;

/// Returns the reason why no event of the topic can be delivered in the subscription's schema;
/// `None` if this is not certain.
pub(super) fn impossible(subscription: &Subscription, topic: &Topic) -> Option<Message> {
    let destination = &subscription.destination;
    let event_type = ("eventType", &topic.settings.mapping.event_type);
    if destination.has_templates() && topic.settings.input == Input::Custom {
        return unmapped(topic, "the CloudEvent for templates", &[event_type]);
    }
    if destination.has_body() {
        return None;
    }
    let schema = destination.schema?;
    let (name, word) = (&topic.name, schema.as_str());
    let subject = ("subject", &topic.settings.mapping.subject);
    match (topic.settings.input, schema) {
        (Input::Opaque, _) => {
            let problem = format!(
                "the topic {name} has input opaque, so its events cannot be delivered as {word}"
            );
            Some(Message::new(problem).help("omit schema to send each event as it was published"))
        }
        (
            Input::CloudEvents | Input::Sns | Input::SnsWhole | Input::EventBridge | Input::S3,
            Schema::EventGrid,
        ) => {
            let input = topic.settings.input.as_str();
            let problem = format!(
                "the topic {name} has input {input}, and CloudEvents cannot be delivered as {word}"
            );
            Some(Message::new(problem).help("use a CloudEvents schema"))
        }
        (Input::Custom, Schema::EventGrid) => unmapped(topic, word, &[event_type, subject]),
        (Input::Custom, Schema::CloudEventsStructured | Schema::CloudEventsBinary) => {
            unmapped(topic, word, &[event_type])
        }
        (_, Schema::Custom)
        | (Input::Auto | Input::EventGrid, _)
        | (
            Input::CloudEvents | Input::Sns | Input::SnsWhole | Input::EventBridge | Input::S3,
            Schema::CloudEventsStructured | Schema::CloudEventsBinary,
        ) => None,
    }
}

/// Returns the reason why events of a subscription with batches can never share a request. Returns
/// `None` if they can, or if the subscription has no batches.
pub(super) fn never_batched(subscription: &Subscription) -> Option<Message> {
    subscription.batch?;
    let schema = subscription.destination.schema?;
    if schema != Schema::CloudEventsBinary || subscription.destination.has_body() {
        return None;
    }
    let problem = format!(
        "events in the schema {} cannot share a request: the body is the data of one event",
        schema.as_str()
    );
    Some(Message::new(problem).help("use schema: cloudevents-structured, or omit batch"))
}

/// Returns the reason why the topic's events never share a request, although the subscription has
/// batches. Returns `None` if they may share one, or if the subscription has no batches.
pub(super) fn travels_alone(subscription: &Subscription, topic: &Topic) -> Option<Message> {
    subscription.batch?;
    if topic.settings.input != Input::Opaque {
        return None;
    }
    let warning = format!(
        "no effect: the topic {} has input opaque, so each event is sent in a separate request",
        topic.name
    );
    Some(Message::new(warning).help("omit batch"))
}

/// The name of an attribute that a schema requires, and the mapping of this attribute.
type Needed<'m> = (&'static str, &'m Field);

fn unmapped(topic: &Topic, schema: &str, needed: &[Needed<'_>]) -> Option<Message> {
    let missing = |(_, field): &&Needed<'_>| field.path.is_none() && field.default.is_none();
    let missing: Vec<&str> = needed.iter().filter(missing).map(|(name, _)| *name).collect();
    let (first, named) = (missing.first()?, missing.join(" and no "));
    let problem = format!(
        "the mapping of the topic {} provides no {named}, which {schema} requires",
        topic.name
    );
    Some(Message::new(problem).help(format!(
        "add to the spec of the Topic: mapping: {{{first}: {{field: …, default: …}}}}"
    )))
}
