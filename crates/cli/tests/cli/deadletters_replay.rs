//! Replays of dead letters, with the received events and their receivers. A last-resort queue is
//! moved into the container.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use adapters::machine::Machine;
use aws_sdk_sqs::types::{Message, MessageAttributeValue};
use axum::http::StatusCode;
use delivery::ports::Clock as _;
use local::aws::{LocalAws, LocalAwsConfig, local_clients};
use local::subscriber::{Subscriber, status_sequence};
use serde_json::Value;

use crate::check_stack::cloud_formation;
use crate::console_server::{ConsoleServer, interrupt};
use crate::sample_letters;
use crate::sample_letters::{LETTERS, Sample, TestContainer, text};

/// Starts a container with dead letters, one of them without a subscription, and queues for
/// replays.
async fn start() -> (TestContainer, LocalAws, aws_sdk_sqs::Client, tempfile::TempDir) {
    let (container, data) =
        (TestContainer::folder(), tempfile::tempdir().expect("a folder can be made"));
    container.write(&LETTERS.map(Sample::blob));
    container.write(&[Sample {
        subscription: "_malformed",
        ..sample_letters::sample(9, (20, 9), "")
    }
    .blob()]);
    let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 600);
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    let sqs = aws_sdk_sqs::Client::new(&local_clients(&aws.endpoint()));
    (container, aws, sqs, data)
}

async fn receive(sqs: &aws_sdk_sqs::Client, url: &str) -> Vec<Message> {
    let mut all = Vec::new();
    loop {
        let receive = sqs
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(10)
            .message_attribute_names("All");
        match receive.send().await.expect("the queue answers").messages {
            Some(messages) if !messages.is_empty() => all.extend(messages),
            Some(_) | None => return all,
        }
    }
}

