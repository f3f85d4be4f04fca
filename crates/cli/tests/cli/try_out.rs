//! `lastmile try` sends the request of dispatch and reports its verdict. The printed command makes
//! the same request. No secret is shown, and none is sent without permission.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::programs::{Running, lastmile, printed, receiver, run, word};
use crate::transcripts;

const EVENT: &str = "{\"specversion\":\"1.0\", \"id\":\"order-1\",\"source\":\"s\",\"type\":\"order.created\",\
                     \"data\":{\"who\":\"O'Brien \\\\ $(id)\",\"at\":1.0}}";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const TOKEN: &str = "Bearer hush-hush-hush";
const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The headers that depend on the time of the attempt. The id does not, because it is that of the
/// record.
pub(crate) const OF_THE_MOMENT: [&str; 2] = ["webhook-timestamp", "webhook-signature"];
const ALLOWED: [&str; 4] = ["--env", "TRIED_TOKEN", "--env", "TRIED_KEY"];

/// Returns a folder with a file of subscriptions and an event.
fn folder(destination: &str, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec: {{destination: {{{destination}}}{more}}}\n"
    );
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("s.yaml", &document).expect("a file can be written");
    write("event.json", EVENT).expect("a file can be written");
    folder
}

/// A destination with everything that a request may have: secrets in headers and in the address, a
/// signature, and headers from the event.
fn everything(url: &str) -> String {
    format!(
        "url: \"{url}in/it's?code=query-secret&x=[1-2]\", headers: [{{name: X-Tenant, value: \"a 'quoted' $(id)\"}}, \
         {{name: x-empty, value: ''}}, {{name: Authorization, secret: 'env:TRIED_TOKEN'}}, {{name: x-api-key, value: in-the-file}}, {{name: x_api_key, value: other-in-the-file}}, \
         {{name: x-order, path: $.data.who}}], signing: {{secrets: ['env:TRIED_KEY']}}"
    )
}

/// Returns the program with both secrets in its environment.
fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = lastmile(folder, arguments);
    command.env("TRIED_TOKEN", TOKEN).env("TRIED_KEY", SIGNING).stdin(Stdio::null());
    command
}

fn try_out(folder: &Path, options: &[&str]) -> Output {
    let arguments = [&["try", "-f", "s.yaml", "shop/orders/a"], options].concat();
    program(folder, &arguments).output().expect("the program runs")
}

pub(crate) fn next(received: &Receiver<String>) -> String {
    received.recv_timeout(Duration::from_secs(60)).expect("a request")
}

/// Returns the first line, the headers except for `without`, and the body. The order of headers and
/// the white space around a value have no meaning (RFC 9110, 5.3 and 5.5).
pub(crate) fn parts(request: &str, without: &[&str]) -> (String, Vec<String>, String) {
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.split("\r\n");
    let first = lines.next().expect("a line").to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':').expect("a header");
        let name = name.to_lowercase();
        (!without.contains(&name.as_str())).then(|| format!("{name}: {}", value.trim()))
    };
    let mut headers: Vec<String> = lines.filter_map(header).collect();
    headers.sort();
    (first, headers, body.to_owned())
}

/// Checks that no secret of [`everything`] is printed.
fn assert_hidden(printed: &str) {
    for secret in ["hush-hush", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "query-secret", "in-the-file"] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}

