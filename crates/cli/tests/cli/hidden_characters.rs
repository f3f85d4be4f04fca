//! No output of the program contains an invisible character. This holds for text of all authors: of
//! files, publishers, endpoints, and people with write access to the buckets.
//!
//! The tests plant the same text wherever a command reads something. The output shows a replacement
//! character instead, and JSON an escape.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::console_server::ConsoleServer;
use crate::deployments::deploy;
use crate::programs::{Running, exchange, lastmile, printed, receiver, word};
use crate::sample_destinations::{BILLING, Known, failing};
use crate::sample_letters::{LETTERS, TestContainer};

/// Reversing, isolating, invisible and tag characters that are allowed in names.
const BIDI: &str = "\u{202e}\u{2066}\u{2069}\u{200b}\u{200f}\u{2060}\u{feff}\u{61c}\u{ad}\u{e0041}";
/// Invisible characters together with control characters of terminals, in one byte and in two.
const ALL: &str =
    "\u{202e}\u{2066}\u{200b}\u{feff}\u{61c}\u{ad}\u{e0041}\u{9b}2J\u{1b}[2J\u{7f}\u{8}";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 23\r\nconnection: close\r\n\r\n\
                         no\u{1b}[2J\u{202e}\u{200b}\u{9b}\u{ad}such\rthing";

fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(u32::from(c),
            0xad | 0x61c | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2064 | 0x2066..=0x2069 | 0xfeff
            | 0x17b4..=0x17b5 | 0xfe00..=0xfe0d | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe007f)
}

/// Checks that the output shows the planted text with visible replacements only. Returns standard
/// output.
fn check(command: &str, output: &Output) -> String {
    let (all, code) = printed(output);
    let found = all.chars().find(|c| is_hidden(*c));
    assert_eq!(found, None, "{command} ({code:?}): {all:?}");
    assert!(all.contains('\u{fffd}') || all.contains("\\u202e"), "{command} ({code:?}): {all}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Runs a command and checks its output.
fn run(folder: &Path, arguments: &[&str]) -> String {
    let mut command = lastmile(folder, arguments);
    command.stdin(std::process::Stdio::null());
    // With this variable, `check` would print no warning.
    if arguments.first() != Some(&"check") {
        command.env("ALLOW_PRIVATE_DESTINATIONS", "127.0.0.1");
    }
    check(&arguments.join(" "), &command.output().expect("the program runs"))
}

/// Returns every string of a JSON value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(all) => all.iter().flat_map(strings).collect(),
        Value::Object(all) => all
            .iter()
            .flat_map(|(name, value)| [vec![name.as_str()], strings(value)].concat())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns true if a string of JSON output still has the planted text.
fn keeps(json: &str) -> bool {
    let value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    strings(&value).iter().any(|text| text.contains('\u{202e}'))
}

fn document(name: &str, url: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: \"o{BIDI}\", name: \"{name}{BIDI}\"}}\n\
         spec: {{destination: {{url: '{url}'{more}}}, filter: {{exact: {{type: \"t{BIDI}\"}}}}, \
         deadLetter: {{sink: \"s3://letters/d{BIDI}\"}}}}\n"
    )
}

/// Returns a folder with a subscription file, whose name also contains the planted text.
fn folder(documents: &[String]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = format!("s{BIDI}.yaml");
    std::fs::write(folder.path().join(&file), documents.join("---\n")).expect("a file");
    (folder, file)
}

#[test]
fn in_what_reads_subscription_files() {
    let (url, _received) = receiver(NOT_FOUND);
    let consent = ", consent: {handshake: eventgrid}";
    let (folder, file) = folder(&[document("a", &url, consent), document("b", &url, consent)]);
    let (path, file) = (folder.path(), file.as_str());
    run(path, &["check", file]);
    assert!(keeps(&run(path, &["check", file, "--output", "json"])));
    let invalid = format!("kind: \"{BIDI}\"\nunknown{BIDI}: \"{BIDI}\\e[2J\"\n");
    std::fs::write(path.join(format!("x{BIDI}\n.yaml")), invalid).expect("a file");
    let found = run(path, &["check", &format!("x{BIDI}\n.yaml")]);
    assert!(found.lines().all(|line| line.starts_with('x')), "{found}");
    run(path, &["check", &format!("missing{BIDI}")]);
    names_in_one_line(path);

    run(path, &["explain", "-f", file]);
    run(path, &["explain", "-f", file, "--origins"]);
    assert!(keeps(&run(path, &["explain", "-f", file, "--output", "json"])));
    run(path, &["explain", "-f", file, "--subscription", "n/t/none"]);
    run(path, &["try", "--consent", "-f", file]);
    run(path, &["try", "--consent", "-f", file, "--listen", "127.0.0.1:0", "--wait", "PT0.1S"]);

    let target = format!("file://{}/t{BIDI}/", path.display());
    let applied = run(path, &["apply", "-f", file, "--to", &target, "--yes"]);
    assert!(applied.contains("deadLetter.sink: s3://letters/d\u{fffd}"), "{applied}");
    let (other, changed) = (document("a", &url, ""), format!("other{BIDI}.yaml"));
    std::fs::write(path.join(&changed), other).expect("a file");
    run(path, &["apply", "-f", &changed, "--to", &target, "--yes"]);
    let topic = format!("shop/o{BIDI}");
    run(path, &["rollback", &topic, "--to", &target, "--yes"]);
    run(path, &["check", "--to", &target]);
    assert!(run(path, &["subscriptions", "list", "shop", "--to", &target]).contains("a\u{fffd}"));
}

/// An unreadable file whose name has two lines is named in one line.
fn names_in_one_line(path: &Path) {
    let name = format!("bytes{BIDI}\nFORGED.yaml");
    let (folder, file) = (path.join("bytes"), format!("bytes/{name}"));
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join(&name), b"\xff").expect("a file");
    std::fs::write(path.join("good.yaml"), document("a", "http://127.0.0.1:1/", ""))
        .expect("a file");
    let empty = format!("empty{BIDI}\nFORGED");
    std::fs::create_dir(path.join(&empty)).expect("a folder");
    for arguments in [
        &["check", "bytes"][..],
        &["check", &file],
        &["check", &empty],
        &["publish", &file],
        &["explain", "-f", "bytes"],
        &[
            "dev",
            "--port",
            "0",
            "--aws-port",
            "0",
            "--no-console",
            "-f",
            "good.yaml",
            "--data",
            &file,
        ],
        &["try", "n/t/s", "-f", &file, "--event", &file],
        &["man", &file],
    ] {
        let (said, code) = printed(&lastmile(path, arguments).output().expect("the program runs"));
        assert!(said.contains("FORGED") && code != Some(0), "{arguments:?} ({code:?}): {said}");
        assert!(!said.lines().any(|line| line.starts_with("FORGED")), "{arguments:?}: {said}");
    }
}

