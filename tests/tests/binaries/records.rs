//! The events that Lambda invokes a function with.

use adapters::machine::Machine;
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::ports::Clock as _;
use local::aws::{ACCOUNT, REGION};
use serde_json::{Value, json};

use crate::runtime_api::Invocation;

pub(crate) const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
/// The timeout of the template.
const TIMEOUT_MS: u64 = 60_000;

/// A record of a queue with text attributes, sent just now.
pub(crate) fn record(id: &str, queue: &str, attributes: &[(&str, &str)]) -> Value {
    sent_at(Machine.now_ms(), id, queue, attributes)
}

/// A record that its queue stamped with this time.
pub(crate) fn sent_at(ms: u64, id: &str, queue: &str, attributes: &[(&str, &str)]) -> Value {
    let attribute = |(name, value): &(&str, &str)| {
        ((*name).to_owned(), json!({"stringValue": value, "dataType": "String"}))
    };
    let attributes: serde_json::Map<String, Value> = attributes.iter().map(attribute).collect();
    let ms = ms.to_string();
    let system = json!({"ApproximateReceiveCount": "1", "SentTimestamp": ms,
        "ApproximateFirstReceiveTimestamp": ms});
    json!({"messageId": id, "receiptHandle": "handle", "body": EVENT, "attributes": system,
        "messageAttributes": attributes, "eventSource": "aws:sqs", "awsRegion": REGION,
        "eventSourceARN": format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}")})
}

/// The record after this queue gave it up to the one that it is in, as SQS tells.
pub(crate) fn given_up(mut record: Value, by: Option<&str>) -> Value {
    if let Some(queue) = by {
        record["attributes"]["DeadLetterQueueSourceArn"] =
            json!(format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"));
    }
    record
}

/// A record of the events queue.
pub(crate) fn published(id: &str, topic: &str) -> Value {
    record(id, "events", &[("topic", topic)])
}

/// An invocation with these records and all the time it needs.
pub(crate) fn invocation(records: &[Value]) -> Invocation {
    let event = json!({"Records": records});
    Invocation { event, deadline_in_ms: TIMEOUT_MS, clock_is_ahead_ms: 0 }
}

/// A delivery to this subscription, before its first attempt.
pub(crate) fn delivery(subscription: &str) -> Delivery {
    let event = Event::recall(&EVENT.into(), Input::Auto);
    let origin = Origin { message: "published".to_owned(), index: 0 };
    let name = subscription.parse().expect("a name");
    Delivery::new(event, name, origin, Machine.now_ms())
}
