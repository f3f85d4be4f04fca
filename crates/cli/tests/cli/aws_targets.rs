//! Subscriptions that deliver to a service of AWS: the requests that `try` and `dev` send from this
//! machine.

use std::path::Path;
use std::process::Command;

use crate::programs::{Running, lastmile, printed, run as run_in, word};
use crate::sigv4::{Peer, SECRET, TOKEN, assert_hidden, of_person};

const EVENT: &str =
    r#"{"specversion":"1.0","id":"1","source":"/s","type":"order.created","subject":"us/1"}"#;

/// A folder with an event, and a subscription for each of three services.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let document = |(name, arn, action, parameters): (&str, &str, &str, &str)| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
             spec: {{destination: {{aws: {{arn: 'arn:aws:{arn}', action: {action}, parameters: {{{parameters}}}}}}}}}\n"
        )
    };
    let documents = [
        (
            "sqs",
            "sqs:eu-west-1:123456789012:shop.fifo",
            "SendMessage",
            "MessageGroupId: '{{ event.subject }}'",
        ),
        ("sns", "sns:eu-west-1:123456789012:shop", "Publish", "Subject: '{{ event.type }}'"),
        ("lambda", "lambda:eu-west-1:123456789012:function:shop", "Invoke", "Qualifier: live"),
    ];
    std::fs::write(folder.path().join("subscriptions.yaml"), documents.map(document).join("---\n"))
        .expect("a file");
    std::fs::write(folder.path().join("event.json"), EVENT).expect("a file");
    folder
}

/// A program whose requests to targets go to this endpoint, and that lists these targets.
fn program(folder: &Path, peer: &Peer, targets: &str, arguments: &[&str]) -> Command {
    let mut command = lastmile(folder, arguments);
    of_person(&mut command)
        .env("AWS_ENDPOINT_URL", format!("http://{}", peer.address))
        .env("AWS_TARGETS", targets);
    command
}

#[test]
fn what_try_sends_to_a_service_and_the_command_that_it_prints_are_signed() {
    let Some(peer) = Peer::start() else { return };
    let folder = folder();
    for service in ["sqs", "sns", "lambda"] {
        let name = format!("shop/orders/{service}");
        let arguments = ["try", "-f", "subscriptions.yaml", &name, "--event", "event.json"];
        let tried = program(
            folder.path(),
            &peer,
            "shop=arn:aws:*:*:*:shop*,shop=arn:aws:lambda:*:*:function:shop:live",
            &arguments,
        );
        let (printed, code) = printed(&{ tried }.output().expect("the program runs"));
        assert!(code == Some(0) && printed.contains("authorization: [secret]"), "{printed}");
        assert!([SECRET, TOKEN].iter().all(|secret| !printed.contains(secret)), "{printed}");
        assert_eq!(peer.seen()["taken"][service], 1, "{printed}{}", peer.seen());
        let arguments = [&arguments[..], &["--print"]].concat();
        let output = program(folder.path(), &peer, "", &arguments).output().expect("it runs");
        let warned = String::from_utf8_lossy(&output.stderr).contains("old versions of curl");
        assert_eq!(warned, service == "lambda", "{output:?}");
        if warned {
            continue;
        }
        let command = String::from_utf8(output.stdout).expect("a text");
        let host = format!("https://{service}.eu-west-1.amazonaws.com/");
        assert!(command.contains(&host), "{command}");
        let command = command.replacen(&host, &format!("http://{}/", peer.address), 1);
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &format!("{} --fail", command.trim_end())]);
        let ended = of_person(shell).output().expect("a shell");
        assert!(ended.status.success(), "{command}: {ended:?}: {}", peer.seen());
        assert_eq!(peer.seen()["taken"][service], 2, "{command}");
    }
}

#[test]
fn try_sends_nothing_to_a_target_that_the_variable_does_not_list() {
    let Some(peer) = Peer::start() else { return };
    let folder = folder();
    let tried = ["try", "-f", "subscriptions.yaml", "shop/orders/sqs", "--sample"];
    for targets in ["", "bank=arn:aws:sqs:*:*:*", "shop=arn:aws:sqs:us-east-1:*:*"] {
        let output = program(folder.path(), &peer, targets, &tried).output();
        let (printed, code) = printed(&output.expect("the program runs"));
        let expected = "which AWS_TARGETS does not list for the namespace shop; add \
                        shop=arn:aws:sqs:eu-west-1:123456789012:shop.fifo to the environment \
                        variable AWS_TARGETS, and run the command again; requests are signed \
                        with your own AWS credentials";
        assert!(code == Some(1) && printed.contains(expected), "{printed}");
        assert!(printed.contains("nothing was sent"), "{printed}");
    }
    let seen = peer.seen();
    assert_eq!((&seen["refused"], &seen["taken"]), (&0.into(), &serde_json::json!({})));
}

#[test]
fn dev_delivers_to_the_targets_that_are_listed_and_says_how_to_list_the_others() {
    let Some(peer) = Peer::start() else { return };
    let folder = folder();
    let dev = ["dev", "--port", "0", "--aws-port", "0", "--no-console"];
    let listed = "shop=arn:aws:sqs:eu-west-1:123456789012:shop.fifo,shop=arn:aws:sns:*:*:shop";
    let mut running = Running::start(program(folder.path(), &peer, listed, &dev));
    let warned = running.line_with("shop/orders/lambda delivers to");
    for part in ["subscriptions.yaml:", "warning: aws: ", "add shop=arn:aws:lambda:eu-west-1"] {
        assert!(warned.contains(part), "{part} in {warned}");
    }
    let ready = running.line_with("ready:").replace("queue ", "queue=");
    let queue = word(&ready, "queue=");
    let queue = queue.trim_start_matches("queue=");
    let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
    assert_eq!(run_in(folder.path(), &publish).1, Some(0));
    running.wait_for_lines(" 200 OK", 2);
    running.wait_for_lines("AWS_TARGETS does not list arn:aws:lambda", 1);
    assert_eq!(peer.seen()["taken"], serde_json::json!({"sns": 1, "sqs": 1}));
    running.signal("INT");
    running.code();
    assert_hidden(&running, folder.path(), &[SECRET, TOKEN, "Signature="]);
}
