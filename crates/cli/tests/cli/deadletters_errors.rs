//! The errors of `lastmile deadletters` for a bucket that is missing, refuses access or is out of reach.

use crate::programs::deciding_receiver;
use crate::sample_letters::{TestContainer, text};

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
