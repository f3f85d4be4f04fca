//! An SQS that answers each `SendMessageBatch` as a test scripts it.

use adapters::queues::SqsQueues;
use delivery::ports::{Attribute, Message, MessageGroup, Queue, QueueError, QueueName};
use futures::future::join_all;
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};
use serde_json::{Value, json};

use crate::cloud::sqs_client;

/// The scripted result of one entry of a batch.
pub(crate) enum EntryResult {
    Accepted,
    Failed { code: &'static str, sender_fault: bool },
    Missing,
}

/// The service has no room for the entry now.
pub(crate) const THROTTLED: EntryResult =
    EntryResult::Failed { code: "Throttled", sender_fault: false };

/// A server for `SendMessageBatch` in SQS's JSON protocol; the script decides per entry.
pub(crate) async fn scripted_sqs(
    result_of: impl Fn(&str) -> EntryResult + Send + Sync + 'static,
) -> (Scripted, SqsQueues) {
    let script = move |received: &ScriptedRequest| vec![answer_to(received, &result_of)];
    let server = Scripted::start(script).await.expect("a free port");
    let queues = queues_of(&server);
    (server, queues)
}

/// The events queue and the retry queue on this server.
pub(crate) fn queues_of(server: &Scripted) -> SqsQueues {
    let url = |name| format!("{}/000000000000/{name}", server.endpoint());
    let urls = [(QueueName::Events, url("events")), (QueueName::Retry, url("retry"))];
    SqsQueues::new(sqs_client(&server.endpoint()), urls)
}

/// The answer to a batch, with the scripted result of each entry.
pub(crate) fn answer_to(
    received: &ScriptedRequest,
    result_of: impl Fn(&str) -> EntryResult,
) -> Step {
    let (mut accepted, mut failed) = (Vec::new(), Vec::new());
    for (id, body) in batch(received) {
        match result_of(&body) {
            EntryResult::Accepted => {
                accepted.push(json!({"Id": id, "MessageId": id, "MD5OfMessageBody": ""}));
            }
            EntryResult::Failed { code, sender_fault } => {
                failed.push(json!({"Id": id, "Code": code, "Message": "later", "SenderFault": sender_fault}));
            }
            EntryResult::Missing => {}
        }
    }
    let body = json!({"Successful": accepted, "Failed": failed}).to_string();
    answer("200 OK", &[("content-type", "application/x-amz-json-1.0")], body.as_bytes())
}

/// An error of a whole call, as SQS answers it: the code of the JSON protocol in the body, that of
/// the query protocol in a header, which some emulators leave out.
pub(crate) fn call_error(status: &str, code: &str, query_code: Option<&str>) -> Step {
    let body = format!(r#"{{"__type":"com.amazonaws.sqs#{code}","message":"as scripted"}}"#);
    let query_error = query_code.map(|code| format!("{code};Sender"));
    let mut headers = vec![("content-type", "application/x-amz-json-1.0")];
    headers.extend(query_error.as_deref().map(|error| ("x-amzn-query-error", error)));
    answer(status, &headers, body.as_bytes())
}

/// Id and body of each entry of a batch request.
pub(crate) fn batch(received: &ScriptedRequest) -> Vec<(String, String)> {
    assert_eq!(received.header("x-amz-target"), Some("AmazonSQS.SendMessageBatch"));
    let request: Value = serde_json::from_slice(&received.body).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let entries = request["Entries"].as_array().expect("entries");
    entries.iter().map(|entry| (text(&entry["Id"]), text(&entry["MessageBody"]))).collect()
}

pub(crate) fn message(body: &str) -> Message {
    Message {
        body: body.into(),
        topic: None,
        attribute: Attribute::Delivery("{\"v\":1}".to_owned()),
        group: MessageGroup::Subscription("shop/orders/billing".parse().expect("well formed")),
        receives: 0,
        unread: 0,
        wait_ms: 0,
    }
}

/// Sends this many messages at once, `m0` and so on.
pub(crate) async fn send_all(queues: &SqsQueues, count: usize) -> Vec<Result<(), QueueError>> {
    let bodies: Vec<String> = (0..count).map(|index| format!("m{index}")).collect();
    join_all(bodies.iter().map(|body| send(queues, QueueName::Events, message(body)))).await
}

/// Sends a message to a queue. Tests call this function and not the method of the port, so that
/// they do not depend on the method's name.
pub(crate) async fn send(
    queue: &impl Queue,
    name: QueueName,
    message: Message,
) -> Result<(), QueueError> {
    queue.send(name, message).await
}
