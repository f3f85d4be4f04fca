//! The command line as a person uses it: the binary, its output, its exit codes, Ctrl-C.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// The longest run of a program in these tests.
const TIMEOUT: Duration = Duration::from_secs(60);
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;

fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).env_remove("ALLOW_PRIVATE_DESTINATIONS");
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    lastmile(folder, arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program in the background, killed when it goes out of scope.
struct Running(Child);

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = lastmile(folder, arguments);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A test that waits for missing output sees the output end instead of hanging.
        let id = child.id().to_string();
        std::thread::spawn(move || {
            std::thread::sleep(TIMEOUT);
            Command::new("kill").arg(id).stderr(Stdio::null()).status()
        });
        Self(child)
    }

    fn output(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().expect("it is piped"))
    }

    fn interrupt(&self) {
        let killed = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The next line that holds this text.
fn line_with(lines: &mut impl std::io::BufRead, part: &str) -> String {
    let found = lines
        .lines()
        .map(|line| line.expect("the output is text"))
        .find(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("the output ended without {part}"))
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
    let demo = run(folder.path(), &["demo"]);
    let output = text(&demo.stdout);
    assert!(demo.status.success(), "{output}\n{}", text(&demo.stderr));
    assert_eq!(
        output.lines().filter(|line| line.starts_with('│') && line.contains(" yes ")).count(),
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
fn dev_delivers_what_publish_sends_and_reports_at_the_end_which_messages_it_loses() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut subscriber =
        Running::start(folder.path(), &["subscriber", "--port", "0", "--answer", "503,200"]);
    let listening = line_with(
        &mut BufReader::new(subscriber.0.stderr.take().expect("it is piped")),
        "listening",
    );
    let url = word_with(&listening, "http://");
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"{url}\"}}, retry: {{schedule: {{kind: constant, delay: PT1H}}}}}}\n"
    );
    std::fs::write(folder.path().join("subscriptions.yaml"), document)
        .expect("the file can be written");
    let mut dev = Running::start(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]);
    let mut output = dev.output();
    let ready = line_with(&mut output, "ready:");
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
    let mut received = subscriber.output();
    assert_eq!(line_with(&mut received, "specversion"), EVENT);
    assert!(line_with(&mut output, "retry in").contains("503 Busy"));

    let ingress = format!(
        "{}/topics/shop/orders",
        word_with(&ready, "/topics/").split("/topics/").next().expect("an address")
    );
    let published = run(folder.path(), &["publish", "--to", &ingress, "event.json"]);
    assert_eq!(text(&published.stdout), "1 accepted, 0 refused\n", "{}", text(&published.stderr));
    line_with(&mut output, "200 Success");

    dev.interrupt();
    let printed =
        line_with(&mut BufReader::new(dev.0.stderr.take().expect("it is piped")), "stopped");
    assert!(printed.contains("still held 1 messages") && printed.contains("retry 1"), "{printed}");
    assert!(dev.0.wait().expect("it ends").success());
}

#[test]
fn publish_counts_what_it_refuses_and_names_the_line() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut events =
        std::fs::File::create(folder.path().join("events.ndjson")).expect("the file can be made");
    writeln!(events, "{EVENT}\n{{broken").expect("the file can be written");
    let published = run(
        folder.path(),
        &["publish", "--queue-url", "http://127.0.0.1:1/000000000000/events", "events.ndjson"],
    );
    assert_eq!(
        (text(&published.stdout).as_str(), published.status.code()),
        ("0 accepted, 2 refused\n", Some(1))
    );
    let printed = text(&published.stderr);
    assert!(
        printed.contains("events.ndjson:2: not JSON") && printed.contains("event 1: "),
        "{printed}"
    );
}

#[test]
fn a_usage_error_is_exit_code_2_and_a_missing_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    assert_eq!(run(folder.path(), &["publish", "--topic", "orders", "x"]).status.code(), Some(2));
    assert_eq!(run(folder.path(), &["subscriber", "--delay", "2s"]).status.code(), Some(2));
    let missing = run(folder.path(), &["publish", "nowhere.json"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("nowhere.json"));
    let dev = run(
        folder.path(),
        &["dev", "--port", "0", "--aws-port", "0", "--subscriptions", "nowhere.yaml"],
    );
    assert!(text(&dev.stderr).contains("nowhere.yaml"), "{}", text(&dev.stderr));
}
