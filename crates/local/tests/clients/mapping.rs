//! The event source mapping between a queue, through the real client, and a function.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use local::mapping::EventSourceMapping;
use tokio::sync::{Notify, mpsc, oneshot};

use super::{Started, start};

/// The constant time of the clock in these tests.
const NOW_MS: u64 = 1_763_000_000_000;
/// The limit of every wait, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// The limit of a shutdown. It is less than the 20 s of a long poll.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(15);

fn mapping(started: &Started, concurrency: u8) -> EventSourceMapping {
    EventSourceMapping {
        client: started.sqs.clone(),
        queue_url: started.aws.queue_url("events"),
        queue_name: "events".to_owned(),
        batch_size: 10,
        concurrency,
        function_timeout: Duration::from_secs(120),
        now_ms: Arc::new(|| NOW_MS),
    }
}

fn failures(identifiers: &[&str]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for identifier in identifiers {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = (*identifier).to_owned();
        response.batch_item_failures.push(failure);
    }
    response
}

/// Waits until the queue `events` holds this many messages.
async fn held(started: &Started, expected: u64) {
    let reached = async {
        while started.aws.messages_held().await.expect("counts")["events"] != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let within = tokio::time::timeout(LIMIT, reached).await;
    assert!(within.is_ok(), "still {:?}", started.aws.messages_held().await);
}

/// Waits for the next value that an invocation sends to the test.
async fn next<T>(reports: &mut mpsc::UnboundedReceiver<T>) -> T {
    let report = tokio::time::timeout(LIMIT, reports.recv()).await;
    report.expect("an invocation in time").expect("a running mapping")
}

/// Runs a mapping until the test stops it.
fn run<F>(
    mapping: EventSourceMapping,
    handler: impl Fn(SqsEvent, u64) -> F + Send + Sync + 'static,
) -> (oneshot::Sender<()>, tokio::task::JoinHandle<()>)
where
    F: Future<Output = Result<SqsBatchResponse, Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(mapping.run(handler, async move { drop(stopped.await) }));
    (stop, running)
}

#[tokio::test]
async fn a_function_is_invoked_with_the_event_lambda_would_give_it() {
    let started = start(30).await;
    let sent = started.send("events", "{\"a\":1}").message_attributes(
        "topic",
        aws_sdk_sqs::types::MessageAttributeValue::builder()
            .data_type("String")
            .string_value("shop/orders")
            .build()
            .expect("a value"),
    );
    let sent = sent.send().await.expect("a send");
    let (report, mut reports) = mpsc::unbounded_channel();
    let (stop, running) = run(mapping(&started, 1), move |event, deadline_ms| {
        report.send((serde_json::to_value(event), deadline_ms)).expect("the test listens");
        std::future::ready(Ok(SqsBatchResponse::default()))
    });
    let (event, deadline_ms) = next(&mut reports).await;
    assert_eq!(deadline_ms, NOW_MS + 120_000);
    let record = event.expect("JSON")["Records"][0].take();
    assert_eq!(record["messageId"].as_str(), sent.message_id());
    assert_eq!(record["body"], "{\"a\":1}");
    assert_eq!(record["md5OfBody"].as_str(), sent.md5_of_message_body());
    assert_eq!(record["attributes"]["ApproximateReceiveCount"], "1");
    assert_eq!(record["attributes"]["SenderId"], "000000000000");
    assert!(record["attributes"]["SentTimestamp"].is_string());
    assert!(record["attributes"]["ApproximateFirstReceiveTimestamp"].is_string());
    assert_eq!(record["messageAttributes"]["topic"]["stringValue"], "shop/orders");
    assert_eq!(record["messageAttributes"]["topic"]["dataType"], "String");
    assert_eq!(record["eventSource"], "aws:sqs");
    assert_eq!(record["eventSourceARN"], "arn:aws:sqs:us-east-1:000000000000:events");
    assert_eq!(record["awsRegion"], "us-east-1");
    assert!(!record["receiptHandle"].as_str().expect("a handle").is_empty());
    held(&started, 0).await;
    stop.send(()).expect("it runs");
    running.await.expect("a clean end");
    started.aws.stop().await;
}

#[tokio::test]
async fn only_the_messages_that_failed_are_redelivered() {
    // The visibility timeout is long enough to delete successful messages before they are received
    // again.
    let started = start(5).await;
    for body in ["good", "bad", "good"] {
        started.send("events", body).send().await.expect("a send");
    }
    let (report, mut reports) = mpsc::unbounded_channel();
    let (stop, running) = run(mapping(&started, 10), move |event, _| {
        let is_redelivered = |count: &str| count != "1";
        let bad = event.records.iter().filter(|record| record.body.as_deref() == Some("bad"));
        let first =
            bad.filter(|record| !is_redelivered(&record.attributes["ApproximateReceiveCount"]));
        let failed: Vec<&str> = first.filter_map(|record| record.message_id.as_deref()).collect();
        let bodies: Vec<_> =
            event.records.iter().filter_map(|record| record.body.clone()).collect();
        report.send(bodies).expect("the test listens");
        std::future::ready(Ok(failures(&failed)))
    });
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(next(&mut reports).await);
    }
    held(&started, 0).await;
    assert_eq!(seen[3], "bad");
    assert_eq!(seen.iter().filter(|body| *body == "good").count(), 2);
    stop.send(()).expect("it runs");
    running.await.expect("a clean end");
    started.aws.stop().await;
}

