//! `auth` of a destination, delivered by `dev` to a receiver that refuses everybody else, and what of it is
//! printed or stored: nothing.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::programs::{Running, deciding_receiver, lastmile, run, word};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;
const WAIT: Duration = Duration::from_secs(60);
/// The kinds: path, `auth` of the file, and the header that the receiver wants.
const KINDS: [(&str, &str, &str); 3] = [
    // printf 'acme:pass-word' | base64
    (
        "basic",
        "{basic: {user: acme, password: 'env:PASSWORD'}}",
        "authorization: Basic YWNtZTpwYXNzLXdvcmQ=",
    ),
    ("bearer", "{bearer: {token: 'env:TOKEN'}}", "authorization: Bearer t0ken-of-acme"),
    ("header", "{header: {name: x-partner, value: 'env:PARTNER'}}", "x-partner: k3y/of+acme"),
];
/// What must be found nowhere.
const VALUES: [&str; 4] = ["pass-word", "YWNtZTpwYXNzLXdvcmQ", "t0ken-of-acme", "k3y/of+acme"];

/// Repeats the request with 401 unless it shows who is calling.
fn answer(request: &str) -> String {
    let shows = |(path, _, header): &(&str, &str, &str)| {
        request.starts_with(&format!("POST /{path} ")) && request.contains(header)
    };
    let (status, body) = match KINDS.iter().any(shows) {
        true => ("200 OK", "welcome".to_owned()),
        false => ("401 Unauthorized", format!("you sent {request}")),
    };
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The program with the right values, but for this variable.
fn dev(folder: &Path, wrong: &str) -> Command {
    let mut command = lastmile(folder, &["dev", "--port", "0", "--aws-port", "0"]);
    for (name, value) in [("PASSWORD", VALUES[0]), ("TOKEN", VALUES[2]), ("PARTNER", VALUES[3])] {
        let swapped = if name == wrong { format!("old-{value}") } else { value.to_owned() };
        command.env(name, swapped);
    }
    command
}

/// No file below this folder holds one of the values.
fn assert_not_stored(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"))
    {
        if entry.file_type().expect("a type").is_dir() {
            assert_not_stored(&entry.path());
            continue;
        }
        let bytes = std::fs::read(entry.path()).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        let found: Vec<&str> = VALUES.into_iter().filter(|value| text.contains(value)).collect();
        assert!(found.is_empty(), "{found:?} in {}", entry.path().display());
    }
}

#[test]
fn each_kind_is_welcome_where_nobody_else_is_and_a_wrong_secret_ends_as_the_policy_says() {
    for wrong in ["", "PASSWORD", "TOKEN", "PARTNER"] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (url, received) = deciding_receiver(answer);
        let documents = KINDS.map(|(kind, auth, _)| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {kind}}}\n\
                 spec: {{destination: {{url: '{url}{kind}', auth: {auth}}}}}\n"
            )
        });
        std::fs::write(folder.path().join("subscriptions.yaml"), documents.join("---\n"))
            .expect("a file");
        std::fs::write(folder.path().join("event.json"), EVENT).expect("a file");
        let mut running = Running::start(dev(folder.path(), wrong));
        let queue = word(&running.line_with("ready:").replace("queue ", "queue="), "queue=");
        let queue = queue.trim_start_matches("queue=");
        let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
        assert_eq!(run(folder.path(), &publish).1, Some(0));
        for _ in KINDS {
            received.recv_timeout(WAIT).expect("a request");
        }
        let refused = usize::from(!wrong.is_empty());
        for _ in refused..KINDS.len() {
            running.line_with("200 OK");
        }
        if refused == 1 {
            // Never retried by default: it is a dead letter at once.
            running.line_with("dead letter");
            assert!(running.seen().contains("401 Unauthorized"), "{}", running.seen());
        }
        running.signal("INT");
        running.code();
        let seen = running.seen();
        let found: Vec<&str> = VALUES.into_iter().filter(|value| seen.contains(value)).collect();
        assert!(found.is_empty(), "{found:?} in {seen}");
        assert_not_stored(folder.path());
    }
}
