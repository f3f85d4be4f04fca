//! Converts messages of Amazon SNS, Amazon EventBridge and Amazon S3 into CloudEvents.
//!
//! This module is separate because AWS defines these formats and may change them. The mappings of
//! SNS and S3 are those of the CloudEvents project
//! (<https://github.com/cloudevents/spec/tree/main/cloudevents/adapters>). The module `eventbridge`
//! documents the mapping of EventBridge. Values keep the publisher's spelling: their raw text is
//! copied, and never parsed and serialized again. After the conversion, only the new event is
//! queued, posted and stored.
//!
//! A message that is already a CloudEvent stays unchanged, because a publisher may send one through
//! any of the three services. The `input` of the topic decides whether a record is converted. For a
//! record without a topic, the publisher determines the topic and, if the `input` is `auto`, the
//! format. None of the three services can name a topic.

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

/// Returns the SNS topic, EventBridge source or S3 bucket that published a record. Returns `None`
/// if the fields of the record are not those of one of the three services.
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

/// Decodes the body of a record into its events, in order. A JSON array contains one event per
/// element, and an S3 notification one event per record.
#[must_use]
pub fn decode(body: &Arc<str>, input: Input) -> Vec<Element> {
    match Elements::parse(body, input) {
        Ok(elements) => (0..elements.len()).map(|index| elements.decode(index)).collect(),
        Err(why) => vec![Element::Malformed { text: Arc::clone(body), why }],
    }
}
