//! Queues, tested with the real SQS client.

use std::collections::HashMap;
use std::time::Duration;

use adapters::machine::Machine;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::operation::send_message::builders::SendMessageFluentBuilder;
use aws_sdk_sqs::types::{
    Message, MessageAttributeValue, MessageSystemAttributeName, MessageSystemAttributeNameForSends,
    MessageSystemAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry,
};
use delivery::ports::Clock as _;
use local::aws::{LocalAwsConfig, QueueConfig, Redrive};

use super::{Started, start, start_in};

impl Started {
    pub(crate) fn send(&self, queue: &str, body: impl Into<String>) -> SendMessageFluentBuilder {
        self.sqs.send_message().queue_url(self.aws.queue_url(queue)).message_body(body)
    }

    pub(crate) async fn receive(&self, queue: &str, wait_seconds: i32) -> Vec<Message> {
        let request = self.sqs.receive_message().queue_url(self.aws.queue_url(queue));
        let received = request
            .max_number_of_messages(10)
            .wait_time_seconds(wait_seconds)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await;
        received.expect("a receive").messages.unwrap_or_default()
    }
}

fn text(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type("String")
        .string_value(value)
        .build()
        .expect("a value")
}

#[tokio::test]
async fn a_received_message_equals_the_sent_one() {
    let started = start(30).await;
    let body = "{\"text\":\"\\u0000 é 漢 \u{1F980}\"}";
    let trace =
        MessageSystemAttributeValue::builder().data_type("String").string_value("Root=1-2-3");
    let send = started.send("events", body).message_attributes("topic", text("shop/orders"));
    let binary =
        MessageAttributeValue::builder().data_type("Binary").binary_value(vec![0_u8, 255].into());
    send.message_attributes("delivery", text("{\"v\":1}"))
        .message_attributes("raw", binary.build().expect("a value"))
        .message_group_id("a-tenant")
        .message_system_attributes(
            MessageSystemAttributeNameForSends::AwsTraceHeader,
            trace.build().expect("a value"),
        )
        .send()
        .await
        .expect("a send");
    let message = started.receive("events", 0).await.pop().expect("the message");
    assert_eq!(message.body.as_deref(), Some(body));
    let attributes = message.message_attributes.expect("attributes");
    assert_eq!(attributes["topic"], text("shop/orders"));
    assert_eq!(attributes["delivery"].string_value(), Some("{\"v\":1}"));
    assert_eq!(attributes["raw"].binary_value().expect("bytes").as_ref(), [0, 255]);
    assert_eq!(attributes.len(), 3);
    let system = message.attributes.expect("system attributes");
    assert_eq!(system[&MessageSystemAttributeName::ApproximateReceiveCount], "1");
    assert_eq!(system[&MessageSystemAttributeName::MessageGroupId], "a-tenant");
    assert_eq!(system[&MessageSystemAttributeName::AwsTraceHeader], "Root=1-2-3");
    for stamp in [
        MessageSystemAttributeName::SentTimestamp,
        MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
    ] {
        assert!(system[&stamp].parse::<u64>().expect("milliseconds") > 1_700_000_000_000);
    }
    started.aws.stop().await;
}

#[tokio::test]
async fn a_receiver_gets_only_the_attributes_it_asked_for() {
    let started = start(0).await;
    let send = started.send("events", "body").message_group_id("group");
    let send = send.message_attributes("topic", text("a")).message_attributes("ce-id", text("b"));
    send.send().await.expect("a send");
    let receive = || {
        started
            .sqs
            .receive_message()
            .queue_url(started.aws.queue_url("events"))
            .wait_time_seconds(20)
    };
    let plain = receive().send().await.expect("a receive").messages.expect("a message").remove(0);
    assert_eq!((plain.message_attributes, plain.attributes), (None, None));
    let some = receive().message_attribute_names("ce-.*").send().await.expect("a receive");
    let some = some.messages.expect("a message").remove(0).message_attributes.expect("attributes");
    assert_eq!(some, HashMap::from([("ce-id".to_owned(), text("b"))]));
    started.aws.stop().await;
}

#[tokio::test]
async fn a_waiting_receive_returns_when_a_message_arrives_or_the_wait_ends() {
    let started = start(30).await;
    let before_ms = Machine.now_ms();
    assert!(started.receive("events", 1).await.is_empty());
    let waited_ms = Machine.now_ms() - before_ms;
    assert!(waited_ms >= 900, "a receive that waits a second was answered after {waited_ms} ms");
    let waiting = tokio::time::timeout(Duration::from_secs(15), started.receive("events", 20));
    let sending = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        started.send("events", "hello").send().await.expect("a send");
    };
    let (received, ()) = tokio::join!(waiting, sending);
    assert_eq!(received.expect("woken before 20 s")[0].body(), Some("hello"));
    started.aws.stop().await;
}

