//! The errors of `lastmile deadletters` for storage that is missing, refuses access or is out of reach.

use serde_json::json;

use crate::programs::deciding_receiver;
use crate::sample_letters::{LETTERS, Sample, TestContainer, lines, text};

/// Words of libraries, of their types and of the operating system, which no message has.
const FOREIGN: [&str; 12] = [
    "os error",
    "hyper",
    "reqwest",
    "rustls",
    "tcp connect",
    "client error",
    "Kind(",
    "Error(",
    "Error {",
    "dispatch failure",
    "service error",
    "No such file",
];

/// A storage that gives every request this response.
fn storage(status: &'static str, body: &'static str) -> String {
    let length = body.len();
    deciding_receiver(move |_| {
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    })
    .0
}

fn samples() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container
}

#[test]
fn a_bucket_that_cannot_be_read_is_an_error_in_words_with_advice() {
    let xml = |code: &str, message: &str| -> &'static str {
        format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>").leak()
    };
    for (endpoint, expected) in [
        (storage("404 Not Found", xml("NoSuchBucket", "none")), &["NoSuchBucket", "spelling"][..]),
        (storage("403 Forbidden", xml("AccessDenied", "not you")), &["AccessDenied", "permission"]),
        (storage("403 Forbidden", xml("InvalidAccessKeyId", "who")), &["credentials"]),
        (storage("502 Bad Gateway", "<html>"), &["status 502"]),
        (storage("200 OK", "not XML"), &["status 200"]),
        ("http://127.0.0.1:1".to_owned(), &["connection refused", "AWS_ENDPOINT_URL"]),
        ("http://nowhere.invalid".to_owned(), &["the host name does not resolve"]),
    ] {
        let container = TestContainer::bucket(&endpoint, "s3://letters");
        let output = container.command(&["list"]).env("AWS_MAX_ATTEMPTS", "1").output();
        let output = output.expect("the program runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let named = expected.iter().chain(&["s3://letters cannot be listed"]);
        named.for_each(|part| assert!(said.contains(part), "{part} in {said}"));
        FOREIGN.iter().for_each(|word| assert!(!said.contains(word), "{word} in {said}"));
    }
}

#[test]
fn a_folder_that_is_missing_or_a_file_is_an_error_in_words() {
    let container = samples();
    std::fs::write(container.path().join("shop/orders/billing/2026/11/20/7"), "a file").unwrap();
    for (arguments, code, expected) in [
        (&["list", "--container", "nowhere"][..], 2, "there is no folder nowhere"),
        (&["show", "a/b.json"], 1, "letters has no blob a/b.json"),
    ] {
        let output = container.run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
        FOREIGN.iter().for_each(|word| assert!(!said.contains(word), "{word} in {said}"));
    }
}

#[test]
fn a_container_that_is_one_level_off_is_answered_with_the_right_one() {
    let container = samples();
    let (above, below) = (container.path(), container.path().join("shop"));
    let folder = above.parent().expect("a folder").display().to_string();
    for wrong in [folder.clone(), below.display().to_string()] {
        for verb in [&["list"][..], &["why"], &["show", "order-1"]] {
            let output = container.run(&[verb, &["--container", &wrong]].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            let right = format!("but in --container {folder}/letters");
            assert!(said.contains(&right), "{said}");
        }
    }
    let other = container.run(&["list", "--status", "418"]);
    assert!(!text(&other.stderr).contains("but in"), "{}", text(&other.stderr));
}

#[test]
fn a_name_that_does_not_exist_is_answered_with_those_that_do() {
    let container = samples();
    for (filter, expected) in [
        (
            ["--namespace", "shpo"],
            "no dead letter is of a namespace \"shpo\". The namespaces are: shop\n",
        ),
        (["--topic", "shop/order"], "The topics are: orders\n"),
        (["--subscription", "mails"], "The subscriptions are: mail, billing\n"),
    ] {
        let output = container.run(&[&["list"][..], &filter].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn since_and_until_are_exact_to_the_millisecond_in_every_verb() {
    let container = samples();
    // The last attempt of order-4 ended at 10:03:07.034.
    for (since, until, found) in [
        ("2026-11-20T10:03:07.034Z", "2026-11-20T10:03:07.035Z", 1),
        ("2026-11-20T10:03:07.035Z", "2026-11-20T10:04Z", 0),
        ("2026-11-20T10:03Z", "2026-11-20T10:03:07.034Z", 0),
        ("2026-11-20T11:03+01:00", "2026-11-20T10:04Z", 1),
    ] {
        let range = ["--since", since, "--until", until];
        let full = container.run(&[&["list", "--full"][..], &range].concat());
        assert_eq!(lines(&full).len(), found, "{since} {until}");
        for verb in [&["why"][..], &["why", "--by", "hour"], &["purge", "--dry-run"], &["list"]] {
            let output = container.run(&[verb, &range].concat());
            assert_eq!(output.status.code(), Some(i32::from(found == 0)), "{verb:?} {since}");
        }
    }
    let output = container.run(&["list", "--since", "2026-11-20T07:03"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("add Z for UTC, as in 2026-11-20T07:03Z"));
}

#[test]
fn show_tells_attempts_without_a_history_and_why_there_was_none() {
    let container = TestContainer::folder();
    let blob = |number: u32, more: serde_json::Value| {
        let id = format!("00000000-0000-0000-0000-{number:012}");
        let mut properties =
            json!({"deadletterid": id, "deadletterreasoncode": "TimeToLiveExceeded"});
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let key = format!("shop/orders/billing/2026/11/20/7/{id}.json");
        let event = r#"{"specversion":"1.0","id":"a","source":"s","type":"t"}"#;
        (key, format!(r#"{{"event":{event},"deadletterProperties":{properties}}}"#))
    };
    container.write(&[
        blob(1, json!({"deliveryattempts": 3, "lastresponse": "busy", "lastresponseheaders": [["server", "nginx"]]})),
        blob(2, json!({"deliveryattempts": 0, "destinationstate": {
            "since": "2026-11-20T07:00:00Z", "outcome": "SocketError", "detail": "connection refused"}})),
    ]);
    let shown = |number: &str| {
        text(
            &container
                .run(&["show", &format!("00000000-0000-0000-0000-00000000000{number}")])
                .stdout,
        )
    };
    let attempted = shown("1");
    assert!(
        attempted.contains("3 attempts were made, of which the blob keeps no history\n"),
        "{attempted}"
    );
    assert!(attempted.contains("last response\n  server: nginx\n\n  busy\n"), "{attempted}");
    assert!(!attempted.contains("there was no attempt"), "{attempted}");
    let put_off = "there was no attempt: its destination failed for other deliveries since 2026-11-20 07:00:00Z; the \
                   last of them: connection refused\n";
    assert!(shown("2").contains(put_off), "{}", shown("2"));
    let json = container.run(&["show", "00000000-0000-0000-0000-000000000002", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["destination_state"]["outcome"], "SocketError");
}
