//! Variables of the environment that subscription files name as secrets: nobody receives one
//! without permission.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::programs::{Running, lastmile, printed, receiver, run, save, word};

const SILENT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const SECRET: &str = "hush-hush";
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;

fn write(folder: &Path, url: &str) {
    let document = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: a}}\n\
         spec:\n  destination:\n    url: \"{url}\"\n    consent: {{handshake: eventgrid}}\n    \
         headers: [{{name: authorization, secret: 'env:PRIVATE_TOKEN'}}]\n    \
         signing: {{secrets: ['env:SIGNING_KEY']}}\n"
    );
    std::fs::write(folder.join("subscriptions.yaml"), document).expect("a file can be written");
}

/// The program with both variables.
fn with_secrets(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = lastmile(folder, arguments);
    command
        .env("PRIVATE_TOKEN", SECRET)
        .env("SIGNING_KEY", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    command.stdin(std::process::Stdio::null());
    command
}

/// Commands ask no confirmation for secrets that a Lambda extension reads. `--help` and SECURITY.md
/// state this.
#[test]
fn stored_secrets_are_not_asked_about_as_the_help_says() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(SILENT);
    let (extension, asked) = receiver(
        "HTTP/1.1 200 OK\r\ncontent-length: 28\r\nconnection: close\r\n\r\n{\"SecretString\":\"hush-hush\"}",
    );
    write(folder.path(), &url);
    let path = folder.path().join("subscriptions.yaml");
    let text = std::fs::read_to_string(&path).expect("a file");
    let stored = text.replace("    signing: {secrets: ['env:SIGNING_KEY']}\n", "");
    save(&path, &stored.replace("env:PRIVATE_TOKEN", "secretsmanager:foo"));
    let mut command =
        with_secrets(folder.path(), &["try", "--consent", "-f", "subscriptions.yaml"]);
    let port = extension.trim_end_matches('/').rsplit(':').next().expect("a port");
    command.env("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", port).env("AWS_SESSION_TOKEN", "session");
    let (said, code) = printed(&command.output().expect("the program runs"));
    assert_eq!(code, Some(1), "{said}");
    assert!(asked.try_recv().is_ok_and(|request| request.contains("session")), "{said}");
    assert!(received.try_recv().is_ok_and(|request| request.contains(SECRET)), "{said}");
    for verb in ["try", "dev"] {
        let (help, _) = run(folder.path(), &[verb, "--help"]);
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "Stored secrets (secretsmanager:ID, ssm:NAME) need no confirmation";
        assert!(help.contains(said), "{verb}: {help}");
    }
}

#[test]
fn a_handshake_asks_on_a_terminal_and_only_a_yes_sends() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(SILENT);
    write(folder.path(), &url);
    for (answer, is_sent) in [("", false), ("n", false), ("y", true)] {
        // `script` of util-linux runs a command in a terminal.
        let command =
            format!("{} try --consent -f subscriptions.yaml", env!("CARGO_BIN_EXE_lastmile"));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(folder.path());
        script
            .env("PRIVATE_TOKEN", SECRET)
            .env("SIGNING_KEY", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
        script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let Ok(mut child) = script.spawn() else {
            let line =
                b"SKIPPED: a question on a terminal: the program `script` is not on this machine\n";
            // Past the test harness, which would swallow it.
            std::io::Write::write_all(&mut std::io::stderr(), line).expect("it takes a line");
            return;
        };
        let mut input = child.stdin.take().expect("it is piped");
        std::io::Write::write_all(&mut input, format!("{answer}\n").as_bytes()).expect("an answer");
        let output = child.wait_with_output().expect("it ends");
        let (printed, code) = printed(&output);
        assert!(printed.contains("PRIVATE_TOKEN to 127.0.0.1:"), "{printed}");
        assert!(printed.contains("send the values? [y/N]"), "{printed}");
        assert_eq!(code, Some(if is_sent { 1 } else { 2 }), "{printed}");
        assert_eq!(received.try_recv().is_ok(), is_sent, "{printed}");
    }
}