#[tokio::test]
async fn a_delayed_message_is_held_but_not_received_before_its_time() {
    let started = start(30).await;
    started.send("retry", "later").delay_seconds(5).send().await.expect("a send");
    assert!(started.receive("retry", 0).await.is_empty());
    assert_eq!(started.aws.messages_held().await.expect("counts")["retry"], 1);
    assert_eq!(started.receive("retry", 20).await[0].body(), Some("later"));
    assert_eq!(started.aws.messages_held().await.expect("counts")["retry"], 1);
    started.aws.stop().await;
}

#[tokio::test]
async fn a_deleted_message_is_gone_and_a_visible_one_is_redelivered() {
    let started = start(30).await;
    started.send("events", "twice").send().await.expect("a send");
    let url = started.aws.queue_url("events");
    let first = started.receive("events", 0).await.remove(0);
    assert!(started.receive("events", 0).await.is_empty(), "a received message is hidden");
    let visible = started.sqs.change_message_visibility().queue_url(&url).visibility_timeout(0);
    visible.set_receipt_handle(first.receipt_handle).send().await.expect("a change");
    let second = started.receive("events", 0).await.remove(0);
    let system = second.attributes.expect("system attributes");
    assert_eq!(system[&MessageSystemAttributeName::ApproximateReceiveCount], "2");
    let delete = started.sqs.delete_message().queue_url(&url);
    delete.set_receipt_handle(second.receipt_handle).send().await.expect("a delete");
    assert_eq!(started.aws.messages_held().await.expect("counts")["events"], 0);
    started.aws.stop().await;
}

#[tokio::test]
async fn a_message_received_too_often_moves_to_the_redrive_target_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let queue = |name: &str, redrive| QueueConfig {
        name: name.to_owned(),
        visibility_timeout_seconds: 0,
        redrive,
    };
    let queues = vec![
        queue("work", Some(Redrive { to: "dead".to_owned(), after_receives: 2 })),
        queue("dead", None),
    ];
    let config = |path: &std::path::Path| LocalAwsConfig {
        port: 0,
        data: path.to_owned(),
        queues,
        buckets: vec![],
    };
    let started = start_in(folder, config).await;
    let body = "x".repeat(600_000);
    started
        .send("work", &body)
        .message_attributes("topic", text("a/b"))
        .send()
        .await
        .expect("a send");
    for _ in 0..2 {
        assert_eq!(started.receive("work", 0).await.len(), 1);
    }
    assert!(started.receive("work", 0).await.is_empty());
    let moved = started.receive("dead", 20).await.remove(0);
    assert_eq!(moved.body(), Some(&*body));
    assert_eq!(moved.message_attributes.expect("attributes")["topic"], text("a/b"));
    started.aws.stop().await;
}

#[tokio::test]
async fn a_message_may_have_a_mebibyte_with_its_attributes_and_no_more() {
    let started = start(30).await;
    let attribute_bytes = "topicStringa".len();
    let largest = "x".repeat(1_048_576 - attribute_bytes);
    let send =
        |body: String| started.send("events", body).message_attributes("topic", text("a")).send();
    send(largest.clone()).await.expect("a send of the largest message");
    assert_eq!(started.receive("events", 0).await[0].body(), Some(&*largest));
    let error = send(largest + "x").await.expect_err("too large");
    assert_eq!(error.code(), Some("InvalidParameterValue"), "{error:?}");
    started.aws.stop().await;
}

#[tokio::test]
async fn what_aws_refuses_is_refused_and_leaves_the_queue_working() {
    let started = start(30).await;
    started.send("events", "a").delay_seconds(901).send().await.expect_err("a delay past 900 s");
    started.send("events", "a").delay_seconds(-1).send().await.expect_err("a delay below 0");
    started.send("events", "\u{1}").send().await.expect_err("a control character");
    let receive = || started.sqs.receive_message().queue_url(started.aws.queue_url("events"));
    receive().visibility_timeout(-1).send().await.expect_err("a visibility below 0");
    receive().wait_time_seconds(21).send().await.expect_err("a wait past 20 s");
    receive().max_number_of_messages(11).send().await.expect_err("more than 10");
    started.sqs.create_queue().queue_name("q.fifo").send().await.expect_err("a FIFO queue");
    started.send("events", "good").delay_seconds(0).send().await.expect("a send");
    let handle = started.receive("events", 0).await.remove(0).receipt_handle;
    let change = || {
        let change =
            started.sqs.change_message_visibility().queue_url(started.aws.queue_url("events"));
        change.set_receipt_handle(handle.clone())
    };
    change().visibility_timeout(-1).send().await.expect_err("a visibility below 0");
    change().visibility_timeout(43_201).send().await.expect_err("a visibility past 12 h");
    change().visibility_timeout(0).send().await.expect("a change");
    assert_eq!(started.receive("events", 0).await[0].body(), Some("good"));
    started.aws.stop().await;
}

