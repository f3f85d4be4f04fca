//! Token servers that hang, flood, redirect or are where nobody may go: bounded, refused and told,
//! while `dev` delivers to others.

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::auth::NEVER_SLOW;
use crate::programs::{Running, deciding_receiver, lastmile, run, word};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
/// The name of a subscription is the path at its token server, and why it has no token.
const SERVERS: [(&str, &str); 5] = [
    ("hang", " within 2000 ms"),
    ("flood", "the response has more than 65536 bytes"),
    ("endless-head", "no token from "),
    ("redirect", "the token server responded with 307"),
    ("metadata", "169.254.169.254 cannot be reached without TLS"),
];
const CLIENT_SECRET: &str = "cl1ent-s+cret";

fn answer(request: &str) -> String {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let head = |status: &str, more: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n")
    };
    match path {
        "/flood" => {
            let token = "x".repeat(10 * 1_024 * 1_024);
            let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer"}}"#);
            format!("{}{body}", head("200 OK", "content-type: application/json\r\n", body.len()))
        }
        "/endless-head" => format!("HTTP/1.1 200 OK\r\n{}", "x-more: y\r\n".repeat(100_000)),
        "/redirect" => {
            head("307 Temporary Redirect", "location: http://169.254.169.254/latest/\r\n", 0)
        }
        _ => head("200 OK", "", 0),
    }
}

fn document(name: &str, token_url: &str, destination: &str) -> String {
    let auth = match token_url {
        "" => String::new(),
        url => format!(
            ", auth: {{oauth2: {{tokenUrl: '{url}', clientId: a, clientSecret: 'env:CLIENT_SECRET'}}}}"
        ),
    };
    // Only the one that hangs is waited for until its timeout.
    let timeout = if name == "hang" { "PT2S" } else { "PT1M" };
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: '{destination}{name}', timeout: {timeout}{auth}{NEVER_SLOW}}}, retry: {{maxAttempts: 1}}}}\n"
    )
}

/// The text of the first blob below a folder of this name.
fn letter_of(folder: &Path, name: &str) -> Option<String> {
    let mut entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return letter_of(&path, name);
        }
        let is_of = path.components().any(|part| part.as_os_str() == name);
        is_of.then(|| std::fs::read_to_string(path).expect("a text"))
    })
}

#[test]
fn a_token_server_that_hangs_floods_redirects_or_is_forbidden_is_told_and_harms_nobody() {
    let (ended, end) = channel::<()>();
    let end = Mutex::new(end);
    let (servers, _asked) = deciding_receiver(move |request| {
        if request.starts_with("POST /hang ") {
            // Until the test ends.
            let _ = end.lock().expect("no thread panics").recv();
        }
        answer(request)
    });
    let (destination, received) = deciding_receiver(answer);
    let mut documents: Vec<String> = SERVERS
        .iter()
        .map(|(name, _)| match *name {
            "metadata" => document(name, "http://169.254.169.254/latest/", &destination),
            name => document(name, &format!("{servers}{name}"), &destination),
        })
        .collect();
    documents.push(document("healthy", "", &destination));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("subscriptions.yaml", &documents.join("---\n")).expect("a file");
    write("event.json", EVENT).expect("a file");
    let mut command = lastmile(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]);
    command.args(["--env", "CLIENT_SECRET"]).env("CLIENT_SECRET", CLIENT_SECRET);
    let mut running = Running::start(command);
    let queue = word(&running.line_with("ready:").replace("queue ", "queue="), "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
    assert_eq!(run(folder.path(), &publish).1, Some(0));
    running.wait_for_lines("200 OK", 1);
    running.wait_for_lines("dead letter stored", SERVERS.len());
    for (name, why) in SERVERS {
        let letter = letter_of(folder.path(), name).expect("a dead letter");
        for part in ["Aborted", "no token from ", why] {
            assert!(letter.contains(part), "{part} is not in {letter}");
        }
    }
    running.signal("INT");
    running.code();
    assert!(!running.seen().contains(CLIENT_SECRET), "{}", running.seen());
    let request = received.recv_timeout(Duration::from_secs(60)).expect("a request");
    assert!(request.starts_with("POST /healthy "), "{request}");
    assert!(received.try_recv().is_err(), "nobody else gets a request");
    drop(ended);
}
