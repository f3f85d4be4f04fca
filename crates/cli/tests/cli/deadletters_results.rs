//! Ends of replayed dead letters on a whole stack. They are delivered, or are dead letters again
//! and linked in both directions. A replay does not repeat itself.

use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use local::stack::{Stack, StackConfig, TargetSettings};
use local::subscriber::{Received, Subscriber, status_sequence};
use serde_json::Value;

use crate::console_server::ConsoleServer;
use crate::deployments::deploy;
use crate::sample_letters::{TestContainer, sample, text, write};

/// The limit for the end of a replay. Only failing tests wait that long.
const WAIT: &str = "PT2M";

/// The subscription of the dead letters, with one attempt.
pub(crate) const BILLING: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
    metadata: {namespace: shop, topic: orders, name: billing}\n\
    spec:\n  destination: {url: \"http://127.0.0.1:PORT/\"}\n  retry: {maxAttempts: 1}\n";

/// A stack whose only subscription has dead letters, and the program that replays them.
pub(crate) struct Results {
    pub(crate) stack: Stack,
    program: TestContainer,
    pub(crate) container: PathBuf,
    _data: tempfile::TempDir,
}

impl Results {
    /// Starts the stack with a subscriber that responds with this status, and stores this many dead
    /// letters of its subscription.
    async fn start(status: StatusCode, letters: u32, more: &str) -> Self {
        Self::with_statuses(vec![status], letters, more).await
    }

    /// Starts the stack with a subscriber that responds with these statuses in turn.
    async fn with_statuses(statuses: Vec<StatusCode>, letters: u32, more: &str) -> Self {
        let blobs: Vec<_> =
            (1..=letters).map(|number| sample(number, (20, 9), "overloaded").blob()).collect();
        Self::with(&format!("{BILLING}{more}"), &blobs, statuses, |_| {}).await
    }

    /// Starts the stack with this file of subscriptions and these blobs. The subscriber responds
    /// with these statuses in turn.
    pub(crate) async fn with(
        document: &str,
        blobs: &[(String, String)],
        statuses: Vec<StatusCode>,
        on_request: impl Fn(&Received) + Send + Sync + 'static,
    ) -> Self {
        let subscriber = Subscriber::listen(0).await.expect("a port");
        let port = subscriber.port().expect("it listens").to_string();
        let answer = status_sequence(statuses, 0);
        tokio::spawn(subscriber.serve(answer, move |received, _| on_request(received)));
        let data = tempfile::tempdir().expect("a folder can be made");
        let container = data.path().join("s3/dead-letters");
        write(&container, blobs);
        deploy(data.path(), &document.replace("PORT", &port));
        let config = StackConfig {
            aws_port: 0,
            data: data.path().to_owned(),
            subscriptions: data.path().join("subscriptions"),
            allow_private: "127.0.0.1".to_owned(),
            targets: TargetSettings::default(),
            default_topic: None,
        };
        let stack = Stack::start(&config).await.expect("the stack starts");
        Self { stack, program: TestContainer::folder(), container, _data: data }
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let container = self.container.display().to_string();
        let mut command = self.program.command(&[arguments, &["--container", &container]].concat());
        // The stack runs in this process, so the test must not block the runtime.
        let run = tokio::task::spawn_blocking(move || command.output().expect("the program runs"));
        run.await.expect("nothing panics")
    }

    pub(crate) async fn replay(&self, more: &[&str]) -> Output {
        let queue = self.stack.aws().queue_url("retry");
        self.run(&[&["replay", "--yes", "--queue-url", &queue], more].concat()).await
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--output", "json"]].concat()).await;
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    pub(crate) async fn job(&self, job: &str) -> Value {
        self.json(&["jobs", job]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dead_again_is_counted_once_and_linked() {
    // A job does not stop while most of its deliveries succeed.
    let statuses = [StatusCode::BAD_REQUEST, StatusCode::OK, StatusCode::OK, StatusCode::OK];
    let results = Results::with_statuses(statuses.repeat(60), 120, "").await;
    let done = results.replay(&["--name", "first", "--wait", WAIT]).await;
    let (said, noted) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{said} {noted}");
    assert!(said.ends_with("90 delivered, 30 dead-again\n"), "{said}");
    assert!(
        noted.contains("at most 50/s, the default") && noted.contains("the first 5"),
        "{noted}"
    );
    assert!(noted.contains("the local queues of `lastmile dev` on 127.0.0.1"), "{noted}");

    let job = results.job("first").await;
    let counts = ["sent", "delivered", "dead_again", "dropped", "under_way"];
    assert_eq!(counts.map(|name| job[name].as_u64()), [120, 90, 30, 0, 0].map(Some), "{job}");
    let again = job["dead_again_letters"].as_array().expect("a list");
    assert_eq!(again.len(), 30);
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
    let shown = text(&results.run(&["show", old]).await.stdout);
    assert!(shown.contains(&format!("dead-again → {new}")), "{shown}");
    let shown = text(&results.run(&["show", new]).await.stdout);
    assert!(shown.contains(&format!("{old} by the job first")), "{shown}");

    // Each event is counted once, as its newest dead letter.
    let sums = results.json(&["why", "--by", "reason"]).await;
    assert_eq!(sums["letters"], 30, "{sums}");
    for (state, count) in [("dead-again", 30), ("delivered", 90), ("all", 150)] {
        let sums = results.json(&["why", "--by", "reason", "--state", state]).await;
        assert_eq!(sums["letters"], count, "{state}: {sums}");
    }
    let count = results.run(&["replay", "--dry-run"]).await;
    assert!(text(&count.stdout).starts_with("30 dead letters to send again"), "{count:?}");
    let named = results.run(&["replay", new, "--dry-run"]).await;
    assert!(text(&named.stdout).starts_with("1 dead letter to send again"), "{named:?}");
    let named = results.run(&["replay", old, "--dry-run"]).await;
    assert!(text(&named.stderr).contains("omitted: 1 dead-again"), "{named:?}");
    let again = results.replay(&["--state", "all", "--name", "third", "--wait", WAIT]).await;
    assert!(text(&again.stderr).contains("omitted: 30 dead letters whose replays"), "{again:?}");
    assert!(text(&again.stdout).contains("120 of 120 dead letters sent"), "{again:?}");
    assert!(text(&again.stdout).ends_with("90 delivered, 30 dead-again\n"), "{again:?}");
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
    // After every delivery has ended, reading the job needs one object.
    results.json(&["jobs"]).await;
    let done = std::fs::read_to_string(results.container.join("_replays/good/done.ndjson"));
    let done = done.expect("it is there");
    assert_eq!(done.matches(r#""end":{"state":"delivered""#).count(), 3, "{done}");
    let list = results.run(&["list"]).await;
    assert_eq!(list.status.code(), Some(1), "{list:?}");
    assert!(text(&list.stderr).contains("in other states: 3 delivered"), "{list:?}");
    let id = sample(1, (20, 9), "").id();
    assert_eq!(results.json(&["show", &id]).await["replay_end"]["state"], "delivered");

    let server = ConsoleServer::start(
        &results.program,
        &["--container", &results.container.display().to_string()],
    );
    let page = server.page("/jobs/good").await;
    assert!(page.contains("<dt>delivered</dt><dd>3</dd>"), "{page}");
    assert!(server.page("/jobs").await.contains("Dead-again"));
    let letter = server.page(&format!("/letters/{id}")).await;
    assert!(letter.contains("Replay") && letter.contains("delivered"), "{letter}");
    let replay = server.page("/replay").await;
    assert!(replay.contains("Omitted: 3 dead letters in another state"), "{replay}");
    assert!(server.page("/replay?state=all").await.contains("3 dead letters to send"));
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
    let queue = results.stack.aws().queue_url("retry");
    let mut command =
        elsewhere.command(&["replay", "--yes", "--queue-url", &queue, "--name", "away"]);
    let run = tokio::task::spawn_blocking(move || command.output().expect("the program runs"));
    let done = run.await.expect("nothing panics");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("results are not recorded"), "{}", text(&done.stderr));
    let jobs = elsewhere.run(&["jobs", "--output", "json"]);
    let jobs: Value = serde_json::from_slice(&jobs.stdout).expect("JSON");
    assert_eq!((&jobs[0]["results"], &jobs[0]["under_way"]), (&false.into(), &Value::Null));
    results.stack.stop().await.expect("it stops");
}

/// A subscription with an address for replies and a sink, at paths of the subscriber's port.
const WITH_REPLIES: &str = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\n\
    metadata: {name: billing, namespace: shop}\nspec:\n  \
    channel: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: orders}\n  \
    subscriber: {uri: 'http://127.0.0.1:PORT/subscriber'}\n  reply: {uri: 'http://127.0.0.1:PORT/reply'}\n  \
    delivery: {retry: 0, deadLetterSink: {uri: 'http://127.0.0.1:PORT/sink'}}\n";

/// Returns a sample with an additional member of its metadata.
fn with_member(number: u32, member: &str) -> (String, String) {
    let (key, blob) = sample(number, (20, 9), "overloaded").blob();
    (key, blob.replace("\"deadletterid\":", &format!("{member},\"deadletterid\":")))
}

/// Returns a dead letter of a reply, and one that its sink has refused.
fn of_others() -> [(String, String); 2] {
    let sink = r#""sink":{"destination":"https://sink.example.com/","reason":"MaxDeliveryAttemptsExceeded","deliveryattempts":1,"lastresponse":"full","history":[{"at":"2026-11-20T09:04:00Z","outcome":"Busy","status":503,"durationms":1}]}"#;
    [with_member(1, r#""leg":"reply""#), with_member(2, sink)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_replayed_to_the_address_for_replies_and_what_a_sink_refused_to_that_sink() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&seen);
    let record = move |received: &Received| {
        let body = String::from_utf8(received.body.to_vec()).expect("text");
        recorded.lock().expect("no panic").push((received.path.clone(), body));
    };
    let malformed = with_member(3, r#""leg":"reply""#);
    let malformed =
        (malformed.0, malformed.1.replace("MaxDeliveryAttemptsExceeded", "MalformedEvent"));
    let blobs = [&of_others()[..], &[malformed]].concat();
    let results = Results::with(WITH_REPLIES, &blobs, vec![StatusCode::OK], record).await;
    let done = results.replay(&["--name", "j", "--wait", WAIT]).await;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(text(&done.stdout).ends_with("2 delivered\n"), "{done:?}");
    assert!(text(&done.stderr).contains("1 dead letter with a reply"), "{done:?}");
    let mut seen = seen.lock().expect("no panic").clone();
    seen.sort();
    let paths: Vec<&str> = seen.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/reply", "/sink"], "the subscriber gets neither");
    let reply: Value = serde_json::from_str(&seen[0].1).expect("JSON");
    assert_eq!(reply["id"], "order-1");
    let letter: Value = serde_json::from_str(&seen[1].1).expect("JSON");
    assert_eq!(letter["event"]["id"], "order-2");
    let about = &letter["deadletterProperties"];
    assert_eq!(
        (&about["deliveryattempts"], &about["lasthttpstatuscode"]),
        (&2.into(), &503.into())
    );
    results.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_again_at_a_reply_or_a_sink_is_blamed_on_them_and_linked_to_its_job() {
    // The sink of the first dead letter also refuses, so the event is in the container again.
    let statuses = vec![StatusCode::BAD_REQUEST];
    let results = Results::with(WITH_REPLIES, &of_others(), statuses, |_| {}).await;
    let done = results.replay(&["--name", "j", "--wait", WAIT]).await;
    assert!(text(&done.stdout).ends_with("2 dead-again\n"), "{done:?}");
    let job = results.job("j").await;
    let again = job["dead_again_letters"].as_array().expect("a list");
    let new = |old: u32| {
        let found = again.iter().find(|end| end["letter"] == sample(old, (20, 9), "").id());
        found.and_then(|end| end["dead_letter"].as_str()).expect("a dead letter").to_owned()
    };
    for old in [1, 2] {
        let letter = results.json(&["show", &new(old)]).await;
        assert_eq!((&letter["failed"], &letter["replay_of"]["job"]), (&"sink".into(), &"j".into()));
        assert_eq!(letter["sink"]["history"][0]["status"], 400, "{letter}");
    }
    let old = results.json(&["show", &sample(1, (20, 9), "").id()]).await;
    assert_eq!(old["failed"], "reply");
    // Each is another dead letter of the same event.
    assert_eq!(old["same_event"][0]["id"], new(1), "{old}");
    let shown = text(&results.run(&["show", &sample(2, (20, 9), "").id()]).await.stdout);
    assert!(shown.contains("failed        the sink, https://sink.example.com/"), "{shown}");
    assert!(shown.contains("the same event") && shown.contains(&new(2)), "{shown}");
    let why = results.json(&["why", "--state", "all"]).await;
    let parties: Vec<&Value> =
        why.as_array().expect("a list").iter().map(|group| &group["failed"]).collect();
    assert!(parties.contains(&&"reply".into()) && parties.contains(&&"sink".into()), "{why}");
    let why = text(&results.run(&["why"]).await.stdout);
    assert!(why.contains("sink: "), "{why}");
    let to_sink = ["list", "--state", "all", "--destination", "https://sink.example.com/"];
    let filtered = results.run(&to_sink).await;
    assert_eq!(text(&filtered.stdout).matches("MaxDeliveryAttemptsExceeded").count(), 1);
    results.stack.stop().await.expect("it stops");
}

/// Returns the ledger of a job with one dead letter, sent at this time. The job records results.
fn ledger(job: &str, sent_at: &str, (key, _): &(String, String)) -> Vec<(String, String)> {
    let letter = sample(1, (20, 9), "").id();
    let header = format!(
        r#"{{"v":1,"job":"{job}","at":"{sent_at}","to":"subscription","letters":1,"results":true}}"#
    );
    let plan = format!("{header}\n{{\"key\":\"{key}\"}}\n");
    let entry = format!(
        "{{\"letter\":\"{letter}\",\"delivery\":\"{letter}\",\"state\":\"sent\",\"at\":\"{sent_at}\"}}\n"
    );
    let file = |name: &str| format!("_replays/{job}/{name}.ndjson");
    let done = format!("{header}\n{entry}");
    vec![(file("plan"), plan), (file("1"), entry), (file("done"), done)]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_never_came_is_unknown_and_can_be_sent_again() {
    let blob = sample(1, (20, 9), "overloaded").blob();
    let program = TestContainer::folder();
    program.write(std::slice::from_ref(&blob));
    program.write(&ledger("lost", "2026-01-20T10:00:00.0000000Z", &blob));
    let job = program.run(&["jobs", "lost", "--output", "json"]);
    let job: Value = serde_json::from_slice(&job.stdout).expect("JSON");
    assert_eq!(
        (&job["under_way"], &job["unknown"], &job["sent"]),
        (&0.into(), &1.into(), &1.into())
    );
    let no_end = "no result was reported; check the destination and the logs";
    let table = text(&program.run(&["jobs", "lost"]).stdout);
    assert!(table.contains(&format!("1 unknown: {no_end}")), "{table}");
    let id = sample(1, (20, 9), "").id();
    let shown = text(&program.run(&["show", &id]).stdout);
    assert!(shown.contains(&format!("unknown: {no_end}")), "{shown}");
    let shown = program.run(&["show", &id, "--output", "json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["replay_end"]["state"], "unknown");
    let again = program.run(&["replay", "--dry-run"]);
    assert!(text(&again.stdout).starts_with("1 dead letter to send again"), "{again:?}");

    let server = ConsoleServer::start(&program, &[]);
    for page in ["/jobs/lost".to_owned(), format!("/letters/{id}")] {
        let page = server.page(&page).await;
        assert!(page.contains(no_end), "{page}");
    }
    // A dead letter that was sent just now may still end.
    let now = text(
        &std::process::Command::new("date")
            .args(["-u", "+%FT%T.0000000Z"])
            .output()
            .expect("a date")
            .stdout,
    );
    program.write(&ledger("lately", now.trim(), &blob));
    let job = program.run(&["jobs", "lately", "--output", "json"]);
    let job: Value = serde_json::from_slice(&job.stdout).expect("JSON");
    assert_eq!((&job["under_way"], &job["unknown"]), (&1.into(), &0.into()));
}