#[tokio::test]
async fn a_batch_reports_for_each_entry_whether_it_was_sent() {
    let started = start(30).await;
    let entry = |id: &str, delay_seconds| {
        let entry = SendMessageBatchRequestEntry::builder()
            .id(id)
            .message_body(id)
            .delay_seconds(delay_seconds);
        entry.build().expect("an entry")
    };
    let batch = || started.sqs.send_message_batch().queue_url(started.aws.queue_url("events"));
    let mixed = batch()
        .entries(entry("good", 0))
        .entries(entry("bad", 901))
        .send()
        .await
        .expect("an answer");
    assert_eq!(mixed.successful()[0].id(), "good");
    assert_eq!((mixed.failed()[0].id(), mixed.failed()[0].sender_fault()), ("bad", true));
    let none = batch().entries(entry("bad", 901)).send().await.expect("an answer");
    assert_eq!((none.successful().len(), none.failed().len()), (0, 1));
    batch()
        .entries(entry("same", 0))
        .entries(entry("same", 0))
        .send()
        .await
        .expect_err("an id twice");
    let large = |id: &str| {
        let entry =
            SendMessageBatchRequestEntry::builder().id(id).message_body("x".repeat(600_000));
        entry.build().expect("an entry")
    };
    let error = batch()
        .entries(large("one"))
        .entries(large("two"))
        .send()
        .await
        .expect_err("past 1 MiB together");
    assert!(error.into_service_error().is_batch_request_too_long());
    assert_eq!(started.receive("events", 0).await.len(), 1);
    started.aws.stop().await;
}

#[tokio::test]
async fn queues_are_found_by_name_and_list_their_settings() {
    let started = start(720).await;
    let found = started.sqs.get_queue_url().queue_name("retry").send().await.expect("a url");
    assert_eq!(found.queue_url(), Some(&*started.aws.queue_url("retry")));
    assert_eq!(started.sqs.list_queues().send().await.expect("a list").queue_urls().len(), 6);
    let request = started.sqs.get_queue_attributes().queue_url(started.aws.queue_url("retry"));
    let output = request.attribute_names(QueueAttributeName::All).send().await.expect("attributes");
    let attributes = output.attributes.expect("attributes");
    assert_eq!(attributes[&QueueAttributeName::VisibilityTimeout], "720");
    assert_eq!(attributes[&QueueAttributeName::MessageRetentionPeriod], "1209600");
    assert_eq!(attributes[&QueueAttributeName::MaximumMessageSize], "1048576");
    assert_eq!(
        attributes[&QueueAttributeName::QueueArn],
        "arn:aws:sqs:us-east-1:000000000000:retry"
    );
    let redrive: serde_json::Value =
        serde_json::from_str(&attributes[&QueueAttributeName::RedrivePolicy]).expect("JSON");
    assert_eq!(redrive["deadLetterTargetArn"], "arn:aws:sqs:us-east-1:000000000000:dead-letter");
    assert_eq!(redrive["maxReceiveCount"], 100);
    started.aws.stop().await;
}

#[tokio::test]
async fn a_client_knows_an_error_by_its_type() {
    let started = start(30).await;
    let error = started.send("nowhere", "x").send().await.expect_err("no such queue");
    assert!(error.into_service_error().is_queue_does_not_exist());
    let other = started.sqs.create_queue().queue_name("events");
    let other = other.attributes(QueueAttributeName::VisibilityTimeout, "31").send().await;
    assert!(other.expect_err("another setting").into_service_error().is_queue_name_exists());
    let change = started.sqs.change_message_visibility().queue_url(started.aws.queue_url("events"));
    let change = change.receipt_handle("bm90aGluZw==").visibility_timeout(1).send().await;
    assert!(change.expect_err("never received").into_service_error().is_message_not_inflight());
    started.aws.stop().await;
}
