//! The receivers in `examples/receivers`, which users copy. Each is run unchanged, receives an
//! event of `lastmile dev`, recognises a duplicate, and refuses an event signed with another key.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lastmile_tests::built::{binary, example};
use lastmile_tests::libraries;

use super::{OTHER_PRIVATE_KEY, OTHER_SECRET, PRIVATE_KEY, PUBLIC_KEY, SECRET};

const EVENT: &str = r#"{"specversion":"1.0","id":"order-1","source":"s","type":"order.created"}"#;
const TIMEOUT: Duration = Duration::from_secs(60);

/// A background process, killed when it is dropped.
struct Running {
    process: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // The test may have ended.
            output.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Self { process, lines }
    }

    /// Waits for the next line with this text and returns it.
    fn line_with(&self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("no line with {part}"));
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn sources(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/receivers").join(language)
}

/// Returns true if this command succeeds; otherwise reports that `tool` is missing.
fn is_at_hand(program: &str, arguments: &[&str], tool: &str) -> bool {
    let mut command = Command::new(program);
    let ran = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_at_hand = ran.is_ok_and(|status| status.success());
    if !is_at_hand {
        libraries::skipped("examples/receivers", tool);
    }
    is_at_hand
}

/// Returns the first word of a line with this prefix.
fn word(line: &str, beginning: &str) -> String {
    let word = line.split([' ', ';', ',']).find(|word| word.starts_with(beginning));
    word.unwrap_or_else(|| panic!("no {beginning} in {line}")).to_owned()
}

/// A receiver of this test, with its files and its key.
struct Trial {
    folder: tempfile::TempDir,
    receiver: PathBuf,
    arguments: Vec<PathBuf>,
    key: &'static str,
}

