//! Builds the body of a request from the events of its deliveries, in the schema of their
//! subscription.
//!
//! This module is separate because `batch` uses it too, before a request is composed.

use std::sync::Arc;

use super::binary;
use super::content::{CLOUD_EVENT, CLOUD_EVENTS, Content, JSON, TEXT, text};
use crate::delivery::Delivery;
use crate::delivery::outcome::Unsendable;
use crate::event::json::array;
use crate::event::schema::Schema;
use crate::event::{Shape, convert};
use crate::subscription::{Destination, Subscription};

/// The form in which events are put into a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The body is a structured CloudEvent, or an array of them if the subscription batches.
    CloudEvent,
    /// The body is always an array: of events in the Event Grid schema, or of custom payloads.
    Json,
    /// The body is a payload as it was published, or an array of payloads if the subscription
    /// batches.
    Plain,
}

/// The contribution of one event to a body.
pub(super) enum Part {
    /// An element of an array, or the only element of a body.
    Element(Form, Arc<str>),
    /// A complete body with its headers, which cannot be combined with others.
    Whole(Content),
}

/// Builds the body of a request with these deliveries.
pub(super) fn content(
    subscription: &Subscription,
    deliveries: &[&Delivery],
) -> Result<Content, Unsendable> {
    let (mut form, mut elements) = (Form::Json, Vec::with_capacity(deliveries.len()));
    for delivery in deliveries {
        match part(subscription, delivery)? {
            Part::Whole(content) if deliveries.len() == 1 => return Ok(content),
            Part::Whole(_) => {
                return Err(Unsendable::Impossible(
                    "the event cannot share a request with others".to_owned(),
                ));
            }
            Part::Element(element_form, text) => {
                form = element_form;
                elements.push(text);
            }
        }
    }
    Ok(match (form, &elements[..]) {
        (Form::CloudEvent, [event]) if subscription.batch.is_none() => {
            Content::new(CLOUD_EVENT, text(event))
        }
        (Form::Plain, [event]) if subscription.batch.is_none() => Content::new(JSON, text(event)),
        (Form::CloudEvent, events) => Content::new(CLOUD_EVENTS, array(events).into()),
        (Form::Json | Form::Plain, events) => Content::new(JSON, array(events).into()),
    })
}

/// Converts the event of one delivery to the schema of the subscription.
pub(super) fn part(subscription: &Subscription, delivery: &Delivery) -> Result<Part, Unsendable> {
    let as_published = match delivery.event.shape() {
        Shape::CloudEvent => Schema::CloudEventsStructured,
        // An AWS service expects one event, but events in the Event Grid schema are sent in an
        // array.
        Shape::EventGrid if subscription.destination.aws.is_some() => Schema::CloudEventsStructured,
        Shape::EventGrid => Schema::EventGrid,
        Shape::Custom => Schema::Custom,
        Shape::Opaque => match subscription.destination.schema {
            None => return Ok(Part::Whole(Content::new(TEXT, text(delivery.event.text())))),
            Some(schema) => {
                let schema = schema.as_str();
                return Err(Unsendable::Impossible(format!(
                    "text of an opaque topic cannot be delivered as {schema}"
                )));
            }
        },
    };
    let is_custom = delivery.event.shape() == Shape::Custom;
    let mapped = is_custom.then(|| delivery.mapped(&subscription.mapping));
    let (mapped, event, topic) = (mapped.as_ref(), &delivery.event, &delivery.subscription.topic);
    let cloud_event = || convert::cloud_event(event, topic, mapped).map_err(Unsendable::Impossible);
    let Destination { schema, plain_json, .. } = subscription.destination;
    let custom = if plain_json && schema.is_none() { Form::Plain } else { Form::Json };
    Ok(match schema.unwrap_or(as_published) {
        Schema::CloudEventsStructured => Part::Element(Form::CloudEvent, cloud_event()?),
        Schema::CloudEventsBinary => Part::Whole(binary::content(&cloud_event()?)?),
        Schema::EventGrid => {
            let event = convert::event_grid(event, mapped).map_err(Unsendable::Impossible)?;
            Part::Element(Form::Json, event)
        }
        Schema::Custom => Part::Element(custom, Arc::clone(delivery.event.text())),
    })
}
