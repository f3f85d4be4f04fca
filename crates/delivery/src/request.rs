//! One attempt as data: where it goes, what it says, how long it may take.
//!
//! A structured CloudEvent is sent as it was published, to the byte; so is any text of an opaque topic. An Event Grid
//! event or a custom one travels as an array of one, as Event Grid sends them.

use std::sync::Arc;

use url::Url;

use crate::event::{Event, Shape};
use crate::subscription::Subscription;

/// One HTTP request to a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Where it goes.
    pub url: Url,
    /// Its headers, content type first.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Arc<str>,
    /// How long the whole exchange may take.
    pub timeout_ms: u64,
}

/// The request of one attempt for this event, with the response timeout that the invocation can give.
#[must_use]
pub fn compose(subscription: &Subscription, event: &Event, timeout_ms: u64) -> Request {
    let destination = &subscription.destination;
    let (content_type, body) = body_of(event);
    let mut headers = vec![("content-type".to_owned(), content_type.to_owned())];
    headers.extend(destination.headers.iter().cloned());
    Request { url: destination.url.clone(), headers, body, timeout_ms }
}

fn body_of(event: &Event) -> (&'static str, Arc<str>) {
    match event.shape() {
        Shape::CloudEvent => ("application/cloudevents+json; charset=utf-8", Arc::clone(event.text())),
        Shape::EventGrid | Shape::Custom => ("application/json; charset=utf-8", format!("[{}]", event.text()).into()),
        Shape::Opaque => ("text/plain; charset=utf-8", Arc::clone(event.text())),
    }
}
