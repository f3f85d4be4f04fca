//! Concurrent sends share requests, and each sender gets the result of its own message alone.

use adapters::queues::SqsQueues;
use delivery::ports::{Attribute, Message, Queue as _, QueueError, QueueName};
use futures::FutureExt as _;
use futures::future::join_all;
use lastmile_tests::scripted::{Asked, Scripted, Step, answer};
use serde_json::{Value, json};

use crate::cloud::sqs_client;

/// The scripted result of one entry of a batch.
enum Says {
    Taken,
    Failed,
    Nothing,
}

/// A server for `SendMessageBatch` in SQS's JSON protocol; the script decides per entry.
async fn scripted_sqs(
    says: impl Fn(&str) -> Says + Send + Sync + 'static,
) -> (Scripted, SqsQueues) {
    let script = move |asked: &Asked| {
        let (mut taken, mut failed) = (Vec::new(), Vec::new());
        for (id, body) in batch(asked) {
            match says(&body) {
                Says::Taken => {
                    taken.push(json!({"Id": id, "MessageId": id, "MD5OfMessageBody": ""}))
                }
                Says::Failed => {
                    failed.push(json!({"Id": id, "Code": "Throttled", "Message": "later", "SenderFault": false}));
                }
                Says::Nothing => {}
            }
        }
        let body = json!({"Successful": taken, "Failed": failed}).to_string();
        vec![answer("200 OK", &[("content-type", "application/x-amz-json-1.0")], body.as_bytes())]
    };
    let server = Scripted::start(script).await.expect("a free port");
    let url = format!("{}/000000000000/events", server.endpoint());
    let queues = SqsQueues::new(sqs_client(&server.endpoint()), [(QueueName::Events, url)], false);
    (server, queues)
}

/// Id and body of each entry of a batch request.
fn batch(asked: &Asked) -> Vec<(String, String)> {
    assert_eq!(asked.header("x-amz-target"), Some("AmazonSQS.SendMessageBatch"));
    let request: Value = serde_json::from_slice(&asked.body).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let entries = request["Entries"].as_array().expect("entries");
    entries.iter().map(|entry| (text(&entry["Id"]), text(&entry["MessageBody"]))).collect()
}

fn message(body: &str) -> Message {
    Message {
        body: body.into(),
        topic: None,
        attribute: Attribute::Delivery("{\"v\":1}".to_owned()),
        subscription: "shop/orders/billing".parse().expect("well formed"),
        wait_ms: 0,
    }
}

async fn send_all(queues: &SqsQueues, count: usize) -> Vec<Result<(), QueueError>> {
    let bodies: Vec<String> = (0..count).map(|index| format!("m{index}")).collect();
    join_all(bodies.iter().map(|body| queues.send(QueueName::Events, message(body)))).await
}

#[tokio::test]
async fn ten_sends_at_the_same_time_are_at_most_two_requests() {
    let (server, queues) = scripted_sqs(|_| Says::Taken).await;
    assert_eq!(send_all(&queues, 10).await, vec![Ok(()); 10]);
    let requests = server.asked();
    assert!(requests.len() <= 2, "{}", requests.len());
    let mut bodies: Vec<String> = requests.iter().flat_map(batch).map(|(_, body)| body).collect();
    bodies.sort();
    assert_eq!(bodies, (0..10).map(|index| format!("m{index}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn no_batch_has_more_than_ten_entries_or_an_id_twice() {
    let (server, queues) = scripted_sqs(|_| Says::Taken).await;
    assert_eq!(send_all(&queues, 35).await, vec![Ok(()); 35]);
    let batches: Vec<Vec<(String, String)>> = server.asked().iter().map(batch).collect();
    assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 35);
    for batch in batches {
        assert!(batch.len() <= 10, "{batch:?}");
        let mut ids: Vec<&String> = batch.iter().map(|(id, _)| id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), batch.len(), "{batch:?}");
    }
}

#[tokio::test]
async fn a_wait_is_asked_for_in_whole_seconds_rounded_up_and_at_most_900() {
    for (wait_ms, seconds) in [(0, 0), (1, 1), (1_001, 2), (899_500, 900), (7_200_000, 900)] {
        let (server, queues) = scripted_sqs(|_| Says::Taken).await;
        assert_eq!(
            queues.send(QueueName::Events, Message { wait_ms, ..message("later") }).await,
            Ok(())
        );
        let request: Value = serde_json::from_slice(&server.asked()[0].body).expect("JSON");
        assert_eq!(request["Entries"][0]["DelaySeconds"].as_u64(), Some(seconds), "{wait_ms}");
    }
}

#[tokio::test]
async fn a_failed_entry_reaches_only_its_own_sender() {
    let (_server, queues) = scripted_sqs(|body| match body {
        "m3" => Says::Failed,
        "m7" => Says::Nothing,
        _ => Says::Taken,
    })
    .await;
    for (index, result) in send_all(&queues, 10).await.into_iter().enumerate() {
        match (index, result) {
            (3, Err(QueueError(why))) => assert_eq!(why, "Throttled: later"),
            (7, Err(QueueError(why))) => assert!(why.contains("does not mention"), "{why}"),
            (3 | 7, Ok(())) => panic!("m{index} was not taken"),
            (_, result) => assert_eq!(result, Ok(()), "m{index}"),
        }
    }
}

#[tokio::test]
async fn when_a_whole_request_fails_every_sender_hears_of_it() {
    let body = br#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no such queue"}"#;
    let steps =
        || vec![answer("400 Bad Request", &[("content-type", "application/x-amz-json-1.0")], body)];
    for steps in [steps(), vec![Step::Reset], vec![answer("200 OK", &[], b"<html>")]] {
        let script = steps.clone();
        let server = Scripted::start(move |_| script.clone()).await.expect("a free port");
        let queues = SqsQueues::new(
            sqs_client(&server.endpoint()),
            [(QueueName::Events, format!("{}/000000000000/events", server.endpoint()))],
            false,
        );
        let results = send_all(&queues, 3).await;
        assert!(results.iter().all(Result::is_err), "{steps:?}: {results:?}");
    }
}

#[tokio::test]
async fn a_sender_that_goes_away_takes_nobodys_message_with_it() {
    let (server, queues) = scripted_sqs(|_| Says::Taken).await;
    let mut leaving = Box::pin(queues.send(QueueName::Events, message("leaving")));
    assert_eq!((&mut leaving).now_or_never(), None);
    let staying = queues.send(QueueName::Events, message("staying"));
    drop(leaving);
    assert_eq!(staying.await, Ok(()));
    let bodies: Vec<String> = server.asked().iter().flat_map(batch).map(|(_, body)| body).collect();
    assert_eq!(bodies, ["leaving", "staying"]);
}
