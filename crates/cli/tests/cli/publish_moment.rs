//! Delivery at a given time: the attribute that `publish --in` and `--at` send, and the example of
//! the manual.

use std::path::Path;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::moment;

use crate::programs::{lastmile, printed, receiver, run};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const EVENT: &str = r#"{"specversion":"1.0", "id":"1","source":"s","type":"t","data":{"n":1.50}}"#;

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