/// The finding about a variable of the document that [`write`] writes.
fn unset(severity: &str, variable: &str) -> String {
    let place = match variable {
        "PRIVATE_TOKEN" => ("8:45", "headers[0].secret"),
        _ => ("9:25", "signing.secrets[0]"),
    };
    let (at, field) = place;
    format!(
        "subscriptions.yaml:{at}: {severity}: spec.destination.{field}: the environment variable \
         {variable} is not set, so requests that require it are not sent; export {variable}=…, \
         and run the command again"
    )
}

#[test]
fn dev_warns_of_variables_that_are_not_set_at_the_start_and_at_each_save() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(SILENT);
    write(folder.path(), &url);
    let start = |options: &[&str]| {
        let arguments = ["dev", "--port", "0", "--aws-port", "0", "--console-port", "0"];
        let mut command = with_secrets(folder.path(), &[&arguments[..], options].concat());
        command.env_remove("PRIVATE_TOKEN");
        Running::start(command)
    };
    let mut dev = start(&[]);
    dev.line_with(&unset("warning", "PRIVATE_TOKEN"));
    dev.line_with("ready:");
    assert!(!dev.seen().contains(&unset("warning", "SIGNING_KEY")), "{}", dev.seen());
    let path = folder.path().join("subscriptions.yaml");
    let text = std::fs::read_to_string(&path).expect("a file");
    save(&path, &text.replace("SIGNING_KEY", "SIGNING_KEYS"));
    dev.line_with(&unset("warning", "PRIVATE_TOKEN"));
    dev.line_with(&unset("warning", "SIGNING_KEYS"));
    dev.line_with("reloaded: 1 subscription");
    drop(dev);
    let mut json = start(&["--output", "json", "--data", "other"]);
    let line = json.line_with("dev.unset_secrets");
    assert!(line.contains("\"line\":8") && line.contains("PRIVATE_TOKEN"), "{line}");
    assert!(received.try_recv().is_err(), "nothing was sent");
}

#[test]
fn dev_asks_before_a_variable_leaves_this_machine() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    write(folder.path(), "https://hooks.example.com:8443/in");
    let dev = ["dev", "--port", "0", "--aws-port", "0"];
    let mut refused = Running::start(with_secrets(folder.path(), &dev));
    refused.line_with("PRIVATE_TOKEN to hooks.example.com:8443");
    refused.line_with("--env PRIVATE_TOKEN --env SIGNING_KEY");
    assert_eq!(refused.code(), Some(2));
    let allowed = [&dev[..], &["--env", "PRIVATE_TOKEN", "--env", "SIGNING_KEY"]].concat();
    let mut running = Running::start(with_secrets(folder.path(), &allowed));
    running.line_with("PRIVATE_TOKEN to hooks.example.com:8443");
    running.line_with("ready:");
}

#[test]
fn dev_sends_variables_to_this_machine_and_to_no_host_that_the_file_names_later() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(SILENT);
    write(folder.path(), &url);
    let text = std::fs::read_to_string(folder.path().join("subscriptions.yaml")).expect("a file");
    let without_consent = text.replace("    consent: {handshake: eventgrid}\n", "");
    std::fs::write(folder.path().join("subscriptions.yaml"), &without_consent).expect("a file");
    std::fs::write(folder.path().join("event.json"), EVENT).expect("a file can be written");
    let mut dev =
        Running::start(with_secrets(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]));
    let queue = word(&dev.line_with("ready:").replace("queue ", "queue="), "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = |topic| {
        let arguments = ["publish", "--topic", topic, "--queue-url", queue, "event.json"];
        assert_eq!(run(folder.path(), &arguments).1, Some(0));
    };
    publish("shop/orders");
    let request = received.recv_timeout(Duration::from_secs(60)).expect("a request");
    assert!(request.contains(SECRET), "{request}");
    dev.line_with("200 OK");

    let other = without_consent
        .replace("topic: orders, name: a}", "topic: others, name: b}")
        .replace(&url, "https://hooks.example.com/in");
    let both = format!("{without_consent}---\n{other}");
    save(&folder.path().join("subscriptions.yaml"), &both);
    dev.line_with("reloaded: 2 subscriptions");
    publish("shop/others");
    let said = dev.line_with("is not sent to hooks.example.com; start again with --env");
    assert!(!said.contains(SECRET), "{said}");
    publish("shop/orders");
    let request = received.recv_timeout(Duration::from_secs(60)).expect("a request");
    assert!(request.contains(SECRET), "what this machine gets is as before: {request}");
}
