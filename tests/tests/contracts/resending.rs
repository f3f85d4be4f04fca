//! A message that SQS refuses for a temporary reason is sent again, and no other message is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters::queues::SqsQueues;
use adapters::timeouts::OPERATION_TIMEOUT;
use delivery::ports::{QueueError, QueueName};
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};

use crate::scripted_sqs::{
    EntryResult, THROTTLED, answer_to, batch, call_error, message, queues_of, scripted_sqs, send,
    send_all,
};

/// An SQS that answers its first request with this step, and accepts everything after it.
async fn failing_once(first: Step) -> (Scripted, SqsQueues) {
    let requests = AtomicUsize::new(0);
    let script = move |received: &ScriptedRequest| match requests.fetch_add(1, Ordering::SeqCst) {
        0 => vec![first.clone()],
        _ => vec![answer_to(received, |_| EntryResult::Accepted)],
    };
    let server = Scripted::start(script).await.expect("a free port");
    let queues = queues_of(&server);
    (server, queues)
}

/// The bodies of each request.
fn bodies(server: &Scripted) -> Vec<Vec<String>> {
    server.requests().iter().map(bodies_of).collect()
}

fn bodies_of(request: &ScriptedRequest) -> Vec<String> {
    batch(request).into_iter().map(|(_, body)| body).collect()
}

#[tokio::test]
async fn a_call_that_fails_once_is_sent_again_with_every_message() {
    for first in [
        Step::Reset,
        answer("200 OK", &[], b"<html>"),
        call_error("500 Internal Server Error", "InternalError", None),
        call_error("503 Service Unavailable", "ServiceUnavailable", None),
    ] {
        let (server, queues) = failing_once(first.clone()).await;
        assert_eq!(send_all(&queues, 3).await, vec![Ok(()); 3], "{first:?}");
        assert_eq!(bodies(&server), [["m0", "m1", "m2"], ["m0", "m1", "m2"]], "{first:?}");
    }
}

#[tokio::test]
async fn a_throttled_call_is_sent_again_whether_sqs_or_kms_throttles() {
    for (code, query_code) in [
        ("RequestThrottled", None),
        ("RequestThrottled", Some("RequestThrottled")),
        ("ThrottlingException", None),
        ("KmsThrottled", None),
        ("KmsThrottled", Some("KMS.ThrottlingException")),
    ] {
        let (server, queues) = failing_once(call_error("400 Bad Request", code, query_code)).await;
        assert_eq!(send_all(&queues, 2).await, vec![Ok(()); 2], "{code} {query_code:?}");
        assert_eq!(server.requests().len(), 2, "{code} {query_code:?}");
    }
}

#[tokio::test]
async fn a_call_that_fails_for_good_is_sent_once() {
    for (code, query_code) in [
        ("KmsAccessDenied", Some("KMS.AccessDeniedException")),
        ("KmsAccessDenied", None),
        ("KmsDisabled", Some("KMS.DisabledException")),
        ("QueueDoesNotExist", Some("AWS.SimpleQueueService.NonExistentQueue")),
        ("QueueDoesNotExist", None),
        ("AccessDeniedException", None),
        ("InvalidMessageContents", None),
    ] {
        let (server, queues) = failing_once(call_error("400 Bad Request", code, query_code)).await;
        let results = send_all(&queues, 2).await;
        assert!(results.iter().all(Result::is_err), "{code}: {results:?}");
        assert_eq!(server.requests().len(), 1, "{code} {query_code:?}");
    }
}

#[tokio::test]
async fn of_a_batch_only_the_failed_entries_are_sent_again() {
    let failed = AtomicUsize::new(0);
    let (server, queues) = scripted_sqs(move |body| match body {
        "m1" if failed.fetch_add(1, Ordering::SeqCst) < 2 => {
            EntryResult::Failed { code: "InternalError", sender_fault: false }
        }
        _ => EntryResult::Accepted,
    })
    .await;
    assert_eq!(send_all(&queues, 3).await, vec![Ok(()); 3]);
    assert_eq!(bodies(&server), [vec!["m0", "m1", "m2"], vec!["m1"], vec!["m1"]]);
}

