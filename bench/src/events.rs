//! The input of the functions: records as Lambda receives them from SQS, and a hundred
//! subscriptions.
//!
//! The event is a CloudEvent of about 450 bytes, the size of an order. Ten subscriptions share the
//! measured topic; the filters of nine of them do not match, so that matching is part of the cost.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::contenders::Job;

/// Total number of subscriptions of all topics.
pub(crate) const SUBSCRIPTIONS: usize = 100;
/// The number of subscriptions of the measured topic.
const OF_THE_TOPIC: usize = 10;

/// The topic of the events. It determines how the destination responds, and whether dispatch
/// retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The destination responds with 204, so the event is delivered.
    Accepted,
    /// The destination responds with 503, and dispatch retries after 30 seconds.
    Refused,
    /// The destination responds with 503. After six attempts within one invocation, the event
    /// becomes a dead letter.
    RefusedSixTimes,
}

impl Topic {
    fn name(self) -> &'static str {
        match self {
            Self::Accepted => "orders",
            Self::Refused => "refused",
            Self::RefusedSixTimes => "insistent",
        }
    }
}

/// The subscriptions of a namespace, by topic and name.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(BTreeMap<String, Map<String, Value>>);

impl Subscriptions {
    /// Adds a subscription with these retry settings. With `event_type`, it receives only events of
    /// that type.
    pub(crate) fn add(
        &mut self,
        (topic, name): (&str, &str),
        url: &str,
        retry: Value,
        event_type: Option<&str>,
    ) {
        let mut spec = json!({ "destination": { "url": url }, "retry": retry });
        if let Some(event_type) = event_type {
            spec["filter"] = json!({ "exact": { "type": event_type } });
        }
        let of_topic = self.0.entry(topic.to_owned()).or_default();
        of_topic.insert(name.to_owned(), json!({ "owner": "bench", "spec": spec }));
    }

    /// The objects that dispatch reads, by key.
    pub(crate) fn objects(self) -> BTreeMap<String, Bytes> {
        let topic = |(name, subscriptions): (String, Map<String, Value>)| {
            let object = json!({ "v": 1, "subscriptions": subscriptions });
            (format!("subscriptions/shop/{name}.json"), object.to_string().into())
        };
        let settings = ("subscriptions/_settings.json".to_owned(), r#"{"v":1}"#.into());
        self.0.into_iter().map(topic).chain([settings]).collect()
    }
}

/// Returns the measured subscriptions, for a subscriber at this address.
pub(crate) fn subscriptions(subscriber: SocketAddr) -> Subscriptions {
    let accepted = format!("http://{subscriber}/hook/204");
    let refused = format!("http://{subscriber}/hook/503");
    // Jitter would make one run differ from the next.
    let waits = |wait: &str, attempts: u32| {
        let schedule = json!({ "kind": "constant", "delay": wait });
        json!({ "maxAttempts": attempts, "jitterPercent": 0, "schedule": schedule })
    };
    let mut all = Subscriptions::default();
    all.add(("orders", "measured"), &accepted, json!({}), None);
    all.add(("refused", "measured"), &refused, waits("PT30S", 10), None);
    all.add(("insistent", "measured"), &refused, waits("PT0.1S", 6), None);
    let other = |index: usize| format!("order.other{index}");
    for index in 1..OF_THE_TOPIC {
        let name = format!("s{index}");
        all.add(("orders", &name), &accepted, json!({}), Some(&other(index)));
    }
    for index in OF_THE_TOPIC + 2..SUBSCRIPTIONS {
        let topic = format!("topic{index}");
        all.add((&topic, "s"), &accepted, json!({}), Some(&other(index)));
    }
    all
}

/// Returns a subscription as a YAML document.
pub(crate) fn document(topic: &str, name: &str, url: &str, retry: &str, filter: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
         spec: {{destination: {{url: \"{url}\"}}, retry: {retry}{filter}}}\n"
    )
}

/// Returns a batch for a job: `records` records of one topic.
pub(crate) fn batch(job: Job, topic: Topic, records: usize) -> Bytes {
    batch_of(job, (0..records).map(|_| topic.name()))
}

/// Returns a batch of one record for each of these topics.
pub(crate) fn batch_of(job: Job, topics: impl Iterator<Item = impl AsRef<str>>) -> Bytes {
    let records = topics.enumerate().map(|(index, topic)| of_job(job, topic.as_ref(), index));
    let records: Vec<_> = records.collect();
    Bytes::from(json!({ "Records": records }).to_string())
}

fn of_job(job: Job, topic: &str, index: usize) -> Value {
    let mut attributes = json!({"topic": attribute(&format!("shop/{topic}"))});
    if job == Job::Store {
        let state = dead_letter_state(&message_id(index), crate::clock::unix_ms());
        attributes["deadletter"] = attribute(&state);
    }
    record("events", index, &event(index), &attributes)
}

/// A message attribute in the format of a Lambda record.
pub(crate) fn attribute(value: &str) -> Value {
    json!({"stringValue": value, "stringListValues": [], "binaryListValues": [], "dataType": "String"})
}

fn message_id(index: usize) -> String {
    format!("059f36b4-87a3-44ab-83d2-{index:012}")
}

/// A queue message as Lambda passes it to a function. Its id derives from `index`.
pub(crate) fn record(queue: &str, index: usize, body: &str, attributes: &Value) -> Value {
    // The send time counts as the time of publication. An old send time would make the event
    // expire.
    let now_ms = crate::clock::unix_ms();
    json!({
        "messageId": message_id(index),
        "receiptHandle": format!("AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a{index}"),
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": now_ms.to_string(),
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": now_ms.to_string()
        },
        "messageAttributes": attributes,
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{queue}"),
        "awsRegion": "us-east-1"
    })
}

/// Returns an event whose id ends with `index`.
pub(crate) fn event(index: usize) -> String {
    let lines: Vec<_> = (1..=4)
        .map(|line| json!({"sku": format!("A-{line}"), "quantity": line, "price": "19.90"}))
        .collect();
    json!({
        "specversion": "1.0",
        "id": format!("order-{index}"),
        "source": "https://shop.example.com/checkout",
        "type": "order.created",
        "subject": format!("eu/orders/{index}"),
        "time": "2026-11-20T07:03:00.1234567Z",
        "datacontenttype": "application/json",
        "data": {"orderId": index, "customer": "c-4711", "total": "199.00", "currency": "EUR", "lines": lines}
    })
    .to_string()
}

/// The attribute `deadletter` of a message after one failed attempt, as dispatch writes it; see
/// `crates/delivery/fixtures/wire`.
fn dead_letter_state(message: &str, now_ms: u128) -> String {
    json!({
        "v": 1,
        "id": message,
        "subscription": "shop/orders/measured",
        "origin": {"message": message, "index": 0},
        "published_ms": now_ms,
        "attempts": 1,
        "due_ms": now_ms,
        "history": [{"at_ms": now_ms, "outcome": "Busy", "status": 503, "duration_ms": 60}],
        "last": {"response": "{\"error\":\"busy\"}\n"},
        "reason": "MaxDeliveryAttemptsExceeded",
        "decided_ms": now_ms,
        "format": "namespace",
        "layout": "nested",
        "period_ms": 172_800_000,
        "destination": "https://billing.example.com/events"
    })
    .to_string()
}
