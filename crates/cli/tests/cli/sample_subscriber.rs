//! `subscriber`: its output about requests, and its checks of signatures.

use std::path::Path;

use serde_json::Value;

use crate::programs::{Running, exchange, lastmile, run, word};

const EVENT: &str = r#"{"specversion":"1.0","id":"order-1","source":"s","type":"order.created"}"#;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// Starts a subscriber. Returns its address as `host:port`.
fn subscriber(folder: &Path, options: &[&str]) -> (Running, String) {
    let mut command = lastmile(folder, &[&["subscriber", "--port", "0"], options].concat());
    let mut running = Running::start({
        command.env("RECEIVER_SECRET", SECRET);
        command
    });
    let url = word(&running.line_with("listening"), "http://");
    (running, url.trim_start_matches("http://").trim_end_matches('/').to_owned())
}

/// Starts `dev`, which signs for this receiver. Returns the URL of the events queue.
fn dev(folder: &Path, address: &str) -> (Running, String) {
    dev_with(folder, address, SECRET)
}

/// Starts `dev`, which signs with this secret.
fn dev_with(folder: &Path, address: &str, secret: &str) -> (Running, String) {
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"http://{address}/in\", signing: {{secrets: [\"env:SENDER_SECRET\"]}}}},\
         retry: {{schedule: {{kind: constant, delay: PT1H}}}}}}\n"
    );
    std::fs::write(folder.join("s.yaml"), document).expect("a file can be written");
    std::fs::write(folder.join("event.json"), EVENT).expect("a file can be written");
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "-f", "s.yaml"];
    let mut command = lastmile(folder, &arguments);
    command.env("SENDER_SECRET", secret);
    let mut running = Running::start(command);
    let ready = running.line_with("ready:").replace("queue ", "queue=");
    (running, word(&ready, "queue=").replace("queue=", ""))
}

fn publish(folder: &Path, queue: &str) {
    let arguments = ["publish", "--queue-url", queue, "--topic", "shop/orders", "event.json"];
    assert_eq!(run(folder, &arguments).1, Some(0));
}

#[test]
fn a_delivery_is_shown_with_its_headers_and_its_signature_is_checked() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("other.txt"), format!("{OTHER}\n")).expect("a file");
    let secrets = ["--secret", "other.txt", "--secret", "env:RECEIVER_SECRET"];
    let options = [&secrets[..], &["--require-signature", "--answer", "503,200"]].concat();
    let (mut receiver, address) = subscriber(folder.path(), &options);
    // The request is refused, and uses up none of the answers.
    let unsigned = exchange(&address, "POST /in", &format!("host: {address}\r\n"), EVENT);
    assert!(unsigned.starts_with("HTTP/1.1 401"), "{unsigned}");
    let shown = receiver.line_with("POST /in");
    assert!(shown.contains("-> 401 Unauthorized"), "{shown}");
    assert!(
        shown.ends_with("signature: invalid: the header webhook-signature is missing"),
        "{shown}"
    );

    let (mut dev, queue) = dev(folder.path(), &address);
    publish(folder.path(), &queue);
    dev.line_with("503 Service Unavailable");
    let shown = receiver.line_with("POST /in");
    assert!(shown.contains("-> 503 Service Unavailable"), "{shown}");
    assert!(shown.ends_with("signature: valid"), "{shown}");
    receiver.line_with("  content-type: application/cloudevents+json");
    receiver.line_with("  webhook-signature: v1,");
    assert_eq!(receiver.line_with("specversion"), EVENT);
    let handshake = format!("host: {address}\r\nwebhook-request-origin: a.example.com\r\n");
    let answer = exchange(&address, "OPTIONS /in", &handshake, "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!receiver.line_with("OPTIONS /in").contains("signature"));
}

#[test]
fn a_signature_by_a_private_key_is_checked_with_the_public_one() {
    const PRIVATE: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
    let folder = tempfile::tempdir().expect("a folder can be made");
    let public = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n";
    std::fs::write(folder.path().join("key.txt"), public).expect("a file");
    let (mut receiver, address) =
        subscriber(folder.path(), &["--secret", "key.txt", "--require-signature"]);
    for (secret, shown) in [
        (PRIVATE, "signature: valid"),
        (SECRET, "signature: invalid: webhook-signature has no entry that begins with \"v1a,\""),
    ] {
        let (_dev, queue) = dev_with(folder.path(), &address, secret);
        publish(folder.path(), &queue);
        let line = receiver.line_with("POST /in");
        assert!(line.ends_with(shown), "{line}");
    }
}

#[test]
fn another_secret_is_reported_and_refused_only_if_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("other.txt"), OTHER).expect("a file");
    for (options, status) in
        [(&["--output", "json"][..], 200), (&["--output", "json", "--require-signature"], 401)]
    {
        let options = [&["--secret", "other.txt"], options].concat();
        let (mut receiver, address) = subscriber(folder.path(), &options);
        let (mut dev, queue) = dev(folder.path(), &address);
        publish(folder.path(), &queue);
        dev.line_with(&format!("{status} "));
        let request: Value = serde_json::from_str(&receiver.line_with("POST")).expect("JSON");
        assert_eq!((&request["status"], &request["body"]), (&status.into(), &EVENT.into()));
        assert_eq!((&request["method"], &request["path"]), (&"POST".into(), &"/in".into()));
        assert_eq!(request["signature"], "invalid");
        let problem = request["signatureProblem"].as_str().expect("a text");
        assert!(problem.contains("another secret"), "{problem}");
        assert!(request["headers"]["webhook-id"].is_string(), "{request}");
    }
}

#[test]
fn a_secret_that_is_none_is_a_usage_error_and_not_shown() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("bad.txt"), "no base64!").expect("a file");
    for (secret, says) in [
        ("bad.txt", "the signing secret bad.txt is not base64"),
        ("missing.txt", "expected env:NAME or a file"),
        ("env:NO_SUCH_VARIABLE", "the environment variable NO_SUCH_VARIABLE is not set"),
    ] {
        let (printed, code) =
            run(folder.path(), &["subscriber", "--port", "0", "--secret", secret]);
        assert!(code == Some(2) && printed.contains(says), "{secret}: {printed}");
        assert!(!printed.contains("no base64!"), "{printed}");
    }
    let (printed, code) = run(folder.path(), &["subscriber", "--require-signature"]);
    assert!(code == Some(2) && printed.contains("--secret"), "{printed}");
}
