//! Clients of others publish to `lastmile dev` unchanged: those of Azure Event Grid, CloudEvents
//! and SQS, in Python and JavaScript, each installed from its registry.
//!
//! `clients/publish.py` and `publish.mjs` are what their users write. Every event has to be
//! delivered, and no client may take the answer for a failure. The table in
//! `docs/reference/clients.md` is what was seen; `scripts/generate` writes it. A machine without
//! Python or Node skips its half and says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde::Deserialize;

use crate::libraries;
use crate::programs::{Running, lastmile, receiver, word};

const TIMEOUT: Duration = Duration::from_secs(60);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// In base64, as keys of Event Grid are.
const KEY: &str = "c2hvcC1vcmRlcnMta2V5LW9uZQ==";

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/clients.md");
const HEAD: &str = "| client | version | how | result |\n|---|---|---|---|\n";

/// One way in which a client published.
#[derive(Debug, Deserialize)]
struct Attempt {
    client: String,
    version: String,
    mode: String,
    ids: Vec<String>,
    error: Option<String>,
}

impl Attempt {
    fn row(&self) -> String {
        let Self { client, version, mode, ids, .. } = self;
        let result = match ids.len() {
            0 => "as expected".to_owned(),
            1 => "delivered".to_owned(),
            events => format!("{events} events delivered"),
        };
        format!("| {client} | {version} | {mode} | {result} |\n")
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/clients")
}

/// `lastmile dev`, the address of its ingress, and the URL of its events queue.
fn dev(folder: &Path, name: &str, more: &[&str]) -> (Running, String, String) {
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "--no-console", "--data", name];
    let default = ["--default-topic", "shop/orders"];
    let mut command = lastmile(folder, &[&arguments[..], &default, more].concat());
    let mut dev = Running::start({
        command.env("PUBLISH_KEY", KEY);
        command
    });
    let ready = dev.line_with("ready:");
    let ingress = word(&ready, "http://").replace("/topics/{namespace}/{topic}", "");
    let queue = word(ready.rsplit("queue ").next().expect("a queue"), "http://");
    (dev, ingress, queue)
}

fn subscriptions(folder: &Path, url: &str) {
    let document = |topic: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: a}}\n\
             spec: {{destination: {{url: \"{url}\"}}}}\n---\n"
        )
    };
    let texts = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: texts}\nspec: {input: opaque}\n";
    let text = format!("{}{}{texts}", document("orders"), document("texts"));
    std::fs::write(folder.join("subscriptions.yaml"), text).expect("a file can be written");
}

/// Runs a program of a client; what it attempted.
fn attempts(mut program: Command, [plain, keyed]: [&str; 2], queue: &str) -> Vec<Attempt> {
    let aws = queue.split("/000000000000").next().expect("an endpoint");
    let environment = [
        ("PLAIN", plain),
        ("KEYED", keyed),
        ("KEY", KEY),
        ("EVENTS_QUEUE_URL", queue),
        ("AWS_ENDPOINT_URL", aws),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("no_proxy", "127.0.0.1,localhost"),
    ];
    program.env_remove("AWS_PROFILE").env_remove("AWS_SESSION_TOKEN");
    let done =
        program.envs(environment).stdin(Stdio::null()).output().expect("the language starts");
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{output}\n{}", String::from_utf8_lossy(&done.stderr));
    output.lines().map(|line| serde_json::from_str(line).expect("a line is an attempt")).collect()
}

/// Waits until each event of these attempts was received.
fn assert_delivered(attempts: &[Attempt], received: &Receiver<String>) {
    let failed: Vec<_> = attempts.iter().filter(|attempt| attempt.error.is_some()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let mut missing: Vec<&String> = attempts.iter().flat_map(|attempt| &attempt.ids).collect();
    while !missing.is_empty() {
        let request = received.recv_timeout(TIMEOUT);
        let Ok(request) = request else { panic!("not delivered: {missing:?}") };
        missing.retain(|id| !request.contains(id.as_str()));
    }
}

/// Compares the rows with those of the page about the same clients, or writes them all.
fn assert_documented(attempts: &[Attempt], is_complete: bool) {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let (before, rest) = page.split_once("<!-- clients -->\n").expect("the page has the table");
    let (table, after) = rest.split_once("<!-- /clients -->\n").expect("the table ends");
    let rows: String = attempts.iter().map(Attempt::row).collect();
    if std::env::var_os("LASTMILE_WRITE_TABLES").is_some() {
        assert!(is_complete, "the table needs the clients of both languages");
        let page = format!("{before}<!-- clients -->\n{HEAD}{rows}<!-- /clients -->\n{after}");
        return std::fs::write(PAGE, page).expect("the page can be written");
    }
    if is_complete {
        assert_eq!(table, format!("{HEAD}{rows}"), "scripts/generate writes the table");
    } else {
        assert!(table.contains(&rows), "{table}\ndoes not have\n{rows}");
    }
}

#[test]
fn clients_of_others_publish_unchanged_and_their_events_are_delivered() {
    let python = libraries::python("clients in python");
    let node = libraries::node("clients in node");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    subscriptions(folder.path(), &url);
    let (_plain, plain, queue) = dev(folder.path(), "plain", &[]);
    let more = ["--key", "env:PUBLISH_KEY", "--allowed-origins", "eventgrid.azure.net"];
    let (_keyed, keyed, _) = dev(folder.path(), "keyed", &more);
    let mut all = Vec::new();
    if let Some(python) = &python {
        let mut program = Command::new(python);
        program.arg(sources().join("publish.py"));
        all.extend(attempts(program, [&plain, &keyed], &queue));
    }
    if let Some(installed) = &node {
        let mut program = Command::new("node");
        program.arg(sources().join("publish.mjs")).arg(installed);
        all.extend(attempts(program, [&plain, &keyed], &queue));
    }
    assert_delivered(&all, &received);
    assert_documented(&all, python.is_some() && node.is_some());
}
