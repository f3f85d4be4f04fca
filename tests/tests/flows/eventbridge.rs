//! Rules of EventBridge, converted: each event is published as a rule sends it to a queue, and the request has to be the one
//! that EventBridge makes.
//!
//! The rules and the expected requests are in `fixtures/eventbridge`, where `levels` states how far AWS documents each part.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use delivery::native::documents;
use dialects::{Severity, Source, read};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use crate::app_fixture::AppFixture;

const TEMPLATE_FILE: &str = "processed-template.json";
/// The path of the token server.
const TOKEN_PATH: &str = "/oauth2/token";
const OUTPUTS: [&str; 4] =
    ["describe-rule", "list-targets-by-rule", "describe-api-destination", "describe-connection"];
/// Events without a value that a body, a query or a path needs, or with one that has no such form. Nothing is sent then.
const WITHOUT_REQUEST: [&str; 4] = [
    "03-inputpath-member/events/4.json",
    "07-query-from-event/events/4.json",
    "07-query-from-event/events/5.json",
    "09-path-from-event/events/3.json",
];
/// Readings of the documentation that are not met: an object within a text keeps its quotes, escaped.
const OTHER_READINGS: [&str; 1] = ["06-transformer-text/events/5.json body"];

/// A request as the endpoint sees it.
struct Seen {
    method: String,
    target: String,
    headers: HeaderMap,
    body: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/eventbridge")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn value(path: &Path) -> Value {
    serde_json::from_str(&text(path)).expect("a fixture is JSON")
}

fn shapes() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the fixtures are there").flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The secrets of a rule: the variable that its conversion names, the key, and the value.
fn secrets(shape: &str) -> Vec<(String, String, String)> {
    let folder = folder().join(shape);
    let connection = value(&folder.join("describe-connection.json"));
    let secrets = value(&folder.join("secrets.json"));
    let named = |(key, secret): (&String, &Value)| {
        let part = match key.as_str() {
            "ApiKeyValue" => "API_KEY",
            "Password" => "PASSWORD",
            "ClientSecret" => "CLIENT_SECRET",
            other => other,
        };
        let variable = format!("{}_{part}", connection["Name"].as_str().expect("a name"));
        let variable = variable.to_ascii_uppercase().replace('-', "_");
        (variable, key.clone(), secret.as_str().expect("a text").to_owned())
    };
    secrets.as_object().expect("secrets").iter().map(named).collect()
}

/// The values of the secrets of all rules.
pub(crate) fn secret(name: &str) -> Option<String> {
    let mut all = shapes().into_iter().flat_map(|shape| secrets(&shape));
    all.find(|(variable, ..)| variable == name).map(|(_, _, value)| value)
}

/// The native documents of these files.
fn converted(shape: &str, files: &[&str], port: u16) -> Vec<Value> {
    let folder = folder().join(shape);
    let read_file = |name: &&str| {
        let name = format!("{name}.json");
        let text = here(&text(&folder.join(&name)), port);
        (name, text)
    };
    let files: Vec<(String, String)> = files.iter().map(read_file).collect();
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, text }).collect();
    let reading = read(&sources);
    let errors = reading.findings.iter().filter(|finding| finding.severity == Severity::Error);
    assert_eq!(errors.map(ToString::to_string).collect::<Vec<_>>(), [""; 0], "{shape}");
    documents(&reading.catalogue)
}

/// The text with this machine in place of each host of an address that is called.
fn here(text: &str, port: u16) -> String {
    let mut changed = text.to_owned();
    for field in ["InvocationEndpoint", "AuthorizationEndpoint"] {
        let begin = format!("\"{field}\": \"https://");
        if let Some((_, rest)) = text.split_once(&begin) {
            let host = rest.split('/').next().expect("a host");
            let replaced = format!("http://127.0.0.1:{port}/");
            changed =
                changed.replace(&format!("{begin}{host}/"), &format!("\"{field}\": \"{replaced}"));
        }
    }
    changed
}