fn attribute(message: &Message, name: &str) -> Option<String> {
    message.message_attributes()?.get(name)?.string_value().map(ToOwned::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_dead_letter_is_sent_to_its_subscription_alone_as_a_new_delivery_with_its_own_event() {
    let (container, aws, sqs, _data) = start().await;
    let queue = aws.queue_url("retry");
    let dry = container.run(&["replay", "--dry-run", "--queue-url", &queue]);
    let exact = "5 dead letters to send again:\n          4  shop/orders/billing\n          1  shop/orders/mail\n";
    assert_eq!(text(&dry.stdout), exact);
    assert!(
        text(&dry.stderr).contains("skipped: 1 dead letter of shop/orders/_malformed"),
        "{}",
        text(&dry.stderr)
    );
    assert!(receive(&sqs, &queue).await.is_empty());

    let done = container.run(&[
        "replay",
        "--yes",
        "--queue-url",
        &queue,
        "--name",
        "one",
        "--rate",
        "100/s",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).ends_with("job one: 5 of 5 dead letters sent\n"),
        "{}",
        text(&done.stdout)
    );
    let received = receive(&sqs, &queue).await;
    assert_eq!(received.len(), 5);
    for message in &received {
        let event: Value =
            serde_json::from_str(message.body().unwrap_or_default()).expect("an event");
        let letter = LETTERS
            .iter()
            .find(|letter| event["id"] == format!("order-{}", letter.number))
            .expect("a dead letter");
        let blob: Value = serde_json::from_str(&letter.blob().1).expect("JSON");
        assert_eq!(event, blob["event"]);
        // With this topic, a message sent to an events queue by mistake is not published.
        assert_eq!(attribute(message, "topic").as_deref(), Some("_/replay"));
        let delivery: Value =
            serde_json::from_str(&attribute(message, "delivery").expect("the attribute"))
                .expect("JSON");
        assert_eq!(delivery["subscription"], format!("shop/orders/{}", letter.subscription));
        assert_eq!(
            (&delivery["attempts"], &delivery["history"]),
            (&0.into(), &Value::Array(Vec::new()))
        );
        assert_ne!(delivery["id"], letter.id());
    }
    assert_eq!(receive(&sqs, &queue).await.len(), 0);

    check_left_out(&container, &queue);
    aws.stop().await;
}

/// Checks that the next replay leaves out sent dead letters, unless every state is selected.
fn check_left_out(container: &TestContainer, queue: &str) {
    let all = ["list", "--output", "ndjson", "--subscription", "mail", "--state", "all"];
    let listed = text(&container.run(&all).stdout);
    assert!(listed.contains(r#""state":"replaying","replayed":"one""#), "{listed}");
    let again = container.run(&["replay", "--dry-run", "--state", "all", "order-5"]);
    assert!(
        text(&again.stdout).contains("1 of them were already replayed"),
        "{}",
        text(&again.stdout)
    );
    let left_out = container.run(&["replay", "--dry-run", "order-5"]);
    assert_eq!(left_out.status.code(), Some(1));
    assert!(
        text(&left_out.stderr).contains("omitted: 1 replaying; use --state all to include them"),
        "{}",
        text(&left_out.stderr)
    );
    let taken = container.run(&[
        "replay",
        "--yes",
        "--state",
        "all",
        "--queue-url",
        queue,
        "--name",
        "one",
    ]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(text(&taken.stderr).contains("--resume one"), "{}", text(&taken.stderr));
}

/// Returns CloudFormation's description of a stack with these queues.
fn stack_with(aws: &LocalAws) -> String {
    let output = |(name, queue)| {
        let url = aws.queue_url(queue);
        format!("<member><OutputKey>{name}</OutputKey><OutputValue>{url}</OutputValue></member>")
    };
    let outputs = [
        ("EventsQueueUrl", "events"),
        ("RetryQueueUrl", "retry"),
        ("DeadLetterQueueUrl", "dead-letter"),
    ];
    let outputs = outputs.map(output);
    format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>live</StackName>\
         <Outputs>{}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>",
        outputs.concat()
    )
}

/// Returns the command of a replay in the stack that `endpoint` describes, with the queues of the
/// local AWS.
fn replay_of(container: &TestContainer, aws: &LocalAws, endpoint: &str, more: &[&str]) -> Command {
    let mut command = container.command(&[&["replay", "--yes", "--stack", "live"], more].concat());
    command.env("AWS_ENDPOINT_URL_CLOUDFORMATION", endpoint).env("AWS_REGION", "eu-west-1");
    command.env("AWS_ENDPOINT_URL_SQS", aws.endpoint());
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_stack_the_retry_queue_takes_deliveries_and_the_events_queue_events() {
    let (container, aws, sqs, _data) = start().await;
    let endpoint = cloud_formation("200 OK", stack_with(&aws));
    let replay = |more: &[&str]| {
        let done = replay_of(&container, &aws, &endpoint, more).output().expect("the program runs");
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    };
    replay(&["order-5"]);
    assert_eq!(receive(&sqs, &aws.queue_url("retry")).await.len(), 1);
    assert_eq!(receive(&sqs, &aws.queue_url("events")).await.len(), 0);
    replay(&["order-5", "--state", "all", "--to-topic", "shop/again"]);
    assert_eq!(receive(&sqs, &aws.queue_url("events")).await.len(), 1);
    assert_eq!(receive(&sqs, &aws.queue_url("retry")).await.len(), 0);
    aws.stop().await;
}

#[test]
fn the_dead_letters_of_a_bucket_are_not_sent_to_this_machine_unless_that_is_named() {
    let container = TestContainer::bucket("http://127.0.0.1:1", "s3://letters");
    for more in
        [&["replay", "--yes"][..], &["replay", "--yes", "--to-topic", "shop/again"], &["rescue"]]
    {
        let done = container.run(more);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains("--stack") && said.contains("--queue-url"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_gets_the_bare_event_even_of_dead_letters_without_a_subscription() {
    let (container, aws, sqs, _data) = start().await;
    let queue = aws.queue_url("events");
    let done = container.run(&[
        "replay",
        "--yes",
        "--queue-url",
        &queue,
        "--to-topic",
        "shop/again",
        "--status",
        "503",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let received = receive(&sqs, &queue).await;
    assert_eq!(received.len(), 4);
    for message in &received {
        assert_eq!(attribute(message, "topic").as_deref(), Some("shop/again"));
        assert_eq!(attribute(message, "delivery"), None);
    }
    aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_gets_the_events_by_http_and_a_resume_retries_what_it_refuses() {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    let subscriber = Subscriber::listen(0).await.expect("a port");
    let url = format!("http://127.0.0.1:{}/again", subscriber.port().expect("a port"));
    let seen: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let answers =
        status_sequence(vec![StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK], 0);
    tokio::spawn(subscriber.serve(answers, move |received, _| {
        let id = received.headers["webhook-id"].to_str().expect("text").to_owned();
        keep.lock()
            .expect("nobody panicked")
            .push((id, String::from_utf8_lossy(&received.body).into_owned()));
    }));
    let done = container.run(&["replay", "--yes", "--to-url", &url, "--name", "http"]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(
        said.contains("4 of 5 dead letters sent")
            && said.contains(
                "1 were refused; to try again: lastmile deadletters replay --container letters \
                 --resume http"
            ),
        "{said}"
    );
    // Anybody with write access to the container could have changed the ledger.
    let asked = container.run(&["replay", "--yes", "--resume", "http"]);
    assert_eq!(asked.status.code(), Some(2), "{}", text(&asked.stderr));
    assert!(text(&asked.stderr).contains(&format!("confirm it with --to-url {url}")));
    let page = ConsoleServer::start(&container, &[]);
    assert!(page.page("/jobs/http").await.contains(&format!("name=\"address\" value=\"{url}\"")));
    let token = page.token().await;
    let unconfirmed = page.post("/jobs/http/resume", &[("token", &token)]).send().await;
    assert_eq!(unconfirmed.expect("an answer").status(), 400);
    let done = container.run(&["replay", "--yes", "--resume", "http", "--to-url", &url]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let mut ids: Vec<String> =
        seen.lock().expect("nobody panicked").iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids.len(), 6);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_job_says_how_to_continue_and_keeps_its_rate_and_its_note() {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    let subscriber = Subscriber::listen(0).await.expect("a port");
    let url = format!("http://127.0.0.1:{}/slow", subscriber.port().expect("a port"));
    let (sent, mut first) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(subscriber.serve(status_sequence(vec![StatusCode::OK], 0), move |_, _| {
        sent.send(()).expect("the test waits");
    }));
    // At one per minute, the first chunk is still waiting when the signal arrives.
    let arguments =
        ["--yes", "--to-url", &url, "--name", "slow", "--rate", "1/m", "--note", "for ada"];
    let mut job = container.command(&[&["replay"][..], &arguments].concat());
    let job = job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let first = tokio::time::timeout(std::time::Duration::from_secs(60), first.recv()).await;
    first.expect("it comes in time").expect("the first is sent");
    interrupt(&job);
    let done = job.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    let expected = "job slow: 1 of 5 dead letters sent\n4 were not sent yet; to continue: lastmile \
                    deadletters replay --container letters --resume slow";
    assert!(said.contains(expected), "{said}");
    let jobs = text(&container.run(&["jobs", "--output", "json"]).stdout);
    assert!(jobs.contains("\"rate\":\"1/m\"") && jobs.contains("\"note\":\"for ada\""), "{jobs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_until_it_is_quiet_also_sends_what_comes_later() {
    let (container, aws, sqs, _data) = start().await;
    let queue = aws.queue_url("retry");
    let arguments =
        ["replay", "--yes", "--queue-url", &queue, "--name", "q", "--until-quiet", "12s"];
    let mut job = container.command(&arguments);
    let job = job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut received = receive(&sqs, &queue).await;
    for _ in 0..1_000 {
        if received.len() == 5 {
            break;
        }
        Machine.sleep(50).await;
        received.extend(receive(&sqs, &queue).await);
    }
    container.write(&[sample_letters::sample(7, (20, 9), "").blob()]);
    let done = job.wait_with_output().expect("it ends");
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("no dead letter arrived for 12 s; finished after 2 jobs"), "{said}");
    received.extend(receive(&sqs, &queue).await);
    assert_eq!(received.len(), 6);
    aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_until_it_is_quiet_also_waits_for_the_dead_letter_queue_of_the_stack() {
    let (container, aws, sqs, _data) = start().await;
    let queue = aws.queue_url("dead-letter");
    let send = sqs.send_message().queue_url(&queue).message_body("late");
    send.send().await.expect("it is sent");
    let endpoint = cloud_formation("200 OK", stack_with(&aws));
    let mut job = replay_of(&container, &aws, &endpoint, &["--name", "q", "--until-quiet", "1s"]);
    let mut job = job.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(job.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let waits = said.find(|line| line.contains("dead-letter queue")).expect("it waits");
    assert!(waits.contains("about 1 message;") && waits.contains("up to 1 h"), "{waits}");
    // Stores the dead letter and then deletes the message, as `deadletter` does.
    let late = receive(&sqs, &queue).await.remove(0);
    container.write(&[sample_letters::sample(7, (20, 9), "").blob()]);
    let receipt = late.receipt_handle().expect("a receipt");
    sqs.delete_message().queue_url(&queue).receipt_handle(receipt).send().await.expect("deleted");
    let rest = said.collect::<Vec<_>>().join("\n");
    assert_eq!(job.wait().expect("it ends").code(), Some(0), "{rest}");
    assert!(rest.contains("no dead letter arrived for 1 s; finished after 2 jobs"), "{rest}");
    assert_eq!(receive(&sqs, &aws.queue_url("retry")).await.len(), 6);
    aws.stop().await;
}

/// The credentials are not in the ledger either, so a resume requires the URL again.
#[tokio::test(flavor = "multi_thread")]
async fn the_credentials_of_a_url_are_neither_printed_nor_stored() {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    let subscriber = Subscriber::listen(0).await.expect("a port");
    let shown = format!("http://127.0.0.1:{}/again", subscriber.port().expect("a port"));
    let url = format!("{}?code=hush-query", shown.replace("//", "//user:hush-password@"));
    let answers = status_sequence(vec![StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK], 0);
    tokio::spawn(subscriber.serve(answers, |_, _| ()));
    let run = |more: &[&str], code| {
        let done = container.run(&[&["replay"], more].concat());
        let said = format!("{}{}", text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(code), "{more:?}: {said}");
        assert!(!said.contains("hush"), "{more:?}: {said}");
        said
    };
    let counted = run(&["--dry-run", "--to-url", &url], 0);
    assert!(counted.contains(&format!("to post to {shown}, from:")), "{counted}");
    run(&["--yes", "--to-url", &url, "--name", "secret"], 1);
    let plan = container.path().join("_replays/secret/plan.ndjson");
    let plan = std::fs::read_to_string(plan).expect("a plan");
    assert!(plan.contains(&shown) && !plan.contains("hush"), "{plan}");
    let jobs = text(&container.run(&["jobs", "--output", "json"]).stdout);
    assert!(jobs.contains(&format!("\"to\":\"{shown}\"")), "{jobs}");
    let server = ConsoleServer::start(&container, &[]);
    let page = server.page("/jobs/secret").await;
    assert!(page.contains("full --to-url") && !page.contains("/resume"), "{page}");
    let resume = ["--yes", "--resume", "secret"];
    let asked = run(&resume, 2);
    assert!(asked.contains(&shown) && asked.contains("the full --to-url"), "{asked}");
    let elsewhere = run(&[&resume[..], &["--to-url", "http://127.0.0.1:1/again"]].concat(), 2);
    assert!(elsewhere.contains(&format!("sends to {shown}, not to")), "{elsewhere}");
    let sent = run(&[&resume[..], &["--to-url", &url]].concat(), 0);
    assert!(sent.contains("5 of 5 dead letters sent"), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_leaves_out_what_another_job_has_sent_or_a_person_has_dismissed_since() {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    let subscriber = Subscriber::listen(0).await.expect("a port");
    let url = format!("http://127.0.0.1:{}/again", subscriber.port().expect("a port"));
    let statuses = [vec![StatusCode::INTERNAL_SERVER_ERROR; 5], vec![StatusCode::OK; 9]].concat();
    tokio::spawn(subscriber.serve(status_sequence(statuses, 0), |_, _| {}));
    let replay =
        |more: &[&str]| container.run(&[&["replay", "--yes", "--to-url", &url], more].concat());
    let first = replay(&["--name", "first"]);
    assert_eq!(first.status.code(), Some(1), "{first:?}");
    let dismissed = container.run(&["dismiss", "order-1", "--note", "refunded"]);
    assert_eq!(dismissed.status.code(), Some(0), "{dismissed:?}");
    let second = replay(&["order-2", "--name", "second"]);
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    let warned = "also in the plan of the unfinished job first: 1 dead letter";
    assert!(text(&second.stderr).contains(warned), "{second:?}");
    let resumed = text(&replay(&["--resume", "first"]).stdout);
    assert!(resumed.contains("3 of 5 dead letters sent"), "{resumed}");
    assert!(resumed.contains("2 were omitted, because another job sent them"), "{resumed}");
    let dismissed = container.run(&["list", "--state", "dismissed"]);
    assert!(text(&dismissed.stdout).contains("order-1"), "{dismissed:?}");
    let taken_back = container.run(&["undismiss", "--state", "all", "--since", "2026-11-01"]);
    assert_eq!(text(&taken_back.stdout), "1 dead letter no longer dismissed\n", "{taken_back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_sends_nothing_and_the_dead_letters_stay_open() {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    let (key, blob) = LETTERS[0].blob();
    container.write(&[(key.replace("shop/orders/billing", "shop/orders/copied"), blob)]);
    let done = container.run(&["replay", "--yes", "--to-url", "http://127.0.0.1:1/x"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    // A ledger identifies dead letters by their ids.
    assert!(
        text(&done.stderr).contains("skipped: 1 dead letter with the id of another dead letter")
    );
    let open = container.run(&["list", "--output", "ndjson"]);
    assert_eq!(text(&open.stdout).lines().count(), 6, "{open:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_sent_is_named_and_skipped_on_request() {
    let (container, aws, sqs, _data) = start().await;
    let queue = aws.queue_url("retry");
    container.run(&["replay", "--yes", "--queue-url", &queue, "--name", "cut"]);
    receive(&sqs, &queue).await;
    // The ledger looks as if the job had been killed between sending and writing it.
    let ledger = container.path().join("_replays/cut");
    let chunk = std::fs::read_to_string(ledger.join("1.ndjson")).expect("a chunk");
    std::fs::write(ledger.join("1.ndjson"), chunk.replacen("\"sent\"", "\"intent\"", 2))
        .expect("the chunk can be written");
    std::fs::remove_file(ledger.join("done.ndjson")).expect("the end can be removed");
    let dry = container.run(&["replay", "--dry-run", "--resume", "cut"]);
    assert!(
        text(&dry.stdout).contains("1 uncertain chunk: 1; their 2 dead letters may have been sent"),
        "{}",
        text(&dry.stdout)
    );
    let replaying = container.run(&["list", "--state", "replaying", "--output", "ndjson"]);
    assert_eq!(text(&replaying.stdout).lines().count(), 5, "{replaying:?}");
    let skipped = container.run(&["replay", "--yes", "--resume", "cut", "--skip-uncertain"]);
    assert_eq!(skipped.status.code(), Some(0), "{}", text(&skipped.stderr));
    assert!(
        text(&skipped.stdout).contains("2 may have been sent before, and were skipped"),
        "{}",
        text(&skipped.stdout)
    );
    assert!(receive(&sqs, &queue).await.is_empty());
    aws.stop().await;
}

/// Anybody with write access to the container can write any text as a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_with_a_short_time_can_be_shown() {
    let (container, aws, ..) = start().await;
    container.run(&["replay", "--yes", "--queue-url", &aws.queue_url("retry"), "--name", "short"]);
    aws.stop().await;
    let ledger = container.path().join("_replays/short");
    for at in ["", "ö", "2026-11-20T0"] {
        for file in std::fs::read_dir(&ledger).expect("a ledger") {
            let path = file.expect("a file").path();
            let lines = std::fs::read_to_string(&path).expect("text");
            let with_time = |line: &str| {
                let mut line: Value = serde_json::from_str(line).expect("JSON");
                if line.get("at").is_some() {
                    line["at"] = at.into();
                }
                format!("{line}\n")
            };
            let lines: String = lines.lines().map(with_time).collect();
            std::fs::write(&path, lines).expect("it can be written");
        }
        let server = ConsoleServer::start(&container, &[]);
        let page = server.page("/jobs/short").await;
        assert!(page.contains("dead letters"), "{page}");
        assert!(server.page("/jobs").await.contains("/jobs/short"));
        for command in [&["jobs"][..], &["list"], &["replay", "--resume", "short", "--dry-run"]] {
            let done = container.run(command);
            assert_eq!(done.status.code(), Some(0), "{command:?}: {}", text(&done.stderr));
        }
        let shown = container.run(&["show", &LETTERS[0].id().to_string()]);
        assert!(text(&shown.stdout).contains("by the job short"), "{}", text(&shown.stderr));
    }
}

/// A background program, ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_demo_leaves_is_delivered_once_each_while_dev_and_subscriber_run() {
    let container = TestContainer::folder();
    let demo =
        container.lastmile(&["demo"]).stdout(Stdio::null()).status().expect("the program runs");
    assert!(demo.success());
    let deadletters = |arguments: &[&str]| {
        let output = container
            .lastmile(&[&["deadletters"], arguments].concat())
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for verb in [
        &["list"][..],
        &["why"],
        &["show", "order-1"],
        &["why", "--by", "subscription"],
        &["replay", "--dry-run"],
    ] {
        let said = deadletters(verb);
        assert!(said.contains("shop/orders/gone") || said.contains("/gone "), "{verb:?}: {said}");
    }
    let start = |arguments: &[&str]| {
        Running(
            container
                .lastmile(arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts"),
        )
    };
    let mut subscriber = start(&["subscriber", "--port", "9180"]);
    let mut dev =
        start(&["dev", "--port", "0", "--aws-port", "0", "-f", ".lastmile/subscriptions.yaml"]);
    let mut output = BufReader::new(dev.0.stdout.take().expect("it is piped"));
    let mut ready = String::new();
    output.read_line(&mut ready).expect("text");
    let queue = ready.split([' ', ';']).find(|word| word.ends_with("/events")).expect("the queue");
    let retry_queue = queue.replace("/events", "/retry");
    let replayed = deadletters(&["replay", "--yes", "--queue-url", &retry_queue]);
    assert!(replayed.contains("8 of 8 dead letters sent"), "{replayed}");
    let received = BufReader::new(subscriber.0.stdout.take().expect("it is piped"))
        .lines()
        .map(|line| line.expect("text"));
    let mut posts: Vec<String> =
        received.filter(|line| line.starts_with(['{', '['])).take(8).collect();
    posts.sort();
    let pairs = posts.chunks(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(pairs, 4, "each of four events for two subscriptions: {posts:?}");
}

#[test]
fn a_list_that_follows_shows_what_matches_and_is_stored_while_it_runs() {
    let container = TestContainer::folder();
    container.write(&[LETTERS[0].blob()]);
    let arguments = ["list", "--follow", "--every", "PT0.1S", "--subscription", "billing"];
    let mut command = container.command(&arguments);
    let mut list =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut said = BufReader::new(list.stderr.take().expect("it is piped")).lines();
    assert!(said.next().expect("a line").expect("text").contains("until Ctrl-C"));
    // The dead letters are stored now, in the folder of this hour.
    let now = delivery::time::moment::rfc3339(Machine.now_ms());
    let text = LETTERS[3].blob().1.replace("2026-11-20T10:03:07.0000000Z", &now);
    let hour = delivery::time::moment::hour_folder(Machine.now_ms());
    let at = |subscription: &str, number: usize| {
        format!("shop/orders/{subscription}/{hour}/{}.json", LETTERS[number].id())
    };
    let other = text.replace(&LETTERS[3].id(), &LETTERS[2].id()).replace("/billing", "/mail");
    container.write(&[(at("mail", 2), other.replace("order-4", "order-of-mail"))]);
    container.write(&[(at("billing", 3), text)]);
    let shown = BufReader::new(list.stdout.take().expect("it is piped")).lines().take(2);
    let shown: Vec<String> = shown.map(|line| line.expect("text")).collect();
    assert!(shown[0].contains("event order-1") && shown[1].contains("event order-4"), "{shown:?}");
    list.kill().expect("it runs");
    list.wait().expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_resort_queue_is_emptied_into_the_container() {
    let (container, aws, sqs, _data) = start().await;
    let (queue, events) = (aws.queue_url("last-resort"), aws.queue_url("events"));
    let string = |value: &str| {
        MessageAttributeValue::builder()
            .data_type("String")
            .string_value(value)
            .build()
            .expect("the type is set")
    };
    // The message was redriven by its queue: it has no `deadletter` attribute, and its body is an
    // event.
    let send =
        sqs.send_message().queue_url(&queue).message_attributes("topic", string("shop/orders"));
    send.message_body(r#"{"specversion":"1.0","id":"lost","source":"s","type":"t"}"#)
        .send()
        .await
        .expect("sent");
    let rescued = container.run(&["rescue", "--queue-url", &queue]);
    assert_eq!(rescued.status.code(), Some(0), "{}", text(&rescued.stderr));
    assert_eq!(text(&rescued.stdout), "1 dead letter rescued to letters, 0 left in the queue\n");
    let shown = container.run(&["show", "lost"]);
    assert!(text(&shown.stdout).contains("ProcessingFailed"), "{}", text(&shown.stdout));
    assert_eq!(container.run(&["rescue", "--queue-url", &queue]).status.code(), Some(1));
    assert!(receive(&sqs, &events).await.is_empty());
    aws.stop().await;
}
