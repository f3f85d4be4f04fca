//! The output of `dev`: attempts as text, saves of the subscriptions, and JSON for tools.

use std::path::Path;

use serde_json::Value;

use crate::console_live_server::PageStream;
use crate::programs::{self, Running, lastmile, receiver, run, word};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const EVENT: &str = r#"{"specversion":"1.0","id":"order-1","source":"s","type":"order.created"}"#;
/// An address without a server. Its credentials must not be shown.
const NOWHERE: &str = "http://user:passw0rd@127.0.0.1:1/in?code=s3cr3t";

fn save(folder: &Path, url: &str) {
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"{url}\"}}, retry: {{jitterPercent: 0, schedule: {{kind: constant, delay: PT1H}}}}}}\n"
    );
    programs::save(&folder.join("s.yaml"), &document);
    std::fs::write(folder.join("event.json"), EVENT).expect("a file can be written");
}

fn dev(folder: &Path, options: &[&str]) -> Running {
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "-f", "s.yaml"];
    Running::start(lastmile(folder, &[&arguments[..], options].concat()))
}

fn publish(folder: &Path, queue: &str) {
    let arguments = ["publish", "--queue-url", queue, "--topic", "shop/orders", "event.json"];
    assert_eq!(run(folder, &arguments), ("1 accepted, 0 refused\n".to_owned(), Some(0)));
}

/// Returns the URL of the events queue, and the line with the next command, both from the first
/// lines.
fn queue_of(dev: &mut Running) -> (String, String) {
    let ready = dev.line_with("ready:");
    let queue = word(&ready.replace("queue ", "queue="), "queue=").replace("queue=", "");
    (queue, dev.line_with("lastmile publish"))
}

/// The next attempt is due an hour after the last one. On a busy machine a part of the hour has
/// passed before the line is printed.
fn is_in_an_hour(text: &str) -> bool {
    text == "retry in 1 h" || text.starts_with("retry in 59 min ")
}

#[test]
fn an_attempt_is_told_with_its_destination_its_cause_and_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    save(folder.path(), NOWHERE);
    let mut running = dev(folder.path(), &[]);
    let (queue, next) = queue_of(&mut running);
    assert_eq!(
        next.trim(),
        format!("lastmile publish --queue-url {queue} --topic shop/orders --sample cloudevents")
    );
    publish(folder.path(), &queue);
    let attempted = running.line_with("attempt 1");
    let parts: Vec<&str> = attempted.split("  ").collect();
    assert_eq!(
        parts[1..5],
        ["shop/orders/a", "event order-1", "-> 127.0.0.1:1/in", "attempt 1"],
        "{attempted}"
    );
    assert!(parts[5].starts_with("connection refused (SocketError) in "), "{attempted}");
    assert!(is_in_an_hour(parts[6]), "{attempted}");
    let time: String = parts[0].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(time, "00:00:00.000Z");
    let seen = running.seen();
    assert!(!seen.contains("passw0rd") && !seen.contains("s3cr3t"), "{seen}");
    assert!(!seen.contains('\u{1b}'), "a pipe has no colours: {seen}");
}

#[test]
fn colours_can_be_asked_for() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    save(folder.path(), NOWHERE);
    let mut running = dev(folder.path(), &["--color", "always"]);
    let (queue, _) = queue_of(&mut running);
    publish(folder.path(), &queue);
    let attempted = running.line_with("attempt 1");
    let retry =
        attempted.rsplit("\u{1b}[33m").next().and_then(|rest| rest.strip_suffix("\u{1b}[0m"));
    assert!(retry.is_some_and(is_in_an_hour), "{attempted:?}");
}

