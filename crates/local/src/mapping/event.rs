//! Converts received messages to the event that Lambda passes to a function.
//!
//! Separate because the conversion is pure, and AWS defines the format:
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>.
//!
//! Promises: the event has every member that Lambda sets. Does not validate messages.

use adapters::records::Batch;
use aws_lambda_events::encodings::Base64Data;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::types::{Message, MessageAttributeValue};

use crate::aws::{ACCOUNT, REGION};

/// Converts an event to a batch through JSON, as Lambda does.
///
/// # Errors
/// Never fails for events of [`sqs_event`].
pub fn received(event: &SqsEvent) -> serde_json::Result<Batch> {
    serde_json::from_value(serde_json::to_value(event)?)
}

/// Returns the event for these messages of the queue `queue_name`.
#[must_use]
pub fn sqs_event(messages: &[Message], queue_name: &str) -> SqsEvent {
    let mut event = SqsEvent::default();
    event.records = messages.iter().map(|message| record(message, queue_name)).collect();
    event
}

fn record(message: &Message, queue_name: &str) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id.clone_from(&message.message_id);
    record.receipt_handle.clone_from(&message.receipt_handle);
    record.body.clone_from(&message.body);
    record.md5_of_body.clone_from(&message.md5_of_body);
    record.md5_of_message_attributes.clone_from(&message.md5_of_message_attributes);
    let system = message.attributes.iter().flatten();
    record.attributes =
        system.map(|(name, value)| (name.as_str().to_owned(), value.clone())).collect();
    let attributes = message.message_attributes.iter().flatten();
    record.message_attributes =
        attributes.map(|(name, value)| (name.clone(), attribute(value))).collect();
    record.event_source = Some("aws:sqs".to_owned());
    record.event_source_arn = Some(format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue_name}"));
    record.aws_region = Some(REGION.to_owned());
    record
}

fn attribute(value: &MessageAttributeValue) -> SqsMessageAttribute {
    let mut attribute = SqsMessageAttribute::default();
    attribute.data_type = Some(value.data_type.clone());
    attribute.string_value.clone_from(&value.string_value);
    attribute.binary_value = value.binary_value.as_ref().map(|blob| binary(blob.as_ref()));
    attribute
}

fn binary(bytes: &[u8]) -> Base64Data {
    let mut data = Base64Data::default();
    data.0 = bytes.to_vec();
    data
}
