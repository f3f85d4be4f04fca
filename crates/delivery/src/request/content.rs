//! [`Content`]: the body of a request, with the headers that describe it.
//!
//! This module is separate because `binary` composes bodies too, with other headers.

use std::sync::Arc;

use bytes::Bytes;

use crate::event::Shape;

pub(super) const CLOUD_EVENT: &str = "application/cloudevents+json; charset=utf-8";
pub(super) const CLOUD_EVENTS: &str = "application/cloudevents-batch+json; charset=utf-8";
pub(crate) const JSON: &str = "application/json; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Returns the content type with which commands publish an unchanged event over HTTP.
pub const fn content_type(shape: Shape) -> &'static str {
    match shape {
        Shape::CloudEvent => CLOUD_EVENT,
        Shape::EventGrid | Shape::Custom | Shape::Opaque => JSON,
    }
}

/// The body of a request, with the headers that describe it.
pub(super) struct Content {
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Content {
    /// Returns a body with the header `Content-Type`.
    pub(super) fn new(content_type: &str, body: Bytes) -> Self {
        Self { headers: vec![("content-type".to_owned(), content_type.to_owned())], body }
    }
}

/// Returns a text as the bytes of a body, without copying it.
pub(super) fn text(text: &Arc<str>) -> Bytes {
    Bytes::from_owner(Arc::<[u8]>::from(Arc::clone(text)))
}
