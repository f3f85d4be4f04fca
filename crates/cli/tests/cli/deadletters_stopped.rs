//! A replay whose deliveries fail stops, says why and how to continue, and sends each dead letter
//! once.

use std::sync::{Arc, Mutex};

use adapters::machine::Machine;
use axum::http::StatusCode;
use delivery::ports::Clock as _;
use local::subscriber::{Received, Subscriber, status_sequence};
use serde_json::Value;

use crate::deadletters_results::{BILLING, Results};
use crate::sample_letters::{TestContainer, sample, text};

/// The events that a subscriber got.
type Seen = Arc<Mutex<Vec<String>>>;

fn recorder(seen: &Seen) -> impl Fn(&Received) + Send + Sync + 'static {
    let seen = Arc::clone(seen);
    move |received| {
        let event: Value = serde_json::from_slice(&received.body).expect("JSON");
        let id = event["id"].as_str().expect("an id").to_owned();
        seen.lock().expect("nobody panicked").push(id);
    }
}

/// The number of events, each of which came once.
fn once_each(seen: &Seen) -> usize {
    let mut ids = seen.lock().expect("nobody panicked").clone();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "an event came twice: {ids:?}");
    all
}

/// So many dead letters, from order-11 on.
fn blobs(count: u32) -> Vec<(String, String)> {
    (11..11 + count).map(|number| sample(number, (20, 9), "overloaded").blob()).collect()
}

fn statuses(parts: &[(StatusCode, usize)]) -> Vec<StatusCode> {
    parts.iter().flat_map(|(status, count)| vec![*status; *count]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_whose_first_five_deliveries_fail_stops_and_a_resume_sends_the_others() {
    let seen = Seen::default();
    let answers = statuses(&[(StatusCode::BAD_REQUEST, 5), (StatusCode::OK, 1)]);
    let results = Results::with(BILLING, &blobs(20), answers, recorder(&seen)).await;
    let done = results.replay(&["--name", "probed"]).await;
    let (said, noted) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{said} {noted}");
    assert!(
        said.contains("job probed: 5 of 20 dead letters sent\n15 were not sent yet; to continue: "),
        "{said}"
    );
    let command = format!(
        "lastmile deadletters replay --container {} --resume probed",
        results.container.display()
    );
    assert!(said.contains(&command), "{said}");
    assert!(noted.contains("stopped: the first 5 deliveries failed: 400"), "{noted}");
    assert_eq!(once_each(&seen), 5);
    let mut oldest = seen.lock().expect("nobody panicked").clone();
    oldest.sort();
    assert_eq!(oldest, ["order-11", "order-12", "order-13", "order-14", "order-15"]);

    let done = results.replay(&["--resume", "probed", "--wait", "PT2M"]).await;
    assert_eq!(done.status.code(), Some(1), "five are dead again: {done:?}");
    let said = text(&done.stdout);
    assert!(said.ends_with("15 delivered, 5 dead-again\n"), "{said}");
    assert_eq!(once_each(&seen), 20);
    results.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_stops_after_ten_failures_in_a_row_and_a_resume_looks_only_at_what_follows() {
    let seen = Seen::default();
    let answers = statuses(&[(StatusCode::OK, 5), (StatusCode::BAD_REQUEST, 1)]);
    let results = Results::with(BILLING, &blobs(200), answers, recorder(&seen)).await;
    let done = results.replay(&["--name", "ten", "--rate", "10/s"]).await;
    let noted = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{noted}");
    assert!(noted.contains("stopped: the last 10 deliveries failed: 400"), "{noted}");
    let job = results.job("ten").await;
    let sent = job["sent"].as_u64().expect("a number");
    assert!((15..200).contains(&sent), "{job}");

    // Its first five fail again, so no more are sent.
    let done = results.replay(&["--resume", "ten"]).await;
    let noted = text(&done.stderr);
    assert!(noted.contains("at most 10/s, the rate of the job"), "{noted}");
    assert!(noted.contains("stopped: the first 5 deliveries failed: 400"), "{noted}");
    assert_eq!(results.job("ten").await["sent"], sent + 5);
    while results.job("ten").await["under_way"] != 0 {
        Machine.sleep(100).await;
    }
    assert_eq!(once_each(&seen) as u64, sent + 5);
    results.stack.stop().await.expect("it stops");
}

/// A container with so many dead letters, and the address of a subscriber with these statuses.
async fn posted(count: u32, answers: Vec<StatusCode>, seen: &Seen) -> (TestContainer, String) {
    let container = TestContainer::folder();
    container.write(&blobs(count));
    let subscriber = Subscriber::listen(0).await.expect("a port");
    let url = format!("http://127.0.0.1:{}/again", subscriber.port().expect("a port"));
    let record = recorder(seen);
    tokio::spawn(
        subscriber.serve(status_sequence(answers, 0), move |received, _| record(received)),
    );
    (container, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_refuses_the_first_five_gets_no_more_and_one_that_refuses_ten_in_a_row_neither()
{
    let seen = Seen::default();
    let refused = StatusCode::INTERNAL_SERVER_ERROR;
    let answers = statuses(&[(refused, 5), (StatusCode::OK, 5), (refused, 1)]);
    let (container, url) = posted(60, answers, &seen).await;
    let run = |more: &[&str]| {
        let done = container.run(&[&["replay", "--yes", "--to-url", &url][..], more].concat());
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
        (text(&done.stdout), text(&done.stderr))
    };
    let (said, noted) = run(&["--name", "posted"]);
    assert!(
        noted.contains("stopped: no delivery was accepted: ")
            && noted.contains("responded with 500"),
        "{noted}"
    );
    assert!(
        said.contains("0 of 60 dead letters") && said.contains("5 were refused; to try again: "),
        "{said}"
    );
    assert_eq!(once_each(&seen), 5);

    let (said, noted) = run(&["--resume", "posted"]);
    assert!(noted.contains("stopped: the last 10 deliveries failed: "), "{noted}");
    assert!(said.contains("job posted: 5 of 60 dead letters sent\n"), "{said}");
    assert!(said.contains("were not sent yet; to continue: "), "{said}");
}