#[tokio::test]
async fn an_entry_that_is_the_senders_fault_is_sent_again_only_if_it_was_throttled() {
    let seen = AtomicUsize::new(0);
    let (server, queues) = scripted_sqs(move |body| match body {
        "m0" => EntryResult::Failed { code: "InvalidMessageContents", sender_fault: true },
        "m1" => EntryResult::Failed { code: "SomethingElse", sender_fault: true },
        "m2" if seen.fetch_add(1, Ordering::SeqCst) == 0 => {
            EntryResult::Failed { code: "KMS.ThrottlingException", sender_fault: true }
        }
        _ => EntryResult::Accepted,
    })
    .await;
    let refused = |code: &str| Err(QueueError(format!("{code}: later")));
    let results = [refused("InvalidMessageContents"), refused("SomethingElse"), Ok(())];
    assert_eq!(send_all(&queues, 3).await, results);
    assert_eq!(bodies(&server), [vec!["m0", "m1", "m2"], vec!["m2"]]);
}

#[tokio::test]
async fn a_queue_that_throttles_without_end_is_given_up_after_six_tries() {
    let (server, queues) = scripted_sqs(|_| THROTTLED).await;
    let throttled = Err(QueueError("Throttled: later".to_owned()));
    assert_eq!(send_all(&queues, 1).await, [throttled]);
    assert_eq!(server.requests().len(), 6);
}

// Time is paused: it jumps to the next timer whenever all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_queue_that_never_answers_is_given_up_at_the_timeout_of_a_call() {
    let server = Scripted::start(|_| vec![Step::Silence]).await.expect("a free port");
    let queues = queues_of(&server);
    let limit = OPERATION_TIMEOUT + Duration::from_secs(1);
    let results = tokio::time::timeout(limit, send_all(&queues, 3)).await;
    let unanswered = Err(QueueError("the queue did not respond in time".to_owned()));
    assert_eq!(results, Ok(vec![unanswered; 3]));
}

#[tokio::test]
async fn a_sender_that_left_has_its_message_sent_no_second_time() {
    let (server, queues) = scripted_sqs(|_| THROTTLED).await;
    let mut leaving = Box::pin(send(&queues, QueueName::Events, message("leaving")));
    let mut requests = 0;
    while requests == 0 {
        tokio::select! {
            result = &mut leaving => panic!("it is throttled: {result:?}"),
            () = tokio::task::yield_now() => requests = server.requests().len(),
        }
    }
    drop(leaving);
    // This message is sent until it is given up. The first message would have been given up
    // earlier.
    assert!(send(&queues, QueueName::Events, message("staying")).await.is_err());
    let leaving = bodies(&server).concat().iter().filter(|body| *body == "leaving").count();
    assert!(leaving <= 2, "{leaving}");
}

#[tokio::test]
async fn at_most_eight_calls_to_a_queue_are_under_way_at_once() {
    let server = Scripted::start(|_| vec![Step::Silence]).await.expect("a free port");
    let queues = queues_of(&server);
    let sending = send_all(&queues, 200);
    let observing = async {
        while server.requests().len() < 8 {
            tokio::task::yield_now().await;
        }
        // Once time is paused, a sleep ends when everything else waits.
        tokio::time::pause();
        tokio::time::sleep(Duration::from_millis(1)).await;
        server.requests().len()
    };
    tokio::select! {
        results = sending => panic!("nothing answers: {results:?}"),
        requests = observing => assert_eq!(requests, 8),
    }
}

#[tokio::test]
async fn a_queue_that_is_stuck_keeps_no_message_from_another() {
    let script =
        |received: &ScriptedRequest| match bodies_of(received).contains(&"other".to_owned()) {
            true => vec![answer_to(received, |_| EntryResult::Accepted)],
            false => vec![Step::Silence],
        };
    let server = Scripted::start(script).await.expect("a free port");
    let queues = queues_of(&server);
    let stuck = send_all(&queues, 200);
    let other = async {
        while server.requests().len() < 8 {
            tokio::task::yield_now().await;
        }
        send(&queues, QueueName::Retry, message("other")).await
    };
    tokio::select! {
        results = stuck => panic!("nothing answers: {results:?}"),
        result = other => assert_eq!(result, Ok(())),
    }
}
