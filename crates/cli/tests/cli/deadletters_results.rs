//! What became of replayed dead letters, on a whole stack: delivered, or dead letters again, linked in both
//! directions; and that a replay does not repeat itself.

use std::path::PathBuf;
use std::process::Output;

use axum::http::StatusCode;
use local::stack::{Stack, StackConfig};
use local::subscriber::{Subscriber, status_sequence};
use serde_json::Value;

use crate::page_server::PageServer;
use crate::sample_letters::{TestContainer, sample, text, write};

/// How long a replay may take to end; no test waits that long unless it fails.
const WAIT: &str = "PT2M";

/// A stack whose only subscription has dead letters, and the program that replays them.
struct Results {
    stack: Stack,
    program: TestContainer,
    container: PathBuf,
    _data: tempfile::TempDir,
}

impl Results {
    /// The subscriber responds with this status; so many dead letters of its subscription are stored.
    async fn start(status: StatusCode, letters: u32, more: &str) -> Self {
        let subscriber = Subscriber::listen(0).await.expect("a port");
        let port = subscriber.port().expect("it listens");
        tokio::spawn(subscriber.serve(status_sequence(vec![status], 0), |_, _| {}));
        let data = tempfile::tempdir().expect("a folder can be made");
        let container = data.path().join("s3/dead-letters");
        let blobs: Vec<_> =
            (1..=letters).map(|number| sample(number, (20, 9), "overloaded").blob()).collect();
        write(&container, &blobs);
        let subscriptions = data.path().join("subscriptions.yaml");
        let document = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: orders, name: billing}}\n\
             spec:\n  destination: {{url: \"http://127.0.0.1:{port}/\"}}\n  retry: {{maxAttempts: 1}}\n{more}"
        );
        std::fs::write(&subscriptions, document).expect("the file can be written");
        let config = StackConfig {
            aws_port: 0,
            data: data.path().to_owned(),
            subscriptions,
            allow_private: "127.0.0.1".to_owned(),
            default_topic: None,
        };
        let stack = Stack::start(&config).await.expect("the stack starts");
        Self { stack, program: TestContainer::folder(), container, _data: data }
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let container = self.container.display().to_string();
        let mut command = self.program.command(&[arguments, &["--container", &container]].concat());
        // The stack runs in this process and has to go on meanwhile.
        let run = tokio::task::spawn_blocking(move || command.output().expect("the program runs"));
        run.await.expect("nothing panics")
    }

    async fn replay(&self, more: &[&str]) -> Output {
        let queue = self.stack.aws().queue_url("fan-out");
        self.run(&[&["replay", "--yes", "--queue-url", &queue], more].concat()).await
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--output", "json"]].concat()).await;
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    async fn job(&self, job: &str) -> Value {
        self.json(&["jobs", job]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dead_again_is_counted_linked_and_not_sent_once_more_by_itself() {
    let results = Results::start(StatusCode::BAD_REQUEST, 120, "").await;
    let done = results.replay(&["--name", "first", "--wait", WAIT]).await;
    let (said, noted) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{said} {noted}");
    assert!(said.ends_with("120 dead again\n"), "{said}");
    assert!(noted.contains("the local queues of `lastmile dev` on 127.0.0.1"), "{noted}");

    let job = results.job("first").await;
    let counts = ["sent", "delivered", "dead_again", "dropped", "under_way"];
    assert_eq!(counts.map(|name| job[name].as_u64()), [120, 0, 120, 0, 0].map(Some), "{job}");
    let again = job["dead_again_letters"].as_array().expect("a list");
    assert_eq!(again.len(), 120);
    let (old, new) = (again[0]["letter"].as_str(), again[0]["dead_letter"].as_str());
    let (old, new) = (old.expect("an id"), new.expect("an id"));
    let table = text(&results.run(&["jobs", "first"]).await.stdout);
    assert!(table.contains(old) && table.contains(new), "{table}");

    let of_old = results.json(&["show", old]).await;
    assert_eq!(of_old["replayed"], "first");
    assert_eq!(of_old["replay_end"]["dead_letter"], new);
    let of_new = results.json(&["show", new]).await;
    assert_eq!(of_new["replay_of"]["letter"], old);
    assert_eq!((&of_new["replay_of"]["job"], &of_new["replayed"]), (&"first".into(), &Value::Null));
    assert_eq!(of_old["replay_end"]["key"], of_new["key"]);
    let shown = text(&results.run(&["show", old]).await.stdout);
    assert!(shown.contains(&format!("dead again → {new}")), "{shown}");
    let shown = text(&results.run(&["show", new]).await.stdout);
    assert!(shown.contains(&format!("{old} by the job first")), "{shown}");

    let repeated = results.replay(&["--name", "second"]).await;
    assert_eq!(repeated.status.code(), Some(1), "{}", text(&repeated.stdout));
    let noted = text(&repeated.stderr);
    assert!(noted.contains("240 dead letters, replayed before; --again"), "{noted}");
    let jobs = results.json(&["jobs"]).await;
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{jobs}");

    // Of each event once: its newest dead letter.
    let again = results.replay(&["--again", "--name", "third", "--wait", WAIT]).await;
    assert!(text(&again.stdout).contains("120 of 120 dead letters sent"), "{again:?}");
    assert!(text(&again.stdout).ends_with("120 dead again\n"), "{again:?}");
    results.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_delivered_is_told_by_the_job_by_the_dead_letter_and_on_the_page() {
    let results = Results::start(StatusCode::OK, 3, "").await;
    let done = results.replay(&["--name", "good", "--wait", WAIT]).await;
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).ends_with("3 delivered\n"), "{}", text(&done.stdout));
    let job = results.job("good").await;
    assert_eq!((&job["delivered"], &job["under_way"]), (&3.into(), &0.into()), "{job}");
    // Once everything has ended, a look at the job needs one object for all ends.
    assert!(results.container.join("_replays/good/ends.ndjson").exists());
    let id = sample(1, (20, 9), "").id();
    assert_eq!(results.json(&["show", &id]).await["replay_end"]["state"], "delivered");

    let server = PageServer::start(
        &results.program,
        &["--container", &results.container.display().to_string()],
    );
    let page = server.page("/jobs/good").await;
    assert!(page.contains("<dt>delivered</dt><dd>3</dd>"), "{page}");
    assert!(server.page("/jobs").await.contains("Dead again"));
    let letter = server.page(&format!("/letters/{id}")).await;
    assert!(letter.contains("Its replay") && letter.contains("delivered"), "{letter}");
    let replay = server.page("/replay").await;
    assert!(replay.contains("Left out: 3 dead letters, replayed before"), "{replay}");
    assert!(server.page("/replay?again=yes").await.contains("3 dead letters would be sent"));
    results.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_its_subscription_drops_is_told_too() {
    let dropped = "  deadLetter: none\n";
    let results = Results::start(StatusCode::BAD_REQUEST, 2, dropped).await;
    let done = results.replay(&["--name", "drops", "--wait", WAIT]).await;
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(text(&done.stdout).ends_with("2 dropped\n"), "{}", text(&done.stdout));
    assert_eq!(results.job("drops").await["dropped"], 2);
    results.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_from_another_container_says_that_its_results_are_not_recorded() {
    let results = Results::start(StatusCode::OK, 0, "").await;
    let elsewhere = TestContainer::folder();
    elsewhere.write(&[sample(1, (20, 9), "").blob()]);
    let queue = results.stack.aws().queue_url("fan-out");
    let mut command =
        elsewhere.command(&["replay", "--yes", "--queue-url", &queue, "--name", "away"]);
    let run = tokio::task::spawn_blocking(move || command.output().expect("the program runs"));
    let done = run.await.expect("nothing panics");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("results are not recorded here"), "{}", text(&done.stderr));
    let jobs = elsewhere.run(&["jobs", "--output", "json"]);
    let jobs: Value = serde_json::from_slice(&jobs.stdout).expect("JSON");
    assert_eq!((&jobs[0]["results"], &jobs[0]["under_way"]), (&false.into(), &Value::Null));
    results.stack.stop().await.expect("it stops");
}
