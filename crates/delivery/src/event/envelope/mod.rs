//! Messages of AWS services, converted to CloudEvents: Amazon SNS, Amazon EventBridge, Amazon S3.
//!
//! Separate because AWS defines these formats and may change them. The mappings of SNS and S3 are
//! those of the CloudEvents project
//! (<https://github.com/cloudevents/spec/tree/main/cloudevents/adapters>); it has none for
//! EventBridge; see that module. Values keep the publisher's spelling: their raw text is copied,
//! never parsed and serialized again. From then on the new event is what is queued, posted and
//! stored.
//!
//! A message that is a CloudEvent already stays as it is: a publisher may send one through any of
//! the three. Whether a record is converted is decided elsewhere: by its topic's `input`, or where
//! the record names no topic, which none of the three can, by the publisher it names.

mod cloud_event;
mod elements;
mod eventbridge;
mod publisher;
mod s3;
mod service;
mod sns;

use std::sync::Arc;

pub use self::elements::Elements;
pub use self::publisher::{Publisher, input_of};
use crate::event::json::without_mark;
use crate::event::{Element, Input, Members};

/// Which of the three services wrote a record, recognised by its fields.
#[must_use]
pub fn publisher(body: &str) -> Option<Publisher> {
    let body = without_mark(body);
    if !body.trim_start().starts_with('{') {
        return None;
    }
    let members = Members::parse(body).ok()?;
    sns::publisher(&members)
        .or_else(|| eventbridge::publisher(&members))
        .or_else(|| s3::publisher(&members))
}

/// Reads a record's body into its events, in order: a JSON array is one event per element, an S3
/// notification is one event per record in it.
#[must_use]
pub fn decode(body: &Arc<str>, input: Input) -> Vec<Element> {
    match Elements::of(body, input) {
        Ok(elements) => (0..elements.len()).map(|index| elements.decode(index)).collect(),
        Err(why) => vec![Element::Malformed { text: Arc::clone(body), why }],
    }
}
