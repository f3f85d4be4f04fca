//! Concurrent sends share requests, and each sender gets the result of its own message alone.

use adapters::queues::BATCH_WINDOW;
use delivery::ports::{MESSAGE_MAX_BYTES, Message, QueueError, QueueName};
use futures::FutureExt as _;
use futures::future::join_all;
use lastmile_tests::scripted::{Scripted, Step, answer};
use serde_json::Value;

use crate::scripted_sqs::{
    EntryResult, THROTTLED, batch, message, queues_of, scripted_sqs, send, send_all,
};

#[tokio::test]
async fn ten_sends_at_the_same_time_are_at_most_two_requests() {
    let (server, queues) = scripted_sqs(|_| EntryResult::Accepted).await;
    assert_eq!(send_all(&queues, 10).await, vec![Ok(()); 10]);
    let requests = server.requests();
    assert!(requests.len() <= 2, "{}", requests.len());
    let mut bodies: Vec<String> = requests.iter().flat_map(batch).map(|(_, body)| body).collect();
    bodies.sort();
    assert_eq!(bodies, (0..10).map(|index| format!("m{index}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn no_batch_has_more_than_ten_entries_or_an_id_twice() {
    let (server, queues) = scripted_sqs(|_| EntryResult::Accepted).await;
    assert_eq!(send_all(&queues, 35).await, vec![Ok(()); 35]);
    let batches: Vec<Vec<(String, String)>> = server.requests().iter().map(batch).collect();
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
async fn messages_share_a_request_while_they_have_at_most_a_mebibyte_together() {
    let half = MESSAGE_MAX_BYTES / 2 - message("").size_bytes();
    for (bytes, requests) in [(2_000, 1), (half, 1), (half + 1, 2)] {
        let (server, queues) = scripted_sqs(|_| EntryResult::Accepted).await;
        let sends = ["x".repeat(half.min(bytes)), "y".repeat(bytes)]
            .map(|body| send(&queues, QueueName::Events, message(&body)));
        assert_eq!(join_all(sends).await, [Ok(()), Ok(())]);
        assert_eq!(server.requests().len(), requests, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_wait_is_sent_in_whole_seconds_rounded_up_and_at_most_900() {
    for (wait_ms, seconds) in [(0, 0), (1, 1), (1_001, 2), (899_500, 900), (7_200_000, 900)] {
        let (server, queues) = scripted_sqs(|_| EntryResult::Accepted).await;
        assert_eq!(
            send(&queues, QueueName::Events, Message { wait_ms, ..message("later") }).await,
            Ok(())
        );
        let request: Value = serde_json::from_slice(&server.requests()[0].body).expect("JSON");
        assert_eq!(request["Entries"][0]["DelaySeconds"].as_u64(), Some(seconds), "{wait_ms}");
    }
}

#[tokio::test]
async fn no_request_is_made_for_messages_that_were_sent_already() {
    let (server, queues) = scripted_sqs(|_| EntryResult::Accepted).await;
    // The tenth fills the batch, and what began the batch's window finds nothing left at its end.
    assert_eq!(send_all(&queues, 10).await, vec![Ok(()); 10]);
    tokio::time::sleep(BATCH_WINDOW * 3).await;
    let requests = server.requests();
    let entries = |body: &[u8]| {
        let request: Value = serde_json::from_slice(body).expect("JSON");
        request["Entries"].as_array().map_or(0, Vec::len)
    };
    assert!(requests.iter().all(|request| entries(&request.body) > 0), "{}", requests.len());
}

#[tokio::test]
async fn a_failed_entry_reaches_only_its_own_sender() {
    let (_server, queues) = scripted_sqs(|body| match body {
        "m3" => THROTTLED,
        "m7" => EntryResult::Missing,
        _ => EntryResult::Accepted,
    })
    .await;
    for (index, result) in send_all(&queues, 10).await.into_iter().enumerate() {
        match (index, result) {
            (3, Err(QueueError(error))) => assert_eq!(error, "Throttled: later"),
            (7, Err(QueueError(error))) => assert!(error.contains("does not mention"), "{error}"),
            (3 | 7, Ok(())) => panic!("m{index} was not accepted"),
            (_, result) => assert_eq!(result, Ok(()), "m{index}"),
        }
    }
}

#[tokio::test]
async fn when_a_whole_request_fails_every_sender_gets_the_error() {
    let body = br#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no such queue"}"#;
    let steps =
        || vec![answer("400 Bad Request", &[("content-type", "application/x-amz-json-1.0")], body)];
    for steps in [steps(), vec![Step::Reset], vec![answer("200 OK", &[], b"<html>")]] {
        let script = steps.clone();
        let server = Scripted::start(move |_| script.clone()).await.expect("a free port");
        let results = send_all(&queues_of(&server), 3).await;
        assert!(results.iter().all(Result::is_err), "{steps:?}: {results:?}");
    }
}

#[tokio::test]
async fn a_cancelled_sender_cancels_no_other_message() {
    let (server, queues) = scripted_sqs(|_| EntryResult::Accepted).await;
    let mut cancelled = Box::pin(send(&queues, QueueName::Events, message("leaving")));
    assert_eq!((&mut cancelled).now_or_never(), None);
    let kept = send(&queues, QueueName::Events, message("staying"));
    drop(cancelled);
    assert_eq!(kept.await, Ok(()));
    let bodies: Vec<String> =
        server.requests().iter().flat_map(batch).map(|(_, body)| body).collect();
    assert_eq!(bodies, ["leaving", "staying"]);
}
