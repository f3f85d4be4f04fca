//! `Queue`: a message that was accepted is received after about its wait; perhaps early, perhaps
//! twice, but never lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::machine::Machine;
use adapters::queues::SqsQueues;
use aws_sdk_sqs::types::MessageSystemAttributeName;
use delivery::ports::{
    Attribute, Clock as _, MESSAGE_MAX_BYTES, Message, MessageGroup, Queue, QueueError, QueueName,
};
use futures::future::join_all;
use lastmile_tests::scripted::{Scripted, answer};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::scripted_sqs::{queues_of, send};

/// A message received from a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Received {
    body: String,
    topic: Option<String>,
    attribute: Option<Attribute>,
    group: Option<String>,
}

/// A queue under test whose messages the test can receive.
trait Observed: Queue {
    /// Receives what is available now, or the first messages within this many seconds.
    async fn receive(&self, queue: QueueName, within_seconds: i32) -> Vec<Received>;
}

/// SQS queues, and a client to receive from them.
struct Sqs {
    queues: SqsQueues,
    cloud: Cloud,
}

impl Sqs {
    async fn start() -> Self {
        let cloud = Cloud::start().await;
        Self { queues: cloud.queues(), cloud }
    }
}

impl Queue for Sqs {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        self.queues.send(queue, message).await
    }

    async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
        self.queues.change_visibility(queue, receipt, seconds).await;
    }
}

impl Observed for Sqs {
    async fn receive(&self, queue: QueueName, within_seconds: i32) -> Vec<Received> {
        let request = self.cloud.sqs.receive_message().queue_url(&self.cloud.urls()[&queue]);
        let request = request.max_number_of_messages(10).wait_time_seconds(within_seconds);
        let request = request
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let received = request.send().await.expect("a receive").messages.unwrap_or_default();
        received.into_iter().map(as_received).collect()
    }
}

fn as_received(message: aws_sdk_sqs::types::Message) -> Received {
    let attributes = message.message_attributes.unwrap_or_default();
    let text = |name: &str| attributes.get(name).and_then(|value| value.string_value.clone());
    let system = message.attributes.unwrap_or_default();
    Received {
        body: message.body.unwrap_or_default(),
        topic: text("topic"),
        attribute: text("delivery")
            .map(Attribute::Delivery)
            .or(text("deadletter").map(Attribute::DeadLetter)),
        group: system.get(&MessageSystemAttributeName::MessageGroupId).cloned(),
    }
}