/// Listens until the test ends, issues the token of the expectation, and records all other requests.
async fn listen(token: Option<String>, seen: Arc<Mutex<Vec<Seen>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    let answer = async move |request: Request| {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.expect("a whole request");
        if head.uri.path() == TOKEN_PATH {
            return ([("content-type", "application/json")], token.clone().unwrap_or_default());
        }
        let (method, target) = (head.method.to_string(), head.uri.to_string());
        let body = String::from_utf8(body.to_vec()).expect("UTF-8");
        let request = Seen { method, target, headers: head.headers, body };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        ([("content-type", "text/plain")], String::new())
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    port
}

/// The parameters of a query, decoded and sorted.
fn parameters(target: &str) -> Vec<(String, String)> {
    let url = Url::parse("http://x").expect("a URL").join(target).expect("a target");
    let mut pairs: Vec<_> = url.query_pairs().into_owned().collect();
    pairs.sort();
    pairs
}

fn json_of(body: &str) -> Option<Value> {
    serde_json::from_str(body).ok()
}

/// The differences between a request and the expected one, by part, as far as the documentation goes.
fn differences(expected: &Value, seen: &Seen) -> BTreeMap<&'static str, String> {
    let (wanted, levels) = (&expected["request"], &expected["levels"]);
    let level = |part: &str| levels[part].as_str().unwrap_or_default();
    let mut found = BTreeMap::new();
    let mut compare = |part, is_same: bool, seen: &str| {
        if !is_same {
            found.insert(part, format!("{seen} instead of {}", wanted[part]));
        }
    };
    compare("method", wanted["method"] == json!(seen.method), &seen.method);
    let target = wanted["path"].as_str();
    let path = target.or(wanted["path_without_query"].as_str());
    let path_of = |target: &str| target.split('?').next().unwrap_or_default().to_owned();
    if let Some(path) = path {
        compare("path", path_of(path) == path_of(&seen.target), &seen.target);
    }
    let query_is_same = |target: &str| match level("query") {
        "bytes" | "reading" => {
            target.split_once('?') == seen.target.split_once('?')
                || target.split('?').nth(1) == seen.target.split('?').nth(1)
        }
        _ => parameters(target) == parameters(&seen.target),
    };
    if let Some(target) = target {
        compare("query", query_is_same(target), &seen.target);
    }
    for (name, value) in wanted["headers"].as_object().expect("headers") {
        let sent = seen.headers.get(name).map(|sent| String::from_utf8_lossy(sent.as_bytes()));
        let is_same = sent.as_deref() == value.as_str();
        compare("headers", is_same, &format!("{name}: {sent:?}"));
    }
    for name in expected["headers_absent"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        compare("headers", !seen.headers.contains_key(name), name);
    }
    if let Some(body) = wanted["body"].as_str() {
        let (mut wanted, mut sent) = (json_of(body), json_of(&seen.body));
        if level("body") == "json-with-placeholder" {
            for json in [&mut wanted, &mut sent].into_iter().flatten() {
                json["received"] = Value::Null;
            }
        }
        let is_same =
            body == seen.body || level("body") != "bytes" && wanted.is_some() && wanted == sent;
        compare("body", is_same, &seen.body);
    }
    found
}

/// Converts a rule, publishes its events one after the other, and compares. Returns the readings that are not met.
async fn check(shape: &str, is_without_request: &mut Vec<String>) -> Vec<String> {
    let expectations = value(&folder().join(shape).join("expected.json"));
    let token = expectations["oauth"]["token_response"]["body"].as_str().map(str::to_owned);
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let port = listen(token, Arc::clone(&seen)).await;
    let documents = converted(shape, &OUTPUTS, port);
    let documents: Vec<String> = documents.iter().map(|document| format!("{document}\n")).collect();
    let app = AppFixture::with_port(&documents, port).await;
    let (mut letters, mut readings) = (Vec::new(), Vec::new());
    for expected in expectations["events"].as_array().expect("events") {
        let event = expected["event"].as_str().expect("a file");
        let name = format!("{shape}/{event}");
        app.send("events", &text(&folder().join(&name)), &[]).await;
        let all = app.dead_letters_when_idle().await;
        let dead: Vec<_> =
            all.iter().filter(|letter| !letters.contains(*letter)).cloned().collect();
        let requests = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        letters = all;
        match (expected["matches"] == json!(true), &requests[..]) {
            // An event of a source that no topic has in `from` is stored as one of an unknown topic.
            (false, requests) => {
                let is_stored = dead.iter().all(|(key, _)| key.contains("/_unknown/"));
                assert!(requests.is_empty() && is_stored, "{name}: not filtered: {dead:?}");
            }
            (true, []) if !dead.is_empty() => is_without_request.push(name),
            (true, [request]) => {
                for (part, difference) in differences(expected, request) {
                    let level = expected["levels"][part].as_str();
                    assert_eq!(level, Some("reading"), "{name}: {part}: {difference}");
                    readings.push(format!("{name} {part}"));
                }
            }
            (true, requests) => {
                panic!("{name}: {} requests, dead letters {dead:?}", requests.len())
            }
        }
    }
    readings
}

#[tokio::test]
async fn a_converted_rule_makes_the_requests_that_eventbridge_makes() {
    let (mut without_request, mut other_readings) = (Vec::new(), Vec::new());
    let shapes = shapes();
    for shape in &shapes {
        other_readings.extend(check(shape, &mut without_request).await);
    }
    assert_eq!(shapes.len(), 14, "13 shapes, one of them in two folders");
    assert_eq!(without_request, WITHOUT_REQUEST);
    assert_eq!(other_readings, OTHER_READINGS);
}

#[test]
fn a_template_means_the_same_as_the_outputs_of_the_stack() {
    let with_template = |shape: &String| folder().join(shape).join(TEMPLATE_FILE).exists();
    let shapes: Vec<String> = shapes().into_iter().filter(with_template).collect();
    assert_eq!(shapes.len(), 7);
    for shape in shapes {
        let comparable = |file: &[&str]| {
            let mut documents = converted(&shape, file, 80);
            // Only the deployed stack has the ARN of a queue.
            documents[1]["spec"]["deadLetter"] = Value::Null;
            let text = json!(documents).to_string();
            secrets(&shape).iter().fold(text, |text, (variable, key, _)| {
                let rule = &documents[1]["metadata"]["name"].as_str().expect("a name");
                let stored = format!("secretsmanager:shapes13/{rule}#{key}");
                text.replace(&format!("env:{variable}"), key).replace(&stored, key)
            })
        };
        assert_eq!(comparable(&["processed-template"]), comparable(&OUTPUTS), "{shape}");
    }
}
