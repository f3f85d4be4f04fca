//! The connections that the sender keeps: only those of exchanges that ended with an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use delivery::delivery::outcome::TransportResult;
use delivery::ports::SendHttp as _;
use futures::future::join_all;
use lastmile_tests::certificates::Authority;
use lastmile_tests::hostile::{HostileBehaviour, floods, floods_after_an_answer, slow_senders};
use lastmile_tests::scripted::{Scripted, Step, answer};

use super::hostile::trusting;
use super::{LATE, LONG_MS, SHORT_MS, answered, exchange_with, request, sender};

/// The time within which a server notices a closed connection, even on a busy machine. It is longer
/// than the time for which an idle connection is kept.
const CLOSED_WITHIN: Duration = Duration::from_secs(60);
/// More bytes than a client sends in answer to what it reads from an idle connection.
const IDLE_READ_MAX_BYTES: usize = 2 * 1_024 * 1_024;
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Waits until this many connections of a server have ended. Returns false after `CLOSED_WITHIN`.
async fn ended(server: &Scripted, connections: usize) -> bool {
    within(|| server.ended_connections() == connections).await
}

/// Waits until a server has had this many connections. Returns false after `CLOSED_WITHIN`.
async fn opened(server: &Scripted, connections: usize) -> bool {
    within(|| server.connections() == connections).await
}

async fn within(is_so: impl Fn() -> bool) -> bool {
    let until = async {
        while !is_so() {
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(CLOSED_WITHIN, until).await.is_ok()
}

/// A server that answers the first request with these steps, and all others with 200.
pub(super) async fn first(steps: Vec<Step>) -> Scripted {
    let is_first = AtomicBool::new(true);
    let script = move |_: &_| match is_first.swap(false, Ordering::SeqCst) {
        true => steps.clone(),
        false => vec![answer("200 OK", &[], b"")],
    };
    Scripted::start(script).await.expect("a free port")
}

/// None of these exchanges would end by itself. The budget ends them long before the timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flooded_connection_is_closed_at_once_and_never_reused() {
    let authority = Authority::new().expect("a key");
    let sender = trusting(&authority);
    for flood in floods() {
        let server = flood.serve(&authority).await.expect("a free port");
        let request = request(&flood.url(&server), LONG_MS);
        for connections in 1..=2 {
            let made = exchange_with(&sender, &request).await;
            assert_eq!(made.result, TransportResult::SocketError, "{}: {made:?}", flood.name);
            let detail = made.detail.unwrap_or_default();
            let is_bounded = ["more than 384 KiB", "headers are too large"]
                .iter()
                .any(|why| detail.contains(why));
            assert!(is_bounded, "{}: {detail}", flood.name);
            assert!(ended(&server, connections).await, "{}: still open", flood.name);
            assert_eq!(server.connections(), connections, "{}", flood.name);
        }
    }
}

/// The client answers each ping, so its answers show how many pings it has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_is_closed_once_it_is_flooded() {
    let authority = Authority::new().expect("a key");
    let sender = trusting(&authority);
    for flood in floods_after_an_answer() {
        let server = flood.serve(&authority).await.expect("a free port");
        let made = exchange_with(&sender, &request(&flood.url(&server), LONG_MS)).await;
        assert_eq!(made.status(), Some(200), "{}: {made:?}", flood.name);
        assert!(ended(&server, 1).await, "{}: still open", flood.name);
        let discarded_bytes = server.discarded_bytes();
        assert!(discarded_bytes < IDLE_READ_MAX_BYTES, "{}: {discarded_bytes}", flood.name);
    }
}

#[tokio::test]
async fn a_connection_is_closed_when_its_exchange_is_dropped() {
    let head = Step::Write(b"HTTP/1.1 200 OK\r\nx-drip: ".to_vec());
    let server = Scripted::start(move |_| vec![head.clone(), Step::Drip(b'x')]).await;
    let server = server.expect("a free port");
    let (sender, request) = (sender(), request(&server.endpoint(), LONG_MS));
    let abandoned =
        tokio::time::timeout(Duration::from_millis(SHORT_MS), sender.exchange(&request));
    assert!(abandoned.await.is_err(), "an answer");
    assert!(ended(&server, 1).await, "still open");
}

#[tokio::test]
async fn a_connection_is_reused_after_an_answer() {
    let server =
        Scripted::start(|_| vec![answer("503 Busy", &[], b"later")]).await.expect("a free port");
    let sender = sender();
    for _ in 0..3 {
        let made = exchange_with(&sender, &request(&server.endpoint(), LONG_MS)).await;
        assert_eq!(made.result, answered(503, None, b"later"));
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_timed_out_is_not_reused() {
    let slow = vec![Step::Pause(LATE), answer("200 OK", &[], b"")];
    let server = first(slow).await;
    let sender = sender();
    let made = exchange_with(&sender, &request(&server.endpoint(), SHORT_MS)).await;
    assert_eq!(made.result, TransportResult::TimedOut);
    let made = exchange_with(&sender, &request(&server.endpoint(), LONG_MS)).await;
    assert_eq!(made.result, answered(200, None, b""));
    assert!(ended(&server, 1).await, "still open");
    assert_eq!(server.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_over_tls_that_timed_out_is_not_reused_whatever_it_goes_on_sending() {
    let authority = Authority::new().expect("a key");
    let sender = trusting(&authority);
    let times_out_twice = async |slow: HostileBehaviour| {
        let server = slow.serve(&authority).await.expect("a free port");
        for connections in 1..=2 {
            let made = exchange_with(&sender, &request(&slow.url(&server), 10 * SHORT_MS)).await;
            assert_eq!(made.result, TransportResult::TimedOut, "{}: {made:?}", slow.name);
            // The next exchange begins at once: later, an idle connection would be closed anyway.
            assert!(opened(&server, connections).await, "{}: the first is reused", slow.name);
        }
        assert!(ended(&server, 2).await, "{}: still open", slow.name);
    };
    join_all(slow_senders().into_iter().map(times_out_twice)).await;
}

#[tokio::test]
async fn a_failure_of_one_origin_leaves_the_connections_of_others() {
    let healthy = Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
    let broken = Scripted::start(|_| vec![Step::Reset]).await.expect("a free port");
    let sender = sender();
    for _ in 0..3 {
        let made = exchange_with(&sender, &request(&healthy.endpoint(), LONG_MS)).await;
        assert_eq!(made.result, answered(200, None, b""));
        let made = exchange_with(&sender, &request(&broken.endpoint(), LONG_MS)).await;
        assert_eq!(made.result, TransportResult::SocketError);
    }
    assert_eq!((healthy.connections(), broken.connections()), (1, 3));
}

#[tokio::test]
async fn an_exchange_under_way_outlives_the_failure_of_another() {
    let slow = vec![Step::Pause(LATE), answer("200 OK", &[], b"slow")];
    let server = Scripted::start(move |_| slow.clone()).await.expect("a free port");
    let sender = sender();
    let (patient, impatient) =
        (request(&server.endpoint(), LONG_MS), request(&server.endpoint(), SHORT_MS));
    let (patient, impatient) = tokio::join!(sender.exchange(&patient), sender.exchange(&impatient));
    assert_eq!(impatient.result, TransportResult::TimedOut);
    assert_eq!(patient.result, answered(200, None, b"slow"));
}
