//! `publish --sample`: its events are printed, or published and accepted by the queue, the ingress
//! and the topics of each input.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::programs::{Running, exchange, lastmile, printed, receiver, run, word};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Returns a topic with a subscription for each input. The topic accepts only this input.
fn subscriptions(url: &str) -> String {
    let topics = ["cloudevents", "eventgrid", "custom"].map(|input| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: {input}}}\nspec: {{input: {input}}}\n\
             ---\napiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {input}, name: a}}\nspec: {{destination: {{url: \"{url}\"}}}}\n"
        )
    });
    topics.join("---\n")
}

/// Runs `publish` with this standard input and returns its output.
fn published(folder: &Path, options: &[&str], input: &str) -> (String, Option<i32>) {
    let mut command = lastmile(folder, &[&["publish"], options, &["-"]].concat());
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the program starts");
    let mut stdin = process.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    printed(&process.wait_with_output().expect("it ends"))
}

#[test]
fn every_sample_is_accepted_from_a_pipe_by_the_queue_and_by_the_ingress() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    std::fs::write(folder.path().join("s.yaml"), subscriptions(&url)).expect("a file");
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "-f", "s.yaml"];
    let mut dev = Running::start(lastmile(folder.path(), &arguments));
    let ready = dev.line_with("ready:");
    let queue = word(&ready.replace("queue ", "queue="), "queue=").replace("queue=", "");
    let ingress = word(&ready, "http://").replace("/topics/{namespace}/{topic}", "");
    let address = ingress.trim_start_matches("http://");
    for (kind, input, content_type, events) in [
        ("cloudevents", "cloudevents", "application/cloudevents+json", 1),
        ("eventgrid", "eventgrid", "application/json", 1),
        ("json", "custom", "application/json", 1),
        ("batch", "cloudevents", "application/cloudevents-batch+json", 3),
    ] {
        let samples = ["publish", "--sample", kind, "--type", "order.paid"];
        let (sample, code) = run(folder.path(), &[&samples[..], &["--dry-run"]].concat());
        assert_eq!((sample.lines().count(), code), (1, Some(0)), "{sample}");
        let accepted = (format!("{events} accepted, 0 refused\n"), Some(0));
        let topic = format!("shop/{input}");
        let to_queue = ["--queue-url", &queue, "--topic", &topic];
        let by_queue = run(folder.path(), &[&samples[..], &to_queue].concat());
        assert_eq!(by_queue, accepted, "{kind}");
        let to = format!("{ingress}/topics/{topic}");
        assert_eq!(published(folder.path(), &["--ingress", &to], &sample), accepted, "{kind}");
        // Sends the sample as any HTTP client would.
        let headers = format!("host: {address}\r\ncontent-type: {content_type}\r\n");
        let answer = exchange(address, &format!("POST /topics/{topic}"), &headers, &sample);
        assert!(answer.starts_with("HTTP/1.1 202"), "{kind}: {answer}");
        for _ in 0..3 * events {
            let request = received.recv_timeout(std::time::Duration::from_secs(60));
            assert!(request.expect("a request").contains("order.paid"), "{kind}");
        }
    }
    let four = ["publish", "--sample", "cloudevents", "--count", "4", "--dry-run"];
    let lines = run(folder.path(), &four).0;
    let accepted =
        published(folder.path(), &["--queue-url", &queue, "--topic", "shop/cloudevents"], &lines);
    assert_eq!((lines.lines().count(), accepted.0.as_str()), (4, "4 accepted, 0 refused\n"));
}
