//! Tokens in which AWS identifies the caller. `dev` gets them from a fake STS, and jose verifies
//! them. No token is printed or stored.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::auth::assert_not_stored;
use crate::libraries;
use crate::programs::{Running, exchange, lastmile, printed, run, word};

/// A fake STS and an endpoint. The process ends when its standard input closes.
struct Peer {
    address: String,
    process: Child,
}

impl Peer {
    /// `None`, reported as skipped, if this machine lacks Node.
    fn start() -> Option<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/identity_peer");
        let libraries = libraries::node("tokens of AWS")?;
        let mut command = Command::new("node");
        command.arg(sources.join("identity_peer.mjs")).arg(libraries);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("node starts");
        let mut port = String::new();
        let printed = process.stdout.take().expect("it is piped");
        BufReader::new(printed).read_line(&mut port).expect("it prints its port");
        assert!(!port.is_empty(), "the peer does not start");
        Some(Self { address: format!("127.0.0.1:{}", port.trim()), process })
    }

    /// Refuses all tokens granted so far.
    fn revoke(&self) {
        exchange(&self.address, "POST /revoke", "host: a\r\n", "");
    }

    /// Returns the requests and tokens that the peer recorded.
    fn seen(&self) -> Value {
        let answer = exchange(&self.address, "GET /seen", "host: a\r\n", "");
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

/// Sets credentials of a person for a program that uses this STS.
fn of_person<'a>(command: &'a mut Command, peer: &Peer) -> &'a mut Command {
    command
        .env_remove("AWS_PROFILE")
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "never-sent")
        .env("AWS_REGION", "eu-west-1")
        .env("AWS_ENDPOINT_URL_STS", format!("http://{}", peer.address))
}

fn write_files(folder: &Path, address: &str) {
    let documents = ["one", "two"].map(|name| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
             spec: {{destination: {{url: 'http://{address}/in/{name}', auth: {{awsIdentity: {{audience: {name}, lifetime: PT10M}}}}}}}}\n"
        )
    });
    std::fs::write(folder.join("subscriptions.yaml"), documents.join("---\n")).expect("a file");
    let event = |n: usize| format!(r#"{{"specversion":"1.0","id":"{n}","source":"s","type":"t"}}"#);
    let events: Vec<String> = (0..20).map(event).collect();
    std::fs::write(folder.join("event.json"), format!("[{}]", events.join(","))).expect("a file");
}

#[test]
fn tokens_of_aws_are_verified_by_their_receiver_had_once_replaced_when_refused_and_never_shown() {
    let Some(peer) = Peer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    write_files(folder.path(), &peer.address);
    let mut command = lastmile(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]);
    of_person(&mut command, &peer);
    let mut running = Running::start(command);
    let queue = word(&running.line_with("ready:").replace("queue ", "queue="), "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
    for round in 1..=2 {
        assert_eq!(run(folder.path(), &publish).1, Some(0));
        for _ in 0..40 {
            running.line_with(" 200 OK");
        }
        let seen = peer.seen();
        // Each audience gets one token, and one more after all were refused. The AWS client retries
        // if a response is late.
        let granted = seen["granted"].as_array().map_or(0, Vec::len);
        assert!((2 * round..=6 * round).contains(&granted), "{seen}");
        assert_eq!(seen["delivered"], 40 * round);
        assert_eq!(seen["refused"] != 0, round == 2, "{seen}");
        for asked in seen["asked"].as_array().expect("a list") {
            assert_eq!(
                (&asked["DurationSeconds"], &asked["SigningAlgorithm"]),
                (&"600".into(), &"RS256".into())
            );
        }
        peer.revoke();
    }
    // A second refusal within a minute counts as a refusal. The repeated token is not shown.
    assert_eq!(run(folder.path(), &publish).1, Some(0));
    running.line_with("401 Unauthorized");
    running.signal("INT");
    running.code();
    let seen = peer.seen();
    let granted: Vec<&str> =
        seen["granted"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let printed = running.seen();
    let secrets: Vec<&str> = granted.iter().copied().chain(["never-sent"]).collect();
    let found: Vec<_> = secrets.iter().filter(|value| printed.contains(**value)).collect();
    assert!(
        found.is_empty() && (4..=12).contains(&granted.len()),
        "{found:?} of {seen} in {printed}"
    );
    assert_not_stored(folder.path(), &secrets);
}

#[test]
fn what_try_shows_is_taken_and_not_printed() {
    let Some(peer) = Peer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    write_files(folder.path(), &peer.address);
    let words = ["try", "-f", "subscriptions.yaml", "shop/orders/one", "--sample"];
    let tried = of_person(&mut lastmile(folder.path(), &words), &peer).output();
    let (printed, code) = printed(&tried.expect("the program runs"));
    assert!(code == Some(0) && printed.contains("authorization: [secret]"), "{printed}");
    let seen = peer.seen();
    let token = seen["granted"][0].as_str().expect("a token");
    assert!(seen["delivered"] == 1 && !printed.contains(token), "{seen} {printed}");

    let words = [&words[..], &["--print"]].concat();
    let output = lastmile(folder.path(), &words).output().expect("the program runs");
    let command = String::from_utf8(output.stdout).expect("a text");
    let mut shell = Command::new("sh");
    shell.env("LASTMILE_AUTHORIZATION", format!("Bearer {token}"));
    let ran = shell.args(["-c", &format!("{} --fail", command.trim_end())]).output();
    assert!(ran.expect("a shell").status.success(), "{command}");
    let seen = peer.seen();
    assert_eq!(
        (&seen["delivered"], seen["granted"].as_array().map(Vec::len)),
        (&2.into(), Some(1))
    );
}