#[tokio::test]
async fn an_error_or_an_unknown_identifier_deletes_nothing() {
    let started = start(30).await;
    let answers = [Err("broken".into()), Ok(failures(&[""])), Ok(failures(&["unknown"]))];
    for (position, answer) in answers.into_iter().enumerate() {
        started.send("events", "body").send().await.expect("a send");
        let (invoked, answer) = (Arc::new(Notify::new()), Mutex::new(Some(answer)));
        let notify = Arc::clone(&invoked);
        let (stop, running) = run(mapping(&started, 1), move |_, _| {
            notify.notify_one();
            std::future::ready(answer.lock().expect("a lock").take().expect("one invocation"))
        });
        invoked.notified().await;
        stop.send(()).expect("it runs");
        running.await.expect("a clean end");
        assert_eq!(
            started.aws.messages_held().await.expect("counts")["events"],
            position as u64 + 1
        );
    }
    started.aws.stop().await;
}

#[tokio::test]
async fn a_panic_of_the_function_does_not_end_the_mapping() {
    let started = start(30).await;
    started.send("events", "panic").send().await.expect("a send");
    let (report, mut reports) = mpsc::unbounded_channel();
    let (stop, running) = run(mapping(&started, 1), move |event, _| {
        let body = event.records[0].body.clone().unwrap_or_default();
        report.send(body.clone()).expect("the test listens");
        async move { if body == "panic" { panic!("as asked") } else { Ok(SqsBatchResponse::default()) } }
    });
    assert_eq!(next(&mut reports).await, "panic");
    started.send("events", "good").send().await.expect("a send");
    assert_eq!(next(&mut reports).await, "good");
    held(&started, 1).await;
    stop.send(()).expect("it runs");
    running.await.expect("a clean end");
    started.aws.stop().await;
}

#[tokio::test]
async fn an_invocation_that_takes_too_long_is_ended() {
    let started = start(30).await;
    started.send("events", "slow").send().await.expect("a send");
    let invoked = Arc::new(Notify::new());
    let notify = Arc::clone(&invoked);
    let quick =
        EventSourceMapping { function_timeout: Duration::from_millis(20), ..mapping(&started, 1) };
    let (stop, running) = run(quick, move |_, _| {
        notify.notify_one();
        std::future::pending()
    });
    invoked.notified().await;
    stop.send(()).expect("it runs");
    running.await.expect("a clean end");
    assert_eq!(started.aws.messages_held().await.expect("counts")["events"], 1);
    started.aws.stop().await;
}

#[tokio::test]
async fn a_shutdown_ends_a_waiting_poll_at_once() {
    let started = start(30).await;
    let (stop, running) = run(mapping(&started, 1), |_, _| std::future::pending());
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.send(()).expect("it runs");
    tokio::time::timeout(SHUTDOWN_LIMIT, running)
        .await
        .expect("less than 20 s")
        .expect("a clean end");
    started.aws.stop().await;
}

#[tokio::test]
async fn concurrent_invocations_are_limited_and_a_shutdown_awaits_them() {
    let started = start(30).await;
    for body in 0..5 {
        started.send("events", body.to_string()).send().await.expect("a send");
    }
    let (now, most, go) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, highest, released) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&go));
    let one_each = EventSourceMapping { batch_size: 1, ..mapping(&started, 2) };
    let (stop, running) = run(one_each, move |_, _| {
        highest.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let (counted, released) = (Arc::clone(&counted), Arc::clone(&released));
        async move {
            released.notified().await;
            counted.fetch_sub(1, Ordering::SeqCst);
            Ok(SqsBatchResponse::default())
        }
    });
    while now.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    for left in (0..5).rev() {
        go.notify_one();
        held(&started, left).await;
        while left >= 2 && now.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    started.send("events", "last").send().await.expect("a send");
    while now.load(Ordering::SeqCst) < 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send(()).expect("it runs");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!running.is_finished(), "a running invocation is awaited");
    go.notify_one();
    running.await.expect("a clean end");
    assert_eq!(started.aws.messages_held().await.expect("counts")["events"], 0);
    started.aws.stop().await;
}

#[tokio::test]
async fn a_failed_receive_is_retried_and_a_shutdown_still_ends() {
    let started = start(30).await;
    let missing =
        EventSourceMapping { queue_url: started.aws.queue_url("missing"), ..mapping(&started, 1) };
    let (stop, stopped) = oneshot::channel::<()>();
    let never =
        |_: SqsEvent, _: u64| std::future::pending::<Result<SqsBatchResponse, Infallible>>();
    let running = tokio::spawn(missing.run(never, async move { drop(stopped.await) }));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!running.is_finished());
    stop.send(()).expect("it runs");
    tokio::time::timeout(SHUTDOWN_LIMIT, running).await.expect("at once").expect("a clean end");
    started.aws.stop().await;
}
