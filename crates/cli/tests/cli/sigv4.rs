//! Requests that `dev` signs with the credentials of its user. The endpoint accepts only requests
//! for which botocore makes the same signature. No secret and no signature is printed or stored.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::auth::assert_not_stored;
use crate::libraries;
use crate::programs::{Running, exchange, lastmile, printed, run, word};

const KEY_ID: &str = "AKIDEXAMPLE";
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub(crate) const TOKEN: &str = "session-t0ken/of+acme==";
/// Paths and queries that the signers could encode differently.
const ADDRESSES: [&str; 10] = [
    "",
    "prod/orders",
    "a%20b/%C3%BC/c%2Fd",
    "a//b/./c/../d/",
    "~user/(x)/*'!$&+,;=:@",
    "q?b=2&a=1&a=0",
    "q?empty=&flag&name=a%20b%2Fc",
    "q?%C3%BC=%E2%82%AC&z=~-._",
    "q?A=1&a=2&B=",
    "größe?größe=ö",
];
const SERVICES: [&str; 3] = ["execute-api", "lambda", "vpc-lattice-svcs"];
/// The first event is unsorted and has several lines and scripts. Both are sent unchanged.
const EVENTS: [&str; 2] = [
    "{\"type\":\"t\", \"specversion\":\"1.0\",\n\"id\":\"1\",\"source\":\"s\",\"data\":{\"größe\":\"€ 1\"}}",
    r#"{"specversion":"1.0","id":"2","source":"s","type":"t"}"#,
];

/// The endpoint. Its process ends when its standard input closes.
pub(crate) struct Peer {
    pub(crate) address: String,
    process: Child,
}

