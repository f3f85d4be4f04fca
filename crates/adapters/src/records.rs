//! Converts the batch of an invocation into records, and builds the response.
//!
//! A CloudEvent in binary mode, whose attributes are message attributes, becomes a structured
//! document. Afterwards all events have the same form, and the body contains the whole event.
//!
//! [`Batch`] deserializes only the fields that are used, because parsing costs time for every
//! event.
//!
//! The response must be exact. Lambda treats an empty list as "all records are done", and an
//! unknown or empty identifier as a failure of the *whole batch*. For a record without a message id
//! no response is correct, so the invocation fails.

use std::collections::BTreeMap;

use aws_lambda_events::event::sqs::SqsBatchResponse;
use delivery::delivery::trace::parent_of_xray;
use delivery::event::binary::{self, ContentMode};
use delivery::ports::{Attribute, Clock as _, QueueName, Record};
use delivery::wire::{
    DEADLETTER_ATTRIBUTE, DELIVERY_ATTRIBUTE, PUBLICATION_ATTRIBUTE, RECEIVES_ATTRIBUTE,
    TOPIC_ATTRIBUTE, UNREAD_ATTRIBUTE,
};
use serde::Deserialize;
use thiserror::Error;

use crate::machine::Machine;

/// The event with which Lambda invokes a function.
/// <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>
#[derive(Debug, Deserialize)]
pub struct Batch {
    #[serde(rename = "Records")]
    records: Vec<Message>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: Option<String>,
    receipt_handle: Option<String>,
    body: Option<String>,
    attributes: Option<SystemAttributes>,
    message_attributes: Option<BTreeMap<String, TextAttribute>>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SystemAttributes {
    sent_timestamp: Option<String>,
    approximate_receive_count: Option<String>,
    approximate_first_receive_timestamp: Option<String>,
    #[serde(rename = "MessageGroupId")]
    group: Option<String>,
    #[serde(rename = "AWSTraceHeader")]
    trace: Option<String>,
    /// The source queue, if SQS moved the message from there after too many receives.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>
    #[serde(rename = "DeadLetterQueueSourceArn")]
    given_up_by: Option<String>,
}

/// A message attribute that the sender set; binary values are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextAttribute {
    string_value: Option<String>,
}

/// Error for a record without a message id, which a response cannot report. Contains the index of
/// the record.
#[derive(Debug, Error)]
#[error("record {0} of the batch has no messageId, so a response cannot report its failure")]
pub struct NoMessageId(usize);

/// The queues from which a function receives records. Records from any other queue are treated as
/// untrusted, like those of the events queue.
#[derive(Debug, Clone)]
pub struct SourceQueues {
    /// Pairs of the end of an ARN, `:account:name`, and the queue whose ARN ends in this way.
    ends: Vec<(String, QueueName)>,
    untrusted: QueueName,
}

impl SourceQueues {
    /// Creates the list of queues at these URLs. `untrusted` is the name for every other queue.
    #[must_use]
    pub fn new(urls: &[(QueueName, String)], untrusted: QueueName) -> Self {
        let ends = urls.iter().map(|(queue, url)| (end_of_arn(url), *queue));
        Self { ends: ends.collect(), untrusted }
    }

    /// Returns the name of the queue with this ARN.
    fn of_arn(&self, arn: Option<&str>) -> QueueName {
        let arn = arn.unwrap_or_default();
        let known = self.ends.iter().find(|(end, _)| arn.ends_with(end));
        known.map_or(self.untrusted, |(_, queue)| *queue)
    }

    /// True if SQS moved the message here from the events queue. Then a publisher wrote the
    /// message, so its attributes must not be trusted, whatever their names.
    fn was_published(&self, given_up_by: Option<&str>) -> bool {
        let Some(arn) = given_up_by else { return false };
        self.ends.iter().any(|(end, queue)| !queue.is_internal() && arn.ends_with(end))
    }
}

/// Returns the end of the ARN of the queue with this URL: `:account:name`.
fn end_of_arn(url: &str) -> String {
    let mut parts = url.rsplit('/');
    let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!(":{account}:{name}")
}

/// Converts a batch of messages from these queues into records.
///
/// # Errors
/// [`NoMessageId`] if a record has no message id. The invocation must then fail.
pub fn read(batch: Batch, queues: &SourceQueues) -> Result<Vec<Record>, NoMessageId> {
    let records = batch.records.into_iter().enumerate();
    records.map(|(index, message)| record(index, message, queues)).collect()
}