impl Trial {
    fn new(receiver: impl Into<PathBuf>, arguments: Vec<PathBuf>, key: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("event.json"), EVENT).expect("a file");
        Self { folder, receiver: receiver.into(), arguments, key }
    }

    /// Starts the receiver.
    fn start(&self) -> Running {
        Running::start(&mut self.command(&format!("{OTHER_SECRET} {}", self.key)))
    }

    /// Returns the command of the receiver with these keys.
    fn command(&self, keys: &str) -> Command {
        let mut command = Command::new(&self.receiver);
        command.args(&self.arguments).env("WEBHOOK_KEYS", keys);
        command.env("PORT", "0").env("EVENTS", self.folder.path().join("events"));
        command
    }

    /// Starts the receiver and writes its subscription.
    fn subscribe(&self) -> Running {
        let receiver = self.start();
        let url = word(&receiver.line_with("listening on"), "http://");
        let document = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
             spec: {{destination: {{url: \"{url}in\", signing: {{secrets: ['env:SHARED', 'env:PRIVATE']}}}}}}\n"
        );
        fs::write(self.folder.path().join("s.yaml"), document).expect("a file");
        receiver
    }

    fn lastmile(&self, arguments: &[&str], [shared, private]: [&str; 2]) -> Command {
        let mut command = Command::new(binary("lastmile"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("SHARED", shared).env("PRIVATE", private);
        command
    }

    /// Sends the event once, signed with these secrets. Returns the printed text.
    fn send(&self, secrets: [&str; 2]) -> String {
        let named = ["try", "-f", "s.yaml", "shop/orders/a", "--event", "event.json"];
        let allowed = [&named[..], &["--env", "SHARED", "--env", "PRIVATE"]].concat();
        let output = self.lastmile(&allowed, secrets).output().expect("the program runs");
        String::from_utf8(output.stdout).expect("a text")
    }

    /// Returns the sorted names of stored files: one per event, and one more after it is handled.
    fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("events")).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Checks every promise of a receiver.
fn receives(receiver: impl Into<PathBuf>, arguments: Vec<PathBuf>, key: &'static str) {
    let trial = Trial::new(receiver, arguments, key);
    let running = trial.subscribe();
    let own = [SECRET, PRIVATE_KEY];
    let dev = ["dev", "--port", "0", "--aws-port", "0", "--file", "s.yaml"];
    let mut dev = trial.lastmile(&dev, own);
    let dev = Running::start(dev.stderr(Stdio::null()));
    let queue = word(&dev.line_with("ready:").replace("queue ", "queue="), "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
    assert!(trial.lastmile(&publish, own).status().expect("it runs").success());
    running.line_with("verified ");
    assert!(running.line_with("handled").contains(EVENT));
    drop(dev);

    assert!(trial.send(own).contains("202 Accepted"));
    assert!(running.line_with("handled").contains(EVENT));
    let again = trial.send(own);
    assert!(again.contains("200 OK") && again.contains("verdict: delivered"), "{again}");
    let forged = trial.send(["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", OTHER_PRIVATE_KEY]);
    assert!(forged.contains("401 Unauthorized"), "{forged}");
    running.line_with("refused a request: no key of WEBHOOK_KEYS");
    drop(running);

    // An event that was not handled before the end is handled after the next start.
    let names = trial.stored();
    let events: Vec<&String> = names.iter().filter(|name| name.len() == 64).collect();
    assert_eq!(events.len(), 2, "{names:?}");
    let done = trial.folder.path().join("events").join(format!("{}.done", events[0]));
    // The receiver was killed, perhaps before it wrote this file.
    let _ = fs::remove_file(done);
    let running = trial.start();
    let handled = running.line_with("handled");
    assert!(handled.contains(EVENT), "{handled}");
    drop(running);

    assert_explains_wrong_keys(&trial);
}

/// Checks that a receiver refuses each wrong key with one line. The line has the problem and the
/// remedy, but not the key. An empty secret is refused because anybody could sign with it.
fn assert_explains_wrong_keys(trial: &Trial) {
    for (wrong, problem, right) in [
        ("", "has no key", "the secret of the sender, whsec_…"),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "without its prefix", "begins with whsec_"),
        (OTHER_PRIVATE_KEY, "a private key", "use its public key, whpk_…"),
        ("whsec_%%%%", "not base64", "copy the whole key"),
        ("whsec_", "a secret of 0 bytes", "`lastmile secret` makes one"),
        ("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY=", "a secret of 23 bytes", "at least 24"),
        ("whpk_AAECAwQFBgcICQoLDA0ODxAREhMUFRY=", "a public key of 23 bytes", "it needs 32"),
    ] {
        let output = trial.command(wrong).output().expect("it runs");
        assert!(!output.status.success(), "{wrong}: {output:?}");
        let printed = String::from_utf8(output.stderr).expect("a text");
        let is_one_line = printed.trim_end().lines().count() == 1;
        assert!(is_one_line && printed.contains("WEBHOOK_KEYS has "), "{wrong}: {printed}");
        assert!(printed.contains(problem) && printed.contains(right), "{wrong}: {printed}");
        assert!(wrong.len() < 8 || !printed.contains(wrong), "{wrong}: {printed}");
    }
}

#[test]
fn the_receiver_in_python_verifies_stores_once_and_works_later() {
    // The installation includes the package for public keys.
    let Some(python) = libraries::python("examples/receivers") else { return };
    for key in [SECRET, PUBLIC_KEY] {
        let program = vec![sources("python").join("receiver.py")];
        receives(&python, program, key);
    }
}

#[test]
fn the_receiver_in_node_verifies_stores_once_and_works_later() {
    if is_at_hand("node", &["--version"], "node") {
        for key in [SECRET, PUBLIC_KEY] {
            receives("node", vec![sources("node").join("receiver.mjs")], key);
        }
    }
}

#[test]
fn the_receiver_in_go_verifies_stores_once_and_works_later() {
    if is_at_hand("go", &["version"], "go") {
        let built = tempfile::tempdir().expect("a folder");
        let program = built.path().join("receiver");
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(&program).current_dir(sources("go"));
        assert!(build.status().expect("go runs").success());
        for key in [SECRET, PUBLIC_KEY] {
            receives(&program, Vec::new(), key);
        }
    }
}

#[test]
fn the_receiver_in_rust_verifies_stores_once_and_works_later() {
    for key in [SECRET, PUBLIC_KEY] {
        receives(example("receiver"), Vec::new(), key);
    }
}

/// With the same port, `lastmile dev` and the receiver could not run at the same time.
#[test]
fn no_receiver_listens_on_a_default_port_of_lastmile() {
    for source in ["python/receiver.py", "node/receiver.mjs", "go/receiver.go", "rust/src/main.rs"]
    {
        let text = fs::read_to_string(sources(source)).expect("a file");
        assert!(text.contains("9190"), "{source}");
        for port in ["8080", "4566", "9180", "9181", "9182"] {
            assert!(!text.contains(port), "{source}: {port}");
        }
    }
}

/// Users copy the manifest, so it must request the tested versions.
#[test]
fn the_receiver_in_rust_has_the_dependencies_of_this_repository() {
    let manifest = fs::read_to_string(sources("rust").join("Cargo.toml")).expect("a file");
    let ours = fs::read_to_string(sources("rust").join("../../../Cargo.toml")).expect("a file");
    let version = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        Some((name.to_owned(), rest.split('"').nth(1)?.to_owned()))
    };
    let ours: Vec<_> = ours.lines().filter_map(version).collect();
    let (_, dependencies) = manifest.split_once("[dependencies]\n").expect("a section");
    let of_example: Vec<_> = dependencies.lines().filter_map(version).collect();
    assert!(of_example.len() > 5, "{of_example:?}");
    for dependency in of_example {
        assert!(ours.contains(&dependency), "{dependency:?}");
    }
}
