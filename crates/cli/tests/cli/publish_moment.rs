//! Delivery at a given time on the command line: `publish --in` and `--at`, and what `check`, `explain` and `convert` say about it.

use std::path::Path;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::moment;

use crate::programs::{lastmile, printed, receiver, run};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const EVENT: &str = r#"{"specversion":"1.0", "id":"1","source":"s","type":"t","data":{"n":1.50}}"#;
const SUBSCRIPTION: &str = "apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: reminder}
spec: {delay: PT2H, destination: {url: 'https://reminder.example.com/in'}}
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn now_ms() -> u64 {
    Machine.now_ms()
}

/// Output and notes of a command, and its code.
fn noted(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = lastmile(folder, arguments).output().expect("the program runs");
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    let (text, code) = printed(&output);
    (text + &notes, code)
}

#[test]
fn events_are_published_for_the_moment_of_the_option() {
    let own = EVENT.replace(r#""id""#, r#""deliverat":"2026-01-01T00:00:00Z","id""#);
    let folder = folder(&[("event.json", EVENT), ("own.json", &own)]);
    let (url, received) = receiver(OK);
    for file in ["event.json", "own.json"] {
        for (option, value) in [("--in", "PT10M"), ("--in", "10m"), ("--at", "")] {
            let begun_ms = now_ms();
            let at = moment::rfc3339(begun_ms + 600_000);
            let value = if value.is_empty() { &at } else { value };
            let arguments = ["publish", "--ingress", &url, option, value, file];
            let (text, code) = noted(folder.path(), &arguments);
            assert_eq!((text.as_str(), code), ("1 accepted, 0 refused\n", Some(0)));
            let request = received.recv().expect("a request");
            let (_, rest) = request.split_once(r#""deliverat":""#).expect("the attribute");
            let (moment, _) = rest.split_once('"').expect("a string");
            let wait_ms = moment::parse(moment).expect("a moment") - begun_ms;
            assert!((600_000..660_000).contains(&wait_ms), "{moment}");
            assert!(request.contains(r#""data":{"n":1.50}"#), "{request}");
            assert_eq!(request.matches("deliverat").count(), 1, "{request}");
        }
    }
}

#[test]
fn an_impossible_moment_is_refused_before_anything_is_sent() {
    let with = |moment: &str| EVENT.replace(r#""id""#, &format!(r#""deliverat":{moment},"id""#));
    let folder = folder(&[
        ("event.json", EVENT),
        ("tomorrow.json", &with(r#""tomorrow""#)),
        ("far.json", &with(r#""9999-01-01T00:00:00Z""#)),
        ("other.json", r#"{"orderId":7}"#),
    ]);
    let (url, received) = receiver(OK);
    for (options, expected, code) in [
        (&["--in", "P14D", "event.json"][..], "an event can wait for less than 14 days", 2),
        (&["--at", "9999-01-01T00:00:00Z", "event.json"], "publish it after 9998-12-18T", 2),
        (&["--at", "9999-12-31T00:00:00Z", "event.json"], "and 9999-12-31T00:00:00Z is later", 2),
        (&["--at", "2026-12-01T09:00:00+24:00", "event.json"], "not a date-time of RFC 3339", 2),
        (&["--at", "tomorrow", "event.json"], "\"tomorrow\" is not a date-time of RFC 3339", 2),
        (&["--in", "soon", "event.json"], "\"soon\" is not a duration", 2),
        (&["--in", "1h", "--at", "2026-12-01T09:00:00Z", "event.json"], "cannot be used with", 2),
        (&["tomorrow.json"], "tomorrow.json:1: deliverat has to be a date-time of RFC 3339", 1),
        (&["far.json"], "not within 14 days", 1),
        (&["--in", "1h", "other.json"], "other.json:1: no CloudEvent", 1),
    ] {
        let arguments = [&["publish", "--ingress", &url], options].concat();
        let (text, exit) = noted(folder.path(), &arguments);
        assert!(text.contains(expected), "{options:?}: {text}");
        assert_eq!(exit, Some(code), "{options:?}: {text}");
    }
    assert_eq!(received.try_iter().count(), 0);
}

#[test]
fn explain_shows_the_delay_and_the_moment_of_an_event() {
    let soon = moment::rfc3339(now_ms() + 5 * 3_600_000);
    let later = EVENT.replace(r#""id""#, &format!(r#""deliverat":"{soon}","id""#));
    let far = later.replace(&soon, "9999-01-01T00:00:00Z");
    let folder = folder(&[
        ("files.yaml", SUBSCRIPTION),
        ("event.json", EVENT),
        ("later.json", &later),
        ("far.json", &far),
    ]);
    let explain = |rest: &[&str]| run(folder.path(), &[&["explain", "files.yaml"], rest].concat());
    let (text, _) = explain(&["--outcome", "200"]);
    assert!(text.contains("PT2H") && text.contains("+2h"), "{text}");
    let begun_ms = now_ms();
    let (text, _) = explain(&["--event", "event.json"]);
    let (_, rest) = text.split_once("  no attempt before ").expect(&text);
    let (begin, _) = rest.split_once('\n').expect("a line");
    let wait_ms = moment::parse(begin).expect("a moment").saturating_sub(begun_ms);
    assert!((2 * 3_600_000..2 * 3_600_000 + 60_000).contains(&wait_ms), "{text}");
    let (text, _) = explain(&["--event", "later.json"]);
    assert!(text.contains(&format!("  no attempt before {soon}\n")), "{text}");
    let (text, code) = explain(&["--event", "far.json"]);
    assert!(text.contains("it becomes a dead letter: deliverat is 9999-01-01"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn check_refuses_a_delay_of_more_than_a_week_where_it_is_written() {
    let folder = folder(&[("files.yaml", &SUBSCRIPTION.replace("PT2H", "P8D"))]);
    let (text, code) = noted(folder.path(), &["check", "files.yaml"]);
    assert!(text.contains("files.yaml:4:15"), "{text}");
    assert!(text.contains("spec.delay: has to be PT0S to P7D"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn the_example_of_the_manual_is_valid() {
    let page = include_str!("../../../../docs/guides/publish.md");
    let (_, section) = page.split_once("## Delivery at a given time").expect("the section");
    let (_, example) = section.split_once("```yaml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let folder = folder(&[("files.yaml", example)]);
    let (text, code) = noted(folder.path(), &["check", "files.yaml"]);
    assert_eq!(code, Some(0), "{text}");
    let (text, _) = run(folder.path(), &["explain", "files.yaml", "--outcome", "200"]);
    assert!(text.contains("PT30M"), "{text}");
}

#[test]
fn convert_keeps_the_delay() {
    let folder = folder(&[("files.yaml", SUBSCRIPTION)]);
    let (text, code) = run(folder.path(), &["convert", "files.yaml"]);
    assert!(text.contains("PT2H") && text.contains("delay"), "{text}");
    assert_eq!(code, Some(0));
}