#[test]
fn in_what_publishers_receivers_and_the_application_say() {
    let (url, _received) = receiver(NOT_FOUND);
    let (folder, file) = folder(&[document("a", &url, "")]);
    let path = folder.path();
    let event = serde_json::json!({
        "specversion": "1.0", "id": format!("i{ALL}\n"), "source": format!("s{BIDI}"), "type": format!("t{BIDI}")
    });
    let events = format!("{event}\n{{\"{ALL}");
    std::fs::write(path.join(format!("e{BIDI}.ndjson")), events).expect("a file");
    let event_file = format!("e{BIDI}.ndjson");
    let nowhere = "http://127.0.0.1:1/000000000000/events";
    run(path, &["publish", "--queue-url", nowhere, &event_file]);
    run(path, &["publish", "--ingress", &url, &event_file]);
    run(path, &["publish", &format!("missing{BIDI}")]);

    let arguments = ["dev", "--port", "0", "--aws-port", "0", "-f", &file];
    let mut dev = Running::start(lastmile(path, &arguments));
    let ready = dev.line_with("ready:");
    let ingress = word(&ready, "http://").replace("/topics/{namespace}/{topic}", "");
    // The topic has invisible characters, so its URL has them encoded.
    let topic: String = format!("o{BIDI}").bytes().map(|byte| format!("%{byte:02x}")).collect();
    let kind = "content-type: application/cloudevents+json\r\n";
    let address = ingress.trim_start_matches("http://");
    let line = format!("POST /topics/shop/{topic}");
    let accepted =
        exchange(address, &line, &format!("host: {address}\r\n{kind}"), &event.to_string());
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    let attempted = dev.line_with("404 Not Found");
    assert!(attempted.contains("a\u{fffd}"), "{attempted}");
    dev.line_with("stored");
    assert!(!dev.seen().chars().any(is_hidden), "{:?}", dev.seen());

    let mut subscriber = Running::start(lastmile(path, &["subscriber", "--port", "0"]));
    let url = word(&subscriber.line_with("listening"), "http://");
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    exchange(&address, "POST /in", &format!("host: {address}\r\n"), &format!("body {ALL}."));
    let body = subscriber.line_with("body");
    assert!(body.contains('\u{fffd}') && !body.chars().any(is_hidden), "{body:?}");
}