#[test]
fn a_saved_file_is_in_use_at_once_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (before, received_before) = receiver(OK);
    let (after, received_after) = receiver(OK);
    save(folder.path(), &before);
    let mut running = dev(folder.path(), &[]);
    let (queue, _) = queue_of(&mut running);
    publish(folder.path(), &queue);
    running.line_with("delivered");

    save(folder.path(), "nowhere");
    let error = running.line_with("s.yaml:4:");
    running.line_with("not reloaded: 1 error; the previous version stays in use");
    assert!(error.contains("error: spec.destination.url"), "{error}");
    publish(folder.path(), &queue);
    running.line_with("delivered");
    assert_eq!(received_before.try_iter().count(), 2);

    programs::save(&folder.path().join("s.yaml"), "");
    running.line_with("s.yaml:1:1: error: the file is empty");
    running.line_with("not reloaded: 1 error; the previous version stays in use");
    publish(folder.path(), &queue);
    running.line_with("delivered");
    assert_eq!(received_before.try_iter().count(), 1);

    save(folder.path(), &after);
    running.line_with("reloaded: 1 subscription, 1 changed");
    publish(folder.path(), &queue);
    let delivered = running.line_with("delivered");
    let host = after.trim_start_matches("http://");
    assert!(delivered.contains(&format!("-> {host}")), "{delivered}");
    assert_eq!((received_before.try_iter().count(), received_after.try_iter().count()), (0, 1));
}

#[test]
fn a_second_one_on_the_same_folder_says_which_one_uses_it_and_a_killed_one_does_not() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    save(folder.path(), NOWHERE);
    let mut first = dev(folder.path(), &[]);
    let ingress =
        word(&first.line_with("ready:"), "http://").replace("/topics/{namespace}/{topic}", "");
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "--file", "s.yaml"];
    let (printed, code) = run(folder.path(), &arguments);
    let expected = format!(
        "another lastmile dev uses the data folder .lastmile, at {ingress}; stop it, or choose \
         another folder with --data DIR"
    );
    assert!(code == Some(1) && printed.contains(&expected), "{printed}");
    let mut other = dev(folder.path(), &["--data", "elsewhere"]);
    other.line_with("ready:");
    // Kills the program, like a crash.
    drop(first);
    dev(folder.path(), &[]).line_with("ready:");
}

#[test]
fn tools_get_one_object_per_line() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    save(folder.path(), NOWHERE);
    let mut running = dev(folder.path(), &["--output", "json"]);
    let json = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let ready = json(&running.line_with("dev.ready"));
    assert_eq!((&ready["level"], &ready["subscriptions"]), (&"INFO".into(), &1.into()));
    publish(folder.path(), ready["events_queue"].as_str().expect("a text"));
    let page =
        ready["console"].as_str().and_then(|page| page.split('/').nth(2)).expect("an address");
    let step = PageStream::open(page, "/stream").step("attempt 1");
    assert_eq!(step["outcome"], "connection refused (SocketError)", "the page shows it too");
    let attempted = json(&running.line_with("delivery.attempted"));
    assert_eq!(attempted["subscription"], "shop/orders/a");
    assert_eq!(attempted["attempt"], 1);
    // Some time may pass between the attempt and its line.
    let wait_ms = attempted["wait_ms"].as_u64().expect("a number");
    assert!((3_000_000..=3_600_000).contains(&wait_ms), "{attempted}");
    assert!(attempted["why"].as_str().expect("a text").contains("refused"), "{attempted}");
    save(folder.path(), "nowhere");
    let broken = json(&running.line_with("dev.broken"));
    assert_eq!(broken["findings"][0]["line"], 4, "{broken}");
    save(folder.path(), "http://127.0.0.1:1/other");
    let reloaded = json(&running.line_with("dev.reloaded"));
    assert_eq!((&reloaded["subscriptions"], &reloaded["changed"]), (&1.into(), &1.into()));
}

#[test]
fn a_dead_letter_that_waits_for_its_delay_is_stored_when_dev_ends() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"{NOWHERE}\"}}, retry: {{maxAttempts: 1}}, deadLetter: {{delay: PT15M}}}}\n"
    );
    programs::save(&folder.path().join("s.yaml"), &document);
    std::fs::write(folder.path().join("event.json"), EVENT).expect("a file can be written");
    let mut running = dev(folder.path(), &[]);
    let (queue, _) = queue_of(&mut running);
    publish(folder.path(), &queue);
    running.line_with("dead-lettered");
    let listed = || run(folder.path(), &["deadletters", "list", "--output", "ndjson"]);
    assert_eq!(listed().1, Some(1), "it waits");
    running.signal("TERM");
    assert_eq!(running.code(), Some(0));
    let (printed, code) = listed();
    assert!(code == Some(0) && printed.contains("\"event_id\":\"order-1\""), "{printed}");
    let seen = running.seen();
    assert!(seen.contains("stopped; the queues were empty"), "{seen}");
}