fn message(body: impl Into<Arc<str>>) -> Message {
    Message {
        body: body.into(),
        topic: Some("shop/orders".parse().expect("well formed")),
        attribute: Attribute::Delivery(r#"{"v":1,"text":"\u00fc"}"#.to_owned()),
        group: MessageGroup::Subscription("shop/orders/billing".parse().expect("well formed")),
        receives: 0,
        unread: 0,
        wait_ms: 0,
    }
}

/// Receives until there are this many messages.
async fn receive_all(queue: &impl Observed, name: QueueName, count: usize) -> Vec<Received> {
    let mut all = Vec::new();
    while all.len() < count {
        let batch = queue.receive(name, 20).await;
        assert!(!batch.is_empty(), "{} of {count} messages arrived", all.len());
        all.extend(batch);
    }
    all
}

/// A message is received with body, topic and our attribute unchanged, from its own queue only.
async fn keeps_a_message_as_it_is(queue: &impl Observed) {
    let body = "{ \"b\" : 1.50,\n\"a\":\"\\u0000 é 漢 🦀\" }";
    let of_delivery = message(body);
    let of_letter = Message {
        topic: None,
        attribute: Attribute::DeadLetter("{\"v\":1}".to_owned()),
        ..message(body)
    };
    for (name, sent) in [
        (QueueName::Events, &of_delivery),
        (QueueName::Retry, &of_delivery),
        (QueueName::DeadLetter, &of_letter),
        (QueueName::LastResort, &of_letter),
    ] {
        send(queue, name, sent.clone()).await.expect("accepted");
        let [received] = &queue.receive(name, 5).await[..] else {
            panic!("one message is in {name:?}")
        };
        assert_eq!(received.body, body);
        assert_eq!(received.topic, sent.topic.as_ref().map(ToString::to_string));
        assert_eq!(received.attribute.as_ref(), Some(&sent.attribute));
    }
}

/// Concurrent sends are each accepted or refused by themselves, and what was accepted is there.
async fn loses_none_of_many_concurrent_messages(queue: &impl Observed) {
    let sends = (0..25).map(|index| send(queue, QueueName::Events, message(index.to_string())));
    assert_eq!(join_all(sends).await, vec![Ok(()); 25]);
    let received = receive_all(queue, QueueName::Events, 25).await;
    let bodies: BTreeSet<usize> =
        received.iter().map(|message| message.body.parse().expect("a number")).collect();
    assert_eq!(bodies, (0..25).collect());
}

/// A message that cannot be sent is refused alone; those sent at the same time arrive.
async fn refuses_what_is_too_large_or_unsendable_and_nothing_else(queue: &impl Observed) {
    let too_large = "x".repeat(MESSAGE_MAX_BYTES + 1);
    let sends = ["one", too_large.as_str(), "two", "not XML 1.0: \u{1}", "three"].map(message);
    let results = join_all(sends.map(|message| send(queue, QueueName::Events, message))).await;
    let accepted: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, false, true, false, true], "{results:?}");
    let mut bodies: Vec<String> = receive_all(queue, QueueName::Events, 3)
        .await
        .into_iter()
        .map(|message| message.body)
        .collect();
    bodies.sort();
    assert_eq!(bodies, ["one", "three", "two"]);
}

/// Messages that are too large together are sent in several requests.
async fn takes_large_messages_at_the_same_time(queue: &impl Observed) {
    let sends = (0..4)
        .map(|index| send(queue, QueueName::Events, message(index.to_string().repeat(600_000))));
    assert_eq!(join_all(sends).await, vec![Ok(()); 4]);
    let received = receive_all(queue, QueueName::Events, 4).await;
    let bodies: BTreeSet<&str> = received.iter().map(|message| &message.body[..1]).collect();
    assert_eq!(bodies, BTreeSet::from(["0", "1", "2", "3"]));
    assert!(received.iter().all(|message| message.body.len() == 600_000));
}

/// The largest message that fits by our own calculation is accepted: the calculation is not too
/// generous.
async fn takes_the_largest_message_that_fits(queue: &impl Observed) {
    let room = MESSAGE_MAX_BYTES - message("").size_bytes();
    let largest = message("x".repeat(room));
    assert!(largest.fits() && !message("x".repeat(room + 1)).fits());
    send(queue, QueueName::Events, largest).await.expect("accepted");
    assert_eq!(receive_all(queue, QueueName::Events, 1).await[0].body.len(), room);
}

#[tokio::test]
async fn sqs_keeps_a_message_as_it_is() {
    keeps_a_message_as_it_is(&Sqs::start().await).await;
    keeps_a_message_as_it_is(&Sqs::start().await).await;
}

#[tokio::test]
async fn sqs_loses_none_of_many_concurrent_messages() {
    loses_none_of_many_concurrent_messages(&Sqs::start().await).await;
}

#[tokio::test]
async fn sqs_refuses_what_is_too_large_or_unsendable_and_nothing_else() {
    refuses_what_is_too_large_or_unsendable_and_nothing_else(&Sqs::start().await).await;
}

#[tokio::test]
async fn sqs_takes_large_messages_at_the_same_time() {
    takes_large_messages_at_the_same_time(&Sqs::start().await).await;
}

#[tokio::test]
async fn sqs_takes_the_largest_message_that_fits() {
    takes_the_largest_message_that_fits(&Sqs::start().await).await;
}