/// Creates a response that returns the records with these message ids to the queue, and
/// acknowledges all others.
#[must_use]
pub fn answer(returned: impl IntoIterator<Item = String>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.set_failures(returned);
    response
}

fn record(index: usize, message: Message, queues: &SourceQueues) -> Result<Record, NoMessageId> {
    let id = message.message_id.filter(|id| !id.is_empty()).ok_or(NoMessageId(index))?;
    let mut attributes = message.message_attributes.unwrap_or_default();
    let mut ours =
        |name: &str| attributes.remove(name).and_then(|attribute| attribute.string_value);
    let topic = ours(TOPIC_ATTRIBUTE);
    // Remove all three attributes, so that none becomes part of a CloudEvent in binary mode.
    let (publication, delivery, deadletter) =
        (ours(PUBLICATION_ATTRIBUTE), ours(DELIVERY_ATTRIBUTE), ours(DEADLETTER_ATTRIBUTE));
    let attribute = deadletter.map(Attribute::DeadLetter);
    let attribute = attribute.or_else(|| delivery.map(Attribute::Delivery));
    let attribute = attribute.or_else(|| publication.map(Attribute::Publication));
    let queue = queues.of_arn(message.event_source_arn.as_deref());
    let system = message.attributes.unwrap_or_default();
    let is_ours = queue.is_internal() && !queues.was_published(system.given_up_by.as_deref());
    let attribute = attribute.filter(|_| is_ours);
    let mut count = |name: &str| {
        let text = ours(name).filter(|_| is_ours);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let (earlier_receives, unread) = (count(RECEIVES_ATTRIBUTE), count(UNREAD_ATTRIBUTE));
    let body = message.body.unwrap_or_default();
    // An internal message was converted when it was first received.
    let is_published = !queue.is_internal() || attribute.is_none();
    let structured = is_published.then(|| structured(attributes, &body)).flatten();
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
    // SQS always sends the time. If it did not, the current time would be the safe value: an
    // earlier time might make the event expire.
    let sent_ms = number(system.sent_timestamp).unwrap_or_else(|| Machine.now_ms());
    Ok(Record {
        topic,
        attribute,
        group: system.group,
        queue,
        earlier_receives,
        unread,
        traceparent: system.trace.and_then(|header| parent_of_xray(&header)),
        sent_ms,
        first_received_ms: number(system.approximate_first_receive_timestamp).unwrap_or(sent_ms),
        receives: number(system.approximate_receive_count)
            .and_then(|count| count.try_into().ok())
            .unwrap_or(1),
        receipt: message.receipt_handle.unwrap_or_default(),
        body: structured.unwrap_or(body).into(),
        message: id,
    })
}

/// Converts a CloudEvent in binary mode to its structured document; returns `None` for any other
/// message. The message attributes are named `ce-specversion` and so on, or `ce_…` for publishers
/// that cannot send a hyphen. The content type of the body is in `content-type` or `contentType`.
fn structured(attributes: BTreeMap<String, TextAttribute>, body: &str) -> Option<String> {
    let given = attributes.into_iter();
    let given = given
        .filter_map(|(name, attribute)| Some((name.to_ascii_lowercase(), attribute.string_value?)));
    let mut given: Vec<(String, String)> = given.collect();
    // Sorted, so that a redelivered message gives the same bytes.
    given.sort();
    let of_event = |name: &str| {
        name.strip_prefix("ce-").or_else(|| name.strip_prefix("ce_")).map(ToOwned::to_owned)
    };
    let content_type =
        given.iter().find(|(name, _)| matches!(name.as_str(), "content-type" | "contenttype"));
    let content_type = content_type.map(|(_, value)| value.as_str());
    let attributes =
        given.iter().filter_map(|(name, value)| Some((of_event(name)?, value.clone())));
    let attributes: Vec<(String, String)> = attributes.collect();
    // As in HTTP, the content type may state that the body already is the event. Otherwise the
    // version identifies a CloudEvent in binary mode.
    let is_event = ContentMode::from_content_type(content_type) == ContentMode::Data
        && attributes.iter().any(|(name, _)| name == "specversion");
    is_event.then(|| binary::structured_plain(&attributes, content_type, body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Batch {
        serde_json::from_str(json).expect("the event is in Lambda's form")
    }

    /// The records of a batch of a function whose queues are `events` and `retry`.
    fn read_batch(json: &str) -> Result<Vec<Record>, NoMessageId> {
        let queues =
            [(QueueName::Events, "events"), (QueueName::Retry, "retry")].map(|(queue, name)| {
                (queue, format!("https://sqs.eu-west-1.amazonaws.com/000000000000/{name}"))
            });
        read(event(json), &SourceQueues::new(&queues, QueueName::Events))
    }

    #[test]
    fn a_record_is_read_with_its_attributes_and_times() {
        let records = read_batch(
            r#"{"Records":[{"messageId":"m1","receiptHandle":"r1","body":"{}","md5OfBody":"",
              "attributes":{"SentTimestamp":"1700000000123","ApproximateReceiveCount":"3","ApproximateFirstReceiveTimestamp":"1700000000200",
               "AWSTraceHeader":"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"},
              "messageAttributes":{"topic":{"stringValue":"shop/orders","dataType":"String"},"delivery":{"stringValue":"{}","dataType":"String"}},
              "eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:events","awsRegion":"us-east-1"}]}"#,
        )
        .unwrap();
        let record = &records[0];
        assert_eq!(
            (record.message.as_str(), record.receipt.as_str(), record.queue),
            ("m1", "r1", QueueName::Events)
        );
        assert_eq!(
            (record.topic.as_deref(), record.attribute.clone(), record.trusted_attribute()),
            (Some("shop/orders"), None, None)
        );
        assert_eq!(
            record.traceparent.as_deref(),
            Some("00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01")
        );
        assert_eq!(
            (record.sent_ms, record.first_received_ms, record.receives),
            (1_700_000_000_123, 1_700_000_000_200, 3)
        );
    }

    #[test]
    fn attributes_are_ours_on_internal_queues_unless_the_events_queue_gave_the_message_up() {
        for (queue, given_up_by, is_ours) in [
            ("retry", None, true),
            ("retry", Some("retry"), true),
            ("retry", Some("another"), true),
            ("retry", Some("events"), false),
            ("events", None, false),
            ("another", None, false),
        ] {
            let arn = |name: &str| format!("arn:aws:sqs:us-east-1:000000000000:{name}");
            let text =
                |value: &str| serde_json::json!({"stringValue": value, "dataType": "String"});
            let system = serde_json::json!({"DeadLetterQueueSourceArn": given_up_by.map(arn)});
            let attributes = serde_json::json!({"receives": text("3"), "unread": text("4"), "deadletter": text("{}")});
            let message = serde_json::json!({"messageId": "m1", "attributes": system,
                "messageAttributes": attributes, "eventSourceARN": arn(queue)});
            let batch = serde_json::json!({ "Records": [message] }).to_string();
            let record = &read_batch(&batch).unwrap()[0];
            let counts = if is_ours { (3, 4) } else { (0, 0) };
            assert_eq!((record.earlier_receives, record.unread), counts, "{queue} {given_up_by:?}");
            assert_eq!(record.attribute.is_some(), is_ours, "{queue} {given_up_by:?}");
        }
    }

    #[test]
    fn what_a_message_does_not_contain_is_missing_and_no_error() {
        for silent in [
            r#"{"messageId":"m1"}"#,
            r#"{"messageId":"m1","receiptHandle":null,"body":null,"attributes":null,"messageAttributes":null,"eventSourceARN":null}"#,
            r#"{"messageId":"m1","attributes":{"SentTimestamp":"soon","AWSTraceHeader":"?","Other":"x"},"messageAttributes":{"topic":{"binaryValue":"AA==","dataType":"Binary"}},"x":[1]}"#,
        ] {
            let before_ms = Machine.now_ms();
            let record = &read_batch(&format!(r#"{{"Records":[{silent}]}}"#)).unwrap()[0];
            assert_eq!(
                (&record.topic, &record.attribute, &record.traceparent, &record.group),
                (&None, &None, &None, &None),
                "{silent}"
            );
            assert_eq!(
                (&*record.body, &*record.receipt, record.queue, record.receives),
                ("", "", QueueName::Events, 1),
                "{silent}"
            );
            assert!(
                (before_ms..=Machine.now_ms()).contains(&record.sent_ms),
                "now is the safe guess: {silent}"
            );
            assert_eq!(record.first_received_ms, record.sent_ms);
        }
    }

    #[test]
    fn events_of_other_services_are_not_a_batch() {
        for other in [
            "{}",
            r#"{"Records":null}"#,
            r#"{"Records":{}}"#,
            r#"{"detail-type":"x","source":"y"}"#,
            "[]",
        ] {
            assert!(serde_json::from_str::<Batch>(other).is_err(), "{other}");
        }
    }

    /// The body of the record of a published message with these attributes.
    fn body_of(attributes: &[(&str, &str)], body: &str) -> String {
        body_from("events", attributes, body)
    }

    fn body_from(queue: &str, attributes: &[(&str, &str)], body: &str) -> String {
        let attributes: serde_json::Map<String, serde_json::Value> = attributes
            .iter()
            .map(|(name, value)| {
                (
                    (*name).to_owned(),
                    serde_json::json!({"stringValue": value, "dataType": "String"}),
                )
            })
            .collect();
        let message = serde_json::json!({"messageId": "m1", "body": body, "attributes": {},
            "messageAttributes": attributes, "eventSourceARN": format!("arn:aws:sqs:r:000000000000:{queue}")});
        let batch = serde_json::json!({"Records": [message]}).to_string();
        read_batch(&batch).unwrap()[0].body.to_string()
    }

    #[test]
    fn a_cloud_event_in_binary_mode_becomes_one_document() {
        let mut attributes = vec![
            ("topic", "shop/orders"),
            ("content-type", "application/json; charset=utf-8"),
            ("ce-specversion", "1.0"),
            ("ce-id", "7"),
            ("ce-source", "/a%20b/é"),
            ("ce-type", "order.created"),
            ("ce-count", "5"),
            ("ce-subject", "12"),
        ];
        let structured = r#"{"specversion":"1.0","type":"order.created","source":"/a%20b/é","id":"7","count":5,"subject":"12","datacontenttype":"application/json; charset=utf-8","data":{ "n": 1.50 }}"#;
        assert_eq!(body_of(&attributes, r#"{ "n": 1.50 }"#), structured);
        attributes.push(("delivery", "{}"));
        let ours = body_from("retry", &attributes, "{}");
        assert_eq!(ours, "{}", "with our own attribute the body is not converted");
        let forged = body_of(&attributes, r#"{ "n": 1.50 }"#);
        assert_eq!(forged, structured, "a publisher's attribute of that name changes nothing");
        assert_eq!(body_from("1:retry", &attributes, r#"{ "n": 1.50 }"#), structured, "of another");
        assert_eq!(body_from("another", &attributes, r#"{ "n": 1.50 }"#), structured);
    }

    #[test]
    fn the_content_type_has_several_names_and_the_prefix_two() {
        for (attribute, prefix) in [
            ("content-type", "ce-"),
            ("Content-Type", "CE-"),
            ("contentType", "ce_"),
            ("ce_datacontenttype", "ce_"),
        ] {
            let names =
                ["specversion", "id", "source", "type"].map(|name| format!("{prefix}{name}"));
            let [version, id, source, kind] = names.each_ref().map(String::as_str);
            let attributes = [
                (attribute, "text/plain"),
                (version, "1.0"),
                (id, "1"),
                (source, "s"),
                (kind, "t"),
            ];
            let structured = r#"{"specversion":"1.0","type":"t","source":"s","id":"1","datacontenttype":"text/plain","data_base64":"aGk="}"#;
            assert_eq!(body_of(&attributes, "hi"), structured, "{attribute}");
        }
        assert_eq!(
            body_of(&[("ce-id", "1"), ("content-type", "text/plain")], "hi"),
            "hi",
            "without specversion it is not an event"
        );
    }

    #[test]
    fn a_body_in_an_event_format_is_the_event_whatever_its_attributes_repeat() {
        let body = r#"{"specversion":"1.0","id":"2","source":"s","type":"t"}"#;
        for content_type in
            ["application/cloudevents+json; charset=utf-8", "application/cloudevents-batch+json"]
        {
            let attributes = [
                ("content-type", content_type),
                ("ce-specversion", "1.0"),
                ("ce-id", "1"),
                ("ce-source", "s"),
                ("ce-type", "t"),
            ];
            assert_eq!(body_of(&attributes, body), body, "{content_type}");
        }
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation() {
        for id in ["", r#""messageId":"","#] {
            let error = read_batch(&format!(
                r#"{{"Records":[{{{id}"body":"x","attributes":{{}},"messageAttributes":{{}}}}]}}"#
            ));
            assert!(matches!(error, Err(NoMessageId(0))), "{error:?}");
        }
    }

    #[test]
    fn the_answer_has_lambdas_keys_and_an_empty_list_when_all_is_done() {
        let json = |ids: &[&str]| {
            serde_json::to_string(&answer(ids.iter().map(|id| (*id).to_owned()))).unwrap()
        };
        assert_eq!(json(&[]), r#"{"batchItemFailures":[]}"#);
        assert_eq!(
            json(&["a", "b"]),
            r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}"#
        );
    }
}
