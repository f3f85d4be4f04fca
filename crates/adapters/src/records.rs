//! What Lambda hands over, as plain records, and the answer it wants back.
//!
//! The answer is exact because Lambda is strict: an empty list means all done, an unknown or empty identifier means
//! the *whole batch* failed. A record without a message id could only be answered wrongly, so the invocation fails.

use std::sync::Arc;

use crate::machine::Machine;
use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use delivery::ports::Clock as _;
use delivery::trace::{TRACE_ATTRIBUTE, parent_of_xray};
use delivery::wire::{DEADLETTER_ATTRIBUTE, DELIVERY_ATTRIBUTE, TOPIC_ATTRIBUTE};
use thiserror::Error;

/// One received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its SQS message id.
    pub message: String,
    /// The receipt that hides or deletes it.
    pub receipt: String,
    /// The name of the queue it came from.
    pub queue: String,
    /// Its body.
    pub body: Arc<str>,
    /// The `topic` attribute, as the publisher wrote it.
    pub topic: Option<String>,
    /// Our `delivery` attribute.
    pub delivery: Option<String>,
    /// Our `deadletter` attribute.
    pub deadletter: Option<String>,
    /// The `traceparent` of the trace that sent it.
    pub traceparent: Option<String>,
    /// SentTimestamp: when it was sent to its first queue.
    pub sent_ms: u64,
    /// When it was first received from this queue.
    pub first_received_ms: u64,
    /// How often it was received, this time included.
    pub receives: u32,
}

/// The invocation cannot be answered record by record.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Lambda needs the id to know which record failed.
    #[error("record {index} of the batch has no messageId, so no answer about it is possible")]
    NoMessageId {
        /// Its place in the batch, from 0.
        index: usize,
    },
}

/// Reads a batch.
///
/// # Errors
/// [`RecordError`] when a record has no message id: the invocation has to fail.
pub fn read(event: SqsEvent) -> Result<Vec<Record>, RecordError> {
    event.records.into_iter().enumerate().map(|(index, message)| record(index, message)).collect()
}

/// The answer that gives back these records, by message id, and acknowledges all others.
#[must_use]
pub fn answer(given_back: impl IntoIterator<Item = String>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = given_back
        .into_iter()
        .map(|message| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = message;
            failure
        })
        .collect();
    response
}

fn record(index: usize, message: SqsMessage) -> Result<Record, RecordError> {
    let id = message.message_id.filter(|id| !id.is_empty()).ok_or(RecordError::NoMessageId { index })?;
    let system = |name: &str| message.attributes.get(name).and_then(|text| text.parse::<u64>().ok());
    let ours = |name: &str| message.message_attributes.get(name).and_then(|attribute| attribute.string_value.clone());
    // SQS always says when; should it not, now is the safe guess, for an old event might count as expired.
    let sent_ms = system("SentTimestamp").unwrap_or_else(|| Machine.now_ms());
    Ok(Record {
        topic: ours(TOPIC_ATTRIBUTE),
        delivery: ours(DELIVERY_ATTRIBUTE),
        deadletter: ours(DEADLETTER_ATTRIBUTE),
        traceparent: message.attributes.get(TRACE_ATTRIBUTE).and_then(|header| parent_of_xray(header)),
        sent_ms,
        first_received_ms: system("ApproximateFirstReceiveTimestamp").unwrap_or(sent_ms),
        receives: system("ApproximateReceiveCount").and_then(|count| count.try_into().ok()).unwrap_or(1),
        queue: message.event_source_arn.as_deref().and_then(|arn| arn.rsplit(':').next()).unwrap_or("").to_owned(),
        receipt: message.receipt_handle.unwrap_or_default(),
        body: message.body.unwrap_or_default().into(),
        message: id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> SqsEvent {
        serde_json::from_str(json).expect("the event is in Lambda's form")
    }

    #[test]
    fn a_record_is_read_with_its_attributes_and_times() {
        let records = read(event(
            r#"{"Records":[{"messageId":"m1","receiptHandle":"r1","body":"{}","md5OfBody":"",
              "attributes":{"SentTimestamp":"1700000000123","ApproximateReceiveCount":"3","ApproximateFirstReceiveTimestamp":"1700000000200"},
              "messageAttributes":{"topic":{"stringValue":"shop/orders","dataType":"String"},"delivery":{"stringValue":"{}","dataType":"String"}},
              "eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:events","awsRegion":"us-east-1"}]}"#,
        ))
        .unwrap();
        let record = &records[0];
        assert_eq!((record.message.as_str(), record.receipt.as_str(), record.queue.as_str()), ("m1", "r1", "events"));
        assert_eq!(
            (record.topic.as_deref(), record.delivery.as_deref(), record.deadletter.as_deref()),
            (Some("shop/orders"), Some("{}"), None)
        );
        assert_eq!(
            (record.sent_ms, record.first_received_ms, record.receives),
            (1_700_000_000_123, 1_700_000_000_200, 3)
        );
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation() {
        for id in ["", r#""messageId":"","#] {
            let error = read(event(&format!(
                r#"{{"Records":[{{{id}"body":"x","attributes":{{}},"messageAttributes":{{}}}}]}}"#
            )));
            assert!(matches!(error, Err(RecordError::NoMessageId { index: 0 })), "{error:?}");
        }
    }

    #[test]
    fn the_answer_has_lambdas_keys_and_an_empty_list_when_all_is_done() {
        let json = |ids: &[&str]| serde_json::to_string(&answer(ids.iter().map(|id| (*id).to_owned()))).unwrap();
        assert_eq!(json(&[]), r#"{"batchItemFailures":[]}"#);
        assert_eq!(json(&["a", "b"]), r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}"#);
    }
}