#[tokio::test]
async fn sqs_delays_by_whole_seconds_and_never_delivers_early() {
    let sqs = Sqs::start().await;
    let sent_ms = Machine.now_ms();
    // 3.001 s is rounded up to four seconds.
    send(&sqs, QueueName::Retry, Message { wait_ms: 3_001, ..message("later") })
        .await
        .expect("accepted");
    assert_eq!(sqs.receive(QueueName::Retry, 0).await, []);
    assert_eq!(sqs.receive(QueueName::Retry, 20).await[0].body, "later");
    let waited_ms = Machine.now_ms() - sent_ms;
    assert!(waited_ms >= 3_900, "{waited_ms}");
}

#[tokio::test]
async fn sqs_takes_a_wait_longer_than_it_can_delay() {
    let sqs = Sqs::start().await;
    send(&sqs, QueueName::Retry, Message { wait_ms: u64::MAX, ..message("much later") })
        .await
        .expect("accepted");
    assert_eq!(sqs.receive(QueueName::Retry, 0).await, []);
    assert_eq!(sqs.cloud.aws.messages_held().await.expect("counts")["retry"], 1);
}

#[tokio::test]
async fn messages_are_grouped_by_subscription() {
    let sqs = Sqs::start().await;
    let other = Message {
        group: MessageGroup::Subscription("shop/orders/audit".parse().expect("well formed")),
        ..message("2")
    };
    let sends =
        [message("1"), message("1"), other].map(|message| send(&sqs, QueueName::Events, message));
    assert_eq!(join_all(sends).await, vec![Ok(()); 3]);
    let received = receive_all(&sqs, QueueName::Events, 3).await;
    let groups: BTreeSet<(String, Option<String>)> =
        received.into_iter().map(|message| (message.body, message.group)).collect();
    let ids: BTreeSet<&str> = groups.iter().filter_map(|(_, group)| group.as_deref()).collect();
    assert_eq!((groups.len(), ids.len()), (2, 2), "{groups:?}");
    assert!(ids.iter().all(|id| id.len() == 64), "{ids:?}");
}

#[tokio::test]
async fn a_record_that_is_hidden_no_longer_is_received_again() {
    let cloud = Cloud::start().await;
    let queues = cloud.queues();
    send(&queues, QueueName::Events, message("x")).await.expect("accepted");
    let receive = async |within_seconds| {
        let receive = cloud.sqs.receive_message().queue_url(&cloud.urls()[&QueueName::Events]);
        let received = receive.wait_time_seconds(within_seconds).send().await.expect("a receive");
        received.messages().first().map(|first| first.receipt_handle().expect("one").to_owned())
    };
    let receipt = receive(5).await.expect("the message");
    assert_eq!(receive(0).await, None, "it is hidden for a minute");
    queues.change_visibility(QueueName::Events, &receipt, 0).await;
    assert!(receive(5).await.is_some());
}

#[tokio::test]
async fn a_record_is_hidden_as_long_as_it_is_asked_for() {
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b"{}")]).await.expect("a port");
    queues_of(&server).change_visibility(QueueName::Retry, "receipt", 7).await;
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(request.header("x-amz-target"), Some("AmazonSQS.ChangeMessageVisibility"));
    let asked: Value = serde_json::from_slice(&request.body).expect("JSON");
    let url = format!("{}/000000000000/retry", server.endpoint());
    let expected = json!({"QueueUrl": url, "ReceiptHandle": "receipt", "VisibilityTimeout": 7});
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_queue_that_the_function_does_not_have_is_an_error() {
    let cloud = Cloud::start().await;
    let events = cloud.urls().remove(&QueueName::Events).expect("events");
    let queues = SqsQueues::new(cloud.sqs.clone(), [(QueueName::Events, events)]);
    assert!(
        send(&queues, QueueName::Retry, message("x"))
            .await
            .expect_err("unknown")
            .0
            .contains("Retry")
    );
    send(&queues, QueueName::Events, message("x")).await.expect("accepted");
}
