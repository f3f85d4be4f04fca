//! `demo`, and `dev` with `publish` and `subscriber`, until Ctrl-C.

use std::path::Path;
use std::process::Output;

use crate::programs::{Running, lastmile};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    lastmile(folder, arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn word_with<'a>(line: &'a str, part: &str) -> &'a str {
    let words = line.split([' ', ';', ',']);
    words
        .into_iter()
        .find(|word| word.contains(part))
        .unwrap_or_else(|| panic!("no {part} in {line}"))
}

#[test]
fn the_demo_exits_by_itself_with_every_delivery_as_expected() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let demo = run(folder.path(), &["demo", "--port", "0"]);
    let output = text(&demo.stdout);
    assert!(demo.status.success(), "{output}\n{}", text(&demo.stderr));
    assert_eq!(
        output
            .lines()
            .filter(|line| line.starts_with("shop/orders/") && line.ends_with(" yes"))
            .count(),
        16,
        "{output}"
    );
    let blobs: Vec<&str> = output
        .lines()
        .filter(|line| line.starts_with(".lastmile/s3/dead-letters/shop/orders/"))
        .collect();
    assert_eq!(blobs.len(), 8, "{output}");
    assert!(blobs.iter().all(|blob| folder.path().join(blob).is_file()));
    assert!(folder.path().join(".lastmile/subscriptions.yaml").is_file());
}

#[test]
fn a_second_demo_replaces_the_dead_letters_of_the_first_and_keeps_others_while_its_port_is_taken() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let letters = folder.path().join(".lastmile/s3/dead-letters/shop/orders");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it listens").to_string();
    let port = address.rsplit(':').next().expect("an address has a port");
    let first = run(folder.path(), &["demo", "--port", port]);
    assert!(first.status.success(), "{}\n{}", text(&first.stdout), text(&first.stderr));
    assert!(text(&first.stderr).contains(&format!("another program listens on {address}")));
    assert!(!text(&first.stdout).contains("removed"));
    let other = letters.join("billing/2026/11/20/7/3981ba0c-1072-5698-92be-c1c5991fb55c.json");
    std::fs::create_dir_all(other.parent().expect("it has a folder")).expect("it can be made");
    std::fs::write(&other, "of dev").expect("it can be written");
    let outside = folder.path().join("outside.json");
    std::fs::write(&outside, "not ours").expect("it can be written");
    let list = folder.path().join(".lastmile/demo-dead-letters.txt");
    let listed = std::fs::read_to_string(&list).expect("the demo wrote it");
    assert_eq!(listed.lines().count(), 8, "{listed}");
    std::fs::write(&list, format!("{listed}../../outside.json\n")).expect("it can be written");

    let second = run(folder.path(), &["demo", "--port", port]);
    assert!(second.status.success(), "{}\n{}", text(&second.stdout), text(&second.stderr));
    let said = text(&second.stdout);
    assert!(said.contains("removed the 8 dead letters of the previous demo"), "{said}");
    assert!(other.is_file() && outside.is_file());
    let blobs = said.lines().filter(|line| line.starts_with(".lastmile/s3/dead-letters/"));
    assert!(blobs.clone().all(|blob| folder.path().join(blob).is_file()) && blobs.count() == 8);
    let listed = run(folder.path(), &["deadletters", "list", "--output", "ndjson"]);
    assert_eq!(text(&listed.stdout).lines().filter(|line| line.contains("order")).count(), 8);
    let subscriptions = std::fs::read_to_string(folder.path().join(".lastmile/subscriptions.yaml"));
    assert_eq!(subscriptions.expect("it stays").matches(&format!("{address}/")).count(), 4);
}

#[test]
fn dev_delivers_what_publish_sends_and_reports_at_the_end_which_messages_it_loses() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let answers = ["subscriber", "--port", "0", "--answer", "503,200"];
    let mut subscriber = Running::start(lastmile(folder.path(), &answers));
    let listening = subscriber.line_with("listening");
    let url = word_with(&listening, "http://");
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"{url}\"}}, retry: {{schedule: {{kind: constant, delay: PT1H}}}}}}\n"
    );
    std::fs::write(folder.path().join("subscriptions.yaml"), document)
        .expect("the file can be written");
    let mut dev =
        Running::start(lastmile(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]));
    let ready = dev.line_with("ready:");
    let queue = word_with(&ready, "/000000000000/events");

    std::fs::write(folder.path().join("event.json"), EVENT).expect("the file can be written");
    let published = run(
        folder.path(),
        &["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"],
    );
    assert_eq!(
        (text(&published.stdout).as_str(), published.status.code()),
        ("1 accepted, 0 refused\n", Some(0))
    );
    assert_eq!(subscriber.line_with("specversion"), EVENT);
    assert!(dev.line_with("retry in").contains("503 Service Unavailable (Busy)"));

    // Refused events are counted, and reported with their line or number.
    let padding = "x".repeat(1_100_000);
    let huge = EVENT.replacen('{', &format!("{{\"padding\":\"{padding}\","), 1);
    std::fs::write(folder.path().join("bad.ndjson"), format!("{huge}\n{{broken\n"))
        .expect("the file can be written");
    let published = run(folder.path(), &["publish", "--queue-url", queue, "bad.ndjson"]);
    assert_eq!(
        (text(&published.stdout).as_str(), published.status.code()),
        ("0 accepted, 2 refused\n", Some(1))
    );
    let printed = text(&published.stderr);
    for part in [
        "bad.ndjson:2: the event is not JSON",
        "event 1: the event with its topic has 1100",
        "limit is 1032192",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }

    let ingress = format!(
        "{}/topics/shop/orders",
        word_with(&ready, "/topics/").split("/topics/").next().expect("an address")
    );
    let published = run(folder.path(), &["publish", "--ingress", &ingress, "event.json"]);
    assert_eq!(text(&published.stdout), "1 accepted, 0 refused\n", "{}", text(&published.stderr));
    dev.line_with("200 OK");

    dev.signal("INT");
    let printed = dev.line_with("stopped");
    assert!(printed.contains("in-memory queues: 1 (retry 1)"), "{printed}");
    assert_eq!(dev.code(), Some(0));
    // Container runtimes stop a process with this signal.
    subscriber.signal("TERM");
    assert_eq!(subscriber.code(), Some(0));
}