impl Peer {
    /// `None`, reported as skipped, if this machine lacks Python.
    pub(crate) fn start() -> Option<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/aws_peer");
        let mut command = Command::new(libraries::python("requests signed with SigV4")?);
        command.arg(sources.join("aws_peer.py"));
        command.env("PEER_ACCESS_KEY_ID", KEY_ID).env("PEER_SECRET_ACCESS_KEY", SECRET);
        command.env("PEER_SESSION_TOKEN", TOKEN);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let mut port = String::new();
        let printed = process.stdout.take().expect("it is piped");
        BufReader::new(printed).read_line(&mut port).expect("it prints its port");
        assert!(!port.is_empty(), "the endpoint does not start");
        Some(Self { address: format!("127.0.0.1:{}", port.trim()), process })
    }

    /// Returns the requests that the endpoint recorded.
    pub(crate) fn seen(&self) -> Value {
        let answer = exchange(&self.address, "GET /seen", "host: a\r\nconnection: close\r\n", "");
        let json = answer.find('{').and_then(|at| answer.get(at..=answer.rfind('}')?));
        serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|_| panic!("{answer}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a subscription for each service and address, with additional headers.
fn documents(peer: &Peer, addresses: &[&str]) -> String {
    let mut documents = Vec::new();
    for service in SERVICES {
        for (number, path) in addresses.iter().enumerate() {
            documents.push(format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {service}-{number}}}\n\
                 spec: {{destination: {{url: \"http://{}/{path}\", auth: {{sigv4: {{service: {service}, region: eu-west-1}}}}, \
                 headers: [{{name: X-Spaces, value: 'a  b   c'}}, {{name: x-path, path: id}}]}}}}\n",
                peer.address
            ));
        }
    }
    documents.join("---\n")
}

/// Starts `dev` with this secret access key. Returns the URL of the events queue.
fn dev(folder: &Path, secret: &str) -> (Running, String) {
    let mut command = lastmile(folder, &["dev", "--port", "0", "--aws-port", "0"]);
    of_person(&mut command).env("AWS_SECRET_ACCESS_KEY", secret);
    let mut running = Running::start(command);
    let queue = word(&running.line_with("ready:").replace("queue ", "queue="), "queue=");
    (running, queue.trim_start_matches("queue=").to_owned())
}

/// Sets the credentials that the endpoint accepts.
pub(crate) fn of_person(command: &mut Command) -> &mut Command {
    command
        .env_remove("AWS_PROFILE")
        .env("AWS_ACCESS_KEY_ID", KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_SESSION_TOKEN", TOKEN)
}

fn publish(folder: &Path, queue: &str) {
    for (number, event) in EVENTS.iter().enumerate() {
        let file = format!("event-{number}.json");
        std::fs::write(folder.join(&file), event).expect("a file");
        let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, &file];
        assert_eq!(run(folder, &publish).1, Some(0));
    }
}

pub(crate) fn assert_hidden(running: &Running, folder: &Path, values: &[&str]) {
    let seen = running.seen();
    let found: Vec<_> = values.iter().filter(|value| seen.contains(**value)).collect();
    assert!(found.is_empty(), "{found:?} in {seen}");
    assert_not_stored(folder, values);
}

#[test]
fn botocore_makes_the_same_signature_of_every_path_query_and_body() {
    let Some(peer) = Peer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("subscriptions.yaml");
    std::fs::write(file, documents(&peer, &ADDRESSES)).expect("a file");
    let (mut running, queue) = dev(folder.path(), SECRET);
    publish(folder.path(), &queue);
    for _ in 0..SERVICES.len() * ADDRESSES.len() * EVENTS.len() {
        running.line_with(" 200 OK");
    }
    let seen = peer.seen();
    assert_eq!(seen["problems"], serde_json::json!([]));
    for service in SERVICES {
        assert_eq!(seen["taken"][service], ADDRESSES.len() * EVENTS.len(), "{service}");
    }
    running.signal("INT");
    running.code();
    assert_hidden(&running, folder.path(), &[SECRET, TOKEN, "Signature="]);
}

#[test]
fn a_redirect_is_not_followed_and_a_refusal_that_repeats_the_signature_shows_none() {
    for (secret, path, status) in [(SECRET, "moved", "307"), ("another", "in", "403")] {
        let Some(peer) = Peer::start() else { return };
        let folder = tempfile::tempdir().expect("a folder can be made");
        let file = folder.path().join("subscriptions.yaml");
        std::fs::write(file, documents(&peer, &[path])).expect("a file");
        let (mut running, queue) = dev(folder.path(), secret);
        publish(folder.path(), &queue);
        for _ in 0..SERVICES.len() * EVENTS.len() {
            running.line_with(&format!(" {status} "));
        }
        let seen = peer.seen();
        let requests = SERVICES.len() * EVENTS.len();
        let counted = if status == "307" { "moved" } else { "refused" };
        assert!(seen[counted].as_u64() >= Some(requests as u64), "{seen}");
        assert_eq!((&seen["elsewhere"], &seen["taken"]), (&0.into(), &serde_json::json!({})));
        running.signal("INT");
        running.code();
        assert_hidden(&running, folder.path(), &[SECRET, TOKEN, "Signature=", "Credential="]);
    }
}

#[test]
fn what_try_sends_and_the_command_that_it_prints_are_taken() {
    let Some(peer) = Peer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let documents = documents(&peer, &["prod/orders"]).replace("a  b   c", "a b");
    std::fs::write(folder.path().join("subscriptions.yaml"), documents).expect("a file");
    for service in SERVICES {
        let name = format!("shop/orders/{service}-0");
        let arguments = ["try", "-f", "subscriptions.yaml", &name, "--sample"];
        let tried = of_person(&mut lastmile(folder.path(), &arguments)).output();
        let (printed, code) = printed(&tried.expect("the program runs"));
        assert!(code == Some(0) && printed.contains("authorization: [secret]"), "{printed}");
        assert!(
            [SECRET, TOKEN, "Signature="].iter().all(|part| !printed.contains(part)),
            "{printed}"
        );
        assert_eq!(peer.seen()["taken"][service], 1, "{printed}");

        let arguments = [&arguments[..], &["--print"]].concat();
        let output = lastmile(folder.path(), &arguments).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let command = String::from_utf8(output.stdout).expect("a text");
        let mut shell = Command::new("sh");
        let shell =
            of_person(shell.args(["-c", &format!("{} --fail", command.trim_end())])).output();
        let shell = shell.expect("a shell");
        assert!(shell.status.success(), "{command}: {shell:?}: {}", peer.seen());
        assert_eq!(peer.seen()["taken"][service], 2, "{command}");
    }
}
