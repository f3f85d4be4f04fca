//! Twenty thousand dead letters: the cost of reading them, and a replay that is killed three times.
//!
//! These are the slowest tests of the command line, with about half a minute. `--nocapture` prints
//! the figures. The effect of the cache is measured by hand: `--ignored first_and_second`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use futures::future::join_all;
use local::aws::{LocalAws, LocalAwsConfig, local_clients};
use serde_json::Value;

use crate::console_server::ConsoleServer;
use crate::sample_letters;
use crate::sample_letters::{TestContainer, lines, requests, text};

const MANY: u32 = 20_000;
const SUBSCRIPTIONS: u32 = 4;
/// The most requests that `list --limit 20` may make.
const REQUESTS_MAX: u64 = 61;
/// The numbers of chunks in the ledger at which a replay is killed. The whole ledger has 2,000.
const KILLED_AT: [usize; 3] = [200, 800, 1_400];
/// A limit above the duration of any of these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the id of a dead letter. Ids are scattered, like real ones.
fn id(number: u32) -> String {
    format!("{:08x}-0000-5000-8000-{number:012x}", number.wrapping_mul(2_654_435_761))
}

/// Writes this many dead letters, spread over these hours and the subscriptions.
fn write(folder: &Path, count: u32, hours: u32) {
    let blobs = (0..count).map(|number| {
        let (hour, subscription) = (number % hours, number / hours % SUBSCRIPTIONS);
        let (day, hour) = (1 + hour / 24, hour % 24);
        let at = format!("2026-11-{day:02}T{hour:02}:{:02}:{:02}.0000000Z", number / 60 % 60, number % 60);
        let status = [500, 503, 504][number as usize % 3];
        let id = id(number);
        let text = format!(
            r#"{{"event":{{"specversion":"1.0","id":"{number}","source":"s","type":"t"}},"deadletterProperties":{{"deadletterreason":"Maximum delivery attempts was exceeded.","deliveryattempts":1,"deliveryresult":"Busy","publishutc":"{at}","deliveryattemptutc":"{at}","deadletterid":"{id}","deadletterreasoncode":"MaxDeliveryAttemptsExceeded","lasthttpstatuscode":{status},"destination":"https://s{subscription}.example.com/","lastresponse":"no","history":[{{"at":"{at}","outcome":"Busy","status":{status},"durationms":3}}]}}}}"#
        );
        (format!("shop/orders/s{subscription}/2026/11/{day}/{hour}/{id}.json"), text)
    });
    sample_letters::write(folder, &blobs.collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_of_many_cost_few_requests() {
    for (hours, range) in [(24 * 28, "672 hours"), (1, "one hour")] {
        let data = tempfile::tempdir().expect("a folder can be made");
        let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30);
        let aws = LocalAws::start(config).await.expect("the local AWS starts");
        write(&data.path().join("dead-letters"), MANY, hours);
        let container = TestContainer::bucket(&aws.endpoint(), "s3://dead-letters");
        let output = container.run(&["list", "--limit", "20", "--output", "ndjson"]);
        let found = lines(&output);
        assert_eq!(found.len(), 20, "{}", text(&output.stderr));
        println!("list --limit 20 of {MANY} letters in {range}: {}", text(&output.stderr).trim());
        assert!(requests(&output) <= REQUESTS_MAX, "{}", text(&output.stderr));
        let ended: Vec<&str> =
            found.iter().filter_map(|line| line["decided_at"].as_str()).collect();
        let newest_hour = format!("2026-11-{:02}T{:02}", 1 + (hours - 1) / 24, (hours - 1) % 24);
        assert!(
            ended.is_sorted_by(|a, b| a >= b) && ended[0].starts_with(&newest_hour),
            "{ended:?}"
        );
        aws.stop().await;
    }
}

/// Runs a command. Returns its peak memory in MB, and its output.
fn with_memory(container: &TestContainer, arguments: &[&str]) -> (u64, Output) {
    let mut command = container.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let peak = std::thread::spawn(move || {
        let mut peak_kb = 0;
        // Linux removes the lines about memory when the process ends.
        while let Ok(text) = std::fs::read_to_string(&status)
            && let Some(line) = text.lines().find(|line| line.starts_with("VmHWM:"))
        {
            let digits: String = line.chars().filter(char::is_ascii_digit).collect();
            peak_kb = digits.parse().unwrap_or(peak_kb);
            std::thread::sleep(Duration::from_millis(5));
        }
        peak_kb / 1_000
    });
    let output = child.wait_with_output().expect("it ends");
    (peak.join().expect("the thread does not panic"), output)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures: 50,000 dead letters, some minutes"]
async fn first_and_second_reads_of_fifty_thousand() {
    let data = tempfile::tempdir().expect("a folder can be made");
    let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30);
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    write(&data.path().join("dead-letters"), 50_000, 24 * 28);
    let queue = aws.queue_url("retry");
    for verb in [&["why"][..], &["replay", "--dry-run", "--queue-url", &queue]] {
        let container = TestContainer::bucket(&aws.endpoint(), "s3://dead-letters");
        let (mut printed, mut asked) = (Vec::new(), Vec::new());
        for run in ["first", "second"] {
            let (peak_mb, output) = with_memory(&container, verb);
            assert!(output.status.success(), "{}", text(&output.stderr));
            println!("{run} {}: {peak_mb} MB; {}", verb[0], text(&output.stderr).trim());
            printed.push(text(&output.stdout));
            asked.push(requests(&output));
        }
        assert_eq!(printed[0], printed[1]);
        assert_eq!(asked[0] - asked[1], 50_000, "{asked:?}");
    }
    aws.stop().await;
}

/// Returns the number of storage requests that a page shows.
fn asked(page: &str) -> u64 {
    let before = page.split(" storage requests so far").next().unwrap_or_default();
    let number = before.rsplit(['>', ' ']).next().unwrap_or_default();
    number.replace(',', "").parse().unwrap_or_else(|_| panic!("no number of requests in {page}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_reads_many_dead_letters_once_and_shows_them_from_memory() {
    let container = TestContainer::folder();
    write(&container.path(), MANY, 24 * 28);
    let server = ConsoleServer::start(&container, &[]);
    let begun_ms = Machine.now_ms();
    let mut page = server.page("/letters").await;
    let read_ms = Machine.now_ms();
    assert!(page.contains("20,000 dead letters"), "{page}");
    println!(
        "page of {MANY} letters: read in {} ms with {} storage requests",
        read_ms - begun_ms,
        asked(&page)
    );
    let before = asked(&page);
    for path in [
        "/",
        "/letters",
        "/letters?status=503",
        "/letters?subscription=s1&page=40",
        "/replay?status=503",
    ] {
        let began_ms = Machine.now_ms();
        page = server.page(path).await;
        println!("{path}: {} ms, {} KB", Machine.now_ms() - began_ms, page.len() / 1_000);
        // The page shows loaded data for half a minute, which began before the page was received.
        // Only a replay requires newer data.
        let is_fresh = Machine.now_ms() - read_ms < 15_000 && !path.starts_with("/replay");
        assert!(
            !is_fresh || asked(&page) == before,
            "{path} asked {} times",
            asked(&page) - before
        );
    }
    assert!(page.contains("6,667 dead letters to send"), "{page}");
}

/// Starts a replay and kills it when its ledger has this many chunks, or waits for its end without
/// a number. Returns the output.
fn replay(container: &TestContainer, arguments: &[&str], kill_at: Option<usize>) -> String {
    let mut command = container.command(arguments);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
    let ledger = container.path().join("_replays/big");
    let waits = TEST_TIMEOUT.as_millis() / 5;
    for _ in 0..waits {
        let chunks =
            std::fs::read_dir(&ledger).map_or(0, |entries| entries.count().saturating_sub(1));
        if kill_at.is_some_and(|at| chunks >= at) {
            child.kill().expect("it runs"); // SIGKILL
            break;
        }
        if child.try_wait().expect("it can be asked").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait().expect("it ends");
    assert_eq!(status.success(), kill_at.is_none(), "{arguments:?}");
    let mut said = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut said).expect("text");
    said
}

/// Returns the chunks that a resume reports as uncertain.
fn named(said: &str) -> BTreeSet<usize> {
    let Some((_, rest)) = said.split_once(" uncertain chunk") else { return BTreeSet::new() };
    let rest = rest.trim_start_matches(['s', ':', ' ']);
    let numbers = rest.split(';').next().unwrap_or_default().split(' ');
    numbers.map(|number| number.parse().expect("a number of a chunk")).collect()
}

/// Receives messages until the queue is empty. Returns the ids of each event and its delivery.
async fn take(sqs: aws_sdk_sqs::Client, url: String) -> Vec<(String, String)> {
    let mut taken = Vec::new();
    loop {
        let receive = sqs
            .receive_message()
            .queue_url(&url)
            .max_number_of_messages(10)
            .message_attribute_names("All");
        let messages =
            receive.send().await.expect("the queue answers").messages.unwrap_or_default();
        if messages.is_empty() {
            return taken;
        }
        taken.extend(messages.iter().map(|message| {
            let event: Value =
                serde_json::from_str(message.body().unwrap_or_default()).expect("an event");
            let attribute = &message.message_attributes().expect("attributes")["delivery"];
            let delivery: Value =
                serde_json::from_str(attribute.string_value().expect("text")).expect("JSON");
            (
                event["id"].as_str().expect("an id").to_owned(),
                delivery["id"].as_str().expect("an id").to_owned(),
            )
        }));
    }
}

/// Returns the deliveries of each received event.
async fn drain(aws: &LocalAws) -> HashMap<String, Vec<String>> {
    let sqs = aws_sdk_sqs::Client::new(&local_clients(&aws.endpoint()));
    let takers = (0..8).map(|_| tokio::spawn(take(sqs.clone(), aws.queue_url("retry"))));
    let mut came: HashMap<String, Vec<String>> = HashMap::new();
    for taken in join_all(takers).await {
        for (event, delivery) in taken.expect("no taker panics") {
            came.entry(event).or_default().push(delivery);
        }
    }
    came
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_killed_three_times_sends_every_dead_letter_and_repeats_only_what_it_named() {
    let container = TestContainer::folder();
    write(&container.path(), MANY, 24 * 28);
    let sums = container.run(&["why", "--by", "hour", "--output", "json"]);
    let counted: Value = serde_json::from_slice(&sums.stdout).expect("JSON");
    assert_eq!(counted["letters"], MANY);
    println!("sums: {}", text(&sums.stderr).trim());
    assert!(text(&sums.stderr).starts_with("20,000 blobs to read\n"));

    let data = tempfile::tempdir().expect("a folder can be made");
    let aws =
        LocalAws::start(LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 3_600)).await;
    let aws = aws.expect("the local AWS starts");
    let queue = aws.queue_url("retry");
    let mut uncertain = BTreeSet::new();
    let began_ms = Machine.now_ms();
    let start = ["replay", "--yes", "--queue-url", &queue, "--name", "big", "--rate", "100000/s"];
    let mut arguments = start.to_vec();
    for kill_at in KILLED_AT.into_iter().map(Some).chain([None]) {
        let said = replay(&container, &arguments, kill_at);
        println!("{}", said.trim());
        println!("after {} ms", Machine.now_ms() - began_ms);
        uncertain.extend(named(&said));
        arguments = vec!["replay", "--yes", "--resume", "big"];
    }
    let came = drain(&aws).await;
    println!("all received after {} ms", Machine.now_ms() - began_ms);
    assert_eq!(came.len(), MANY as usize, "every letter came");
    let plan = std::fs::read_to_string(container.path().join("_replays/big/plan.ndjson"))
        .expect("the plan");
    let id_of = |line: &'_ str| line[line.len() - 43..line.len() - 7].to_owned();
    let lines = plan.lines().skip(1).enumerate();
    let chunk_of: BTreeMap<String, usize> =
        lines.map(|(at, line)| (id_of(line), at / 10 + 1)).collect();
    let mut repeats = 0;
    for (event, deliveries) in came.iter().filter(|(_, deliveries)| deliveries.len() > 1) {
        repeats += deliveries.len() - 1;
        assert!(
            deliveries.iter().all(|delivery| *delivery == deliveries[0]),
            "a repeat has the same delivery id"
        );
        let chunk = chunk_of[id(event.parse().expect("a number")).as_str()];
        assert!(
            uncertain.contains(&chunk),
            "{event} of chunk {chunk} was sent again, and {uncertain:?} were named"
        );
    }
    println!("{repeats} repeats, all within the uncertain chunks {uncertain:?}");
    let jobs: Value =
        serde_json::from_slice(&container.run(&["jobs", "--output", "json"]).stdout).expect("JSON");
    assert_eq!((&jobs[0]["sent"], &jobs[0]["done"]), (&MANY.into(), &true.into()));
    println!("checked after {} ms", Machine.now_ms() - began_ms);
    drop(aws); // does not wait for messages that its queues still hold
}