#[test]
fn in_dead_letters_and_replays() {
    let container = TestContainer::folder();
    let (key, blob) = LETTERS[0].blob();
    let planted = serde_json::to_string(&ALL).expect("JSON");
    let planted = planted.trim_matches('"');
    let blob = blob
        .replace("overloaded", &format!("over{planted}"))
        .replace("order-1\"", &format!("order-1{planted}\""))
        .replace("order.created", &format!("t{planted}"))
        .replace("https://billing.example.com/events", &format!("https://b{planted}/"))
        .replace("MaxDeliveryAttemptsExceeded", &format!("M{planted}"))
        .replace("\"Busy\"", &format!("\"B{planted}\""))
        .replace("shop/orders/billing", &format!("shop/orders/b{BIDI}"));
    container.write(&[
        (key, blob.clone()),
        (format!("shop/orders/billing/2026/11/19/23/x{BIDI}.json"), "not JSON".to_owned()),
        ledger(planted),
    ]);
    let run = |arguments: &[&str]| check(&arguments.join(" "), &container.run(arguments));
    for verb in [&["list"][..], &["why", "--by", "reason,subscription,destination"], &["why"]] {
        run(verb);
        assert!(keeps(&run(&[verb, &["--output", "json"]].concat())), "{verb:?}");
    }
    assert!(keeps(run(&["list", "--output", "ndjson"]).trim()));
    assert!(keeps(run(&["list", "--full"]).trim()));
    run(&["jobs"]);
    assert!(keeps(&run(&["jobs", "--output", "json"])));
    let id = LETTERS[0].id();
    run(&["show", &id]);
    assert!(keeps(&run(&["show", &id, "--output", "json"])));
    run(&["show", &format!("missing{BIDI}")]);
    let raw = container.run(&["show", &id, "--raw"]);
    assert_eq!(String::from_utf8(raw.stdout).expect("text"), blob, "a pipe gets the blob itself");
    run(&["replay", "--dry-run"]);
    let mut list = Running::start(container.command(&["list", "--follow"]));
    let shown = list.line_with("order-1");
    assert!(shown.contains('\u{fffd}') && !shown.chars().any(is_hidden), "{shown:?}");
}

/// No page contains the text, even in an attribute, because browsers interpret it there too.
#[tokio::test]
async fn in_the_page_of_dead_letters() {
    let container = TestContainer::folder();
    let (key, blob) = LETTERS[0].blob();
    let blob = blob
        .replace("MaxDeliveryAttemptsExceeded", &format!("M{BIDI}"))
        .replace("\"Busy\"", &format!("\"B{BIDI}\""))
        .replace("order.created", &format!("t{BIDI}"))
        .replace("https://billing.example.com/events", &format!("https://b{BIDI}/"));
    let id = LETTERS[0].id();
    let job = |name: &str| {
        format!(
            "{{\"v\":1,\"job\":\"{name}\",\"at\":\"2026{BIDI}\",\"to\":\"https://h{BIDI}/\",\"letters\":0}}\n"
        )
    };
    let sent = format!(
        "{{\"letter\":\"{id}\",\"delivery\":\"{id}\",\"state\":\"sent\",\"at\":\"2026{BIDI}\"}}\n"
    );
    let plan = |folder: &str, name: &str| (format!("_replays/{folder}/plan.ndjson"), job(name));
    container.write(&[(key, blob), plan("job", "job")]);
    let done = job("job").replace("\"letters\":0", "\"letters\":1") + &sent;
    container.write(&[("_replays/job/done.ndjson".to_owned(), done)]);
    // No real job has such a name.
    container.write(&[
        plan("other", &format!("j{BIDI}")),
        plan(&format!("j{BIDI}"), &format!("j{BIDI}")),
    ]);
    let server = ConsoleServer::start(&container, &[]);
    for path in ["/", "/jobs", "/jobs/job", "/replay", &format!("/letters/{id}")] {
        let page = server.page(path).await;
        let found = page.find(is_hidden).map(|at| page.split_at(at).0.lines().next_back());
        assert_eq!(found, None, "{path}: {page}");
    }
    let listed = server.page("/jobs").await;
    assert_eq!(listed.matches("href=\"/jobs/").count(), 1, "{listed}");
}

/// Returns the plan of a replay job that somebody else may have written.
fn ledger(planted: &str) -> (String, String) {
    let header = format!(
        r#"{{"v":1,"job":"job","at":"2026{planted}","to":"https://h{planted}/","letters":0}}"#
    );
    ("_replays/job/plan.ndjson".to_owned(), format!("{header}\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn in_what_is_known_of_destinations() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let subscriptions = document("a", BILLING, "");
    deploy(folder.path(), &subscriptions);
    let known = Known::beside(folder.path()).await;
    let name = format!("shop/orders/gone{BIDI}");
    let other = "https://other.example.com/";
    let mut state = failing(other, &name);
    known.write_state(other, &state).await;
    state.destination = format!("https://b{ALL}/");
    known.write_state(BILLING, &state).await;
    let run = |arguments: &[&str]| run(folder.path(), &[&["destinations"], arguments].concat());
    run(&["list"]);
    run(&["list", "--output", "json"]);
    run(&["show", BILLING]);
    run(&["show", BILLING, "--output", "json"]);
    run(&["disable", BILLING]);
    run(&["show", &name]);
    run(&["show", &format!("shop/orders/nobody{BIDI}")]);
}
