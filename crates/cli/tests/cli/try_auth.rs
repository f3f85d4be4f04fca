//! `lastmile try` with each kind of `auth`. The endpoint refuses all other requests and repeats
//! them. The printed command makes the same request. No secret and no token is printed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

use crate::programs::{deciding_receiver, lastmile, printed};
use crate::try_out::{OF_THE_MOMENT, next, parts};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;
/// Path, `auth`, the header that the endpoint requires, and the variable of the printed command
/// with its value.
type Kind = (&'static str, &'static str, &'static str, (&'static str, &'static str));
const KINDS: [Kind; 4] = [
    // printf 'acme:pass-word' | base64
    (
        "basic",
        "{basic: {user: acme, password: 'env:TRIED'}}",
        "authorization: Basic YWNtZTpwYXNzLXdvcmQ=",
        ("LASTMILE_AUTHORIZATION", "Basic YWNtZTpwYXNzLXdvcmQ="),
    ),
    (
        "bearer",
        "{bearer: {token: 'env:TRIED'}}",
        "authorization: Bearer pass-word",
        ("TRIED", "pass-word"),
    ),
    (
        "header",
        "{header: {name: x-partner, value: 'env:TRIED'}}",
        "x-partner: pass-word",
        ("TRIED", "pass-word"),
    ),
    (
        "oauth2",
        "{oauth2: {tokenUrl: 'URLtoken', clientId: acme, clientSecret: 'env:TRIED', style: post}}",
        "authorization: Bearer issued-t0ken",
        ("LASTMILE_AUTHORIZATION", "Bearer issued-t0ken"),
    ),
];
/// Secrets that must not be printed: the secret, the secret in base64 with the user, and the token.
const VALUES: [&str; 3] = ["pass-word", "YWNtZTpwYXNzLXdvcmQ", "issued-t0ken"];

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// A token server at `/token`, and an endpoint at the other paths that requires the header of the
/// path. A refusal repeats the request.
fn answer(request: &str) -> String {
    let shows = |kind: &Kind| {
        request.starts_with(&format!("POST /{} ", kind.0)) && request.contains(kind.2)
    };
    if request.starts_with("POST /token ") && request.contains("client_secret=pass-word") {
        response(
            "200 OK",
            r#"{"access_token":"issued-t0ken","token_type":"Bearer","expires_in":600}"#,
        )
    } else if KINDS.iter().any(shows) {
        response("200 OK", "welcome")
    } else {
        response("401 Unauthorized", &format!("you sent {request}"))
    }
}

/// Returns a folder with a subscription to this path.
fn folder(url: &str, path: &str, auth: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{url: \"{url}{path}\", auth: {}}}}}\n",
        auth.replace("URL", url)
    );
    std::fs::write(folder.path().join("s.yaml"), document).expect("a file can be written");
    std::fs::write(folder.path().join("event.json"), EVENT).expect("a file can be written");
    folder
}

/// Runs `try` with this secret and returns its output, which contains no secret.
fn try_out(folder: &Path, secret: &str, more: &[&str]) -> (String, Option<i32>) {
    let words = ["try", "-f", "s.yaml", "shop/orders/a", "--event", "event.json", "--env", "TRIED"];
    let mut command = lastmile(folder, &[&words, more].concat());
    let output = command.env("TRIED", secret).stdin(Stdio::null()).output();
    let (printed, code) = printed(&output.expect("the program runs"));
    for value in VALUES {
        assert!(!printed.contains(value), "{value} in {printed}");
    }
    (printed, code)
}

fn assert_silent(received: &Receiver<String>) {
    assert!(received.try_recv().is_err(), "nothing is sent");
}

#[test]
fn each_kind_is_delivered_and_printed_as_the_same_request() {
    for (path, auth, header, (variable, value)) in KINDS {
        let (url, received) = deciding_receiver(answer);
        let folder = folder(&url, path, auth);
        let (printed, code) = try_out(folder.path(), "pass-word", &[]);
        assert!(code == Some(0) && printed.contains("verdict: delivered"), "{path}: {printed}");
        if path == "oauth2" {
            assert!(next(&received).starts_with("POST /token "));
        }
        let expected = next(&received);
        assert!(expected.contains(header), "{path}: {expected}");

        let (printed, code) = try_out(folder.path(), "pass-word", &["--print"]);
        assert_eq!(code, Some(0), "{path}: {printed}");
        // The token server gets no request either.
        assert_silent(&received);
        assert!(printed.contains(&format!("set {variable} before")), "{path}: {printed}");
        // The variables to set are on standard error.
        let (command, _) = printed.split_once(&format!("\nset {variable} ")).expect("a note");
        let mut shell = Command::new("sh");
        let ran = shell.env(variable, value).arg("-c").arg(command).output();
        let ran = ran.expect("a shell");
        assert!(ran.status.success() && ran.stdout.ends_with(b"welcome"), "{path}: {ran:?}");
        assert_eq!(parts(&next(&received), &OF_THE_MOMENT), parts(&expected, &OF_THE_MOMENT));
    }
}

#[test]
fn who_is_refused_sees_no_secret_in_what_the_endpoint_repeats() {
    for (path, auth, ..) in KINDS {
        let (url, received) = deciding_receiver(answer);
        let folder = folder(&url, path, auth);
        let (printed, code) = try_out(folder.path(), "old-pass-word", &[]);
        let says = if path == "oauth2" { "not sent: " } else { "401 Unauthorized" };
        assert!(code == Some(1) && printed.contains(says), "{path}: {printed}");
        assert!(next(&received).starts_with("POST /"), "{path}");
    }
}

#[test]
fn a_token_that_is_refused_is_replaced_once_as_in_dispatch() {
    let (url, received) = deciding_receiver(answer);
    // The endpoint refuses all tokens.
    let folder = folder(&url, "in", KINDS[3].1);
    let (printed, code) = try_out(folder.path(), "pass-word", &[]);
    assert!(code == Some(1) && printed.contains("refused the first token"), "{printed}");
    assert!(printed.contains("you sent POST /in"), "{printed}");
    for path in ["/token", "/in", "/token", "/in"] {
        assert!(next(&received).starts_with(&format!("POST {path} ")));
    }
    assert_silent(&received);
}

#[test]
fn a_printed_command_reads_a_certificate_from_files() {
    let pem = |label: &str| format!("-----BEGIN {label}-----\npass-word\n-----END {label}-----\n");
    let auth = "{clientCertificate: {certificate: 'env:TRIED', key: 'env:TRIED'}}";
    let (url, received) = deciding_receiver(answer);
    let folder = folder(&url.replace("http:", "https:"), "in", auth);
    let (printed, code) = try_out(folder.path(), &pem("PRIVATE KEY"), &["--print"]);
    assert_eq!(code, Some(0), "{printed}");
    for part in
        [r#"--cert "${LASTMILE_CERTIFICATE:?}""#, r#"--key "${LASTMILE_CERTIFICATE_KEY:?}""#]
    {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    let (printed, code) = try_out(folder.path(), &pem("PRIVATE KEY"), &[]);
    assert!(code == Some(1) && !printed.contains("PRIVATE KEY"), "{printed}");
    assert_silent(&received);
}