#[test]
fn the_request_is_the_one_that_dispatch_makes() {
    let (url, received) = receiver(OK);
    let folder = folder(&everything(&url), "");
    let dev = ["dev", "--port", "0", "--aws-port", "0", "-f", "s.yaml"];
    let mut dev = Running::start(program(folder.path(), &dev));
    let queue = word(&dev.line_with("ready:").replace("queue ", "queue="), "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
    assert_eq!(run(folder.path(), &publish).1, Some(0));
    let dispatched = next(&received);
    let options = [&["--event", "event.json"], &ALLOWED[..]].concat();
    let (printed, code) = printed(&try_out(folder.path(), &options));
    assert_eq!(code, Some(0), "{printed}");
    let tried = next(&received);
    // The id of a delivery depends on the id of its message.
    let without = [&["webhook-id"], &OF_THE_MOMENT[..]].concat();
    assert_eq!(parts(&tried, &without), parts(&dispatched, &without));
    assert!(tried.contains(TOKEN) && tried.contains("webhook-signature: v1,"), "{tried}");
    assert_hidden(&printed);
    for part in
        ["POST http://127.0.0.1:", "authorization: [secret]", EVENT, "200 OK", "verdict: delivered"]
    {
        assert!(
            printed.to_lowercase().contains(&part.to_lowercase()),
            "{part} is not in {printed}"
        );
    }
}

#[test]
fn the_printed_command_makes_the_same_request_and_has_no_secret() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        let line = b"SKIPPED: the printed command of `try`: curl is not on this machine\n";
        // The test harness captures standard output, but not this.
        std::io::Write::write_all(&mut std::io::stderr(), line).expect("it takes a line");
        return;
    }
    let (url, received) = receiver(OK);
    for (more, event) in [
        ("", EVENT.to_owned()),
        (", schema: cloudevents-binary", EVENT.to_owned()),
        // The event has bytes that cannot be copied, and no content type.
        (
            ", schema: cloudevents-binary",
            r#"{"specversion":"1.0","id":"1","source":"ö","type":"t","data_base64":"AAonXCVzG3s="}"#.to_owned(),
        ),
        (", schema: cloudevents-binary", r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#.to_owned()),
        ("", EVENT.replace("1.0}", &format!("\"{}\"}}", "x".repeat(200_000)))),
    ] {
        let folder = folder(&format!("{}{more}", everything(&url)), "");
        std::fs::write(folder.path().join("event.json"), &event).expect("a file can be written");
        let options = [&["--event", "event.json"], &ALLOWED[..]].concat();
        let tried = try_out(folder.path(), &options);
        assert_eq!(tried.status.code(), Some(0), "{tried:?}");
        let expected = next(&received);
        let command = try_out(folder.path(), &[&options[..], &["--print"]].concat());
        assert_eq!(command.status.code(), Some(0), "{command:?}");
        assert!(received.try_recv().is_err(), "nothing was sent");
        let noted = String::from_utf8_lossy(&command.stderr).into_owned();
        for variable in ["LASTMILE_URL", "LASTMILE_X_API_KEY", "LASTMILE_X_API_KEY_2", "TRIED_TOKEN"] {
            assert!(noted.contains(&format!("set {variable} before")), "{noted}");
        }
        let command = String::from_utf8(command.stdout).expect("a text");
        assert_hidden(&format!("{command}{noted}"));
        let mut shell = Command::new("sh");
        shell.env("TRIED_TOKEN", TOKEN).env("LASTMILE_X_API_KEY", "in-the-file");
        shell.env("LASTMILE_X_API_KEY_2", "other-in-the-file");
        shell.env("LASTMILE_URL", format!("{url}in/it's?code=query-secret&x=[1-2]"));
        let script = folder.path().join("command.sh");
        std::fs::write(&script, &command).expect("a file can be written");
        let ran = shell.arg(&script).output().expect("a shell");
        assert!(ran.status.success(), "{command}: {ran:?}");
        assert_eq!(parts(&next(&received), &OF_THE_MOMENT), parts(&expected, &OF_THE_MOMENT));
        let unset = Command::new("sh").arg(&script).output().expect("a shell");
        assert!(!unset.status.success() && received.try_recv().is_err(), "{unset:?}");
    }
}

#[test]
fn without_permission_nothing_is_sent_and_an_echo_is_hidden() {
    let (url, received) = receiver(
        "HTTP/1.1 401 Unauthorized\r\nx-echo: hush-hush-hush\r\nhush-hush-hush: 1\r\nconnection: close\r\ncontent-length: 28\r\n\r\n\
         wrong: Bearer hush-hush-hush",
    );
    let folder = folder(&everything(&url), "");
    for options in [&[][..], &["--print"], &["--env", "TRIED_TOKEN"]] {
        let (printed, code) = printed(&try_out(folder.path(), options));
        assert!(code == Some(2) && printed.contains("--env TRIED_KEY"), "{printed}");
        assert_hidden(&printed);
    }
    assert!(received.try_recv().is_err(), "nothing was sent");
    let (printed, code) = printed(&try_out(folder.path(), &ALLOWED));
    assert!(code == Some(1) && next(&received).contains(TOKEN), "{printed}");
    assert_hidden(&printed);
    for part in
        ["401 Unauthorized", "x-echo: [secret]", "wrong: [secret]", "outcome: 401 Unauthorized"]
    {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    let policy = "---\napiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n";
    let file = folder.path().join("s.yaml");
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("{text}{policy}")).expect("a file can be written");
    let (printed, code) = self::printed(&try_out(folder.path(), &ALLOWED));
    assert_eq!(code, Some(1), "{printed}");
    assert!(received.try_recv().is_err(), "nothing was sent");
}

#[test]
fn the_page_about_what_would_happen_next() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let refused = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let [ok, busy, refused] = [OK, BUSY, refused].map(|answer| receiver(answer).0);
    let functions = format!("OK={ok}\nBUSY={busy}\nREFUSED={refused}\n{SUBSCRIPTION}");
    std::fs::write(folder.path().join("functions.sh"), functions).expect("a file can be written");
    transcripts::run_in("try", folder.path());
}

const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 90\r\ncontent-length: 0\r\n\
                    connection: close\r\n\r\n";
/// The shell function that the page uses.
const SUBSCRIPTION: &str = r#"subscription() { cat > s.yaml <<< "apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: a}
spec: {destination: {url: '$1'}$2}"; }
"#;
