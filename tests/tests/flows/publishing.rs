//! The examples of `docs/guides/publish.md` that need only SQS, run as a reader would; the others run
//! on the emulated AWS.

use lastmile_tests::snippets::{self, Snippet};
use serde_json::{Value, json};

use crate::app_fixture::AppFixture;
use crate::subscription;

const PAGE: &str = "guides/publish.md";

/// Runs the example, which publishes one event, and checks the event that arrives.
async fn publishes(heading: &str, id: &str) {
    let app = AppFixture::start(&[subscription("billing", "/in", "")], &[200]).await;
    let ingress = app.ingress().await;
    let aws = app.stack.aws();
    let (endpoint, queue) = (aws.endpoint(), aws.queue_url("events"));
    let snippet = snippets::under(PAGE, heading);
    let run = move |snippet: Snippet| {
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("EVENTS_QUEUE_URL", &queue),
            ("PUBLISH_URL", &ingress),
            ("TOKEN", "token"),
        ];
        snippet.run(&environment)
    };
    if !tokio::task::spawn_blocking(move || run(snippet)).await.expect("the example runs") {
        return;
    }
    let request = &app.received(1).await[0];
    assert_eq!(request.headers["content-type"], "application/cloudevents+json; charset=utf-8");
    let event: Value = serde_json::from_slice(&request.body).expect("an event is JSON");
    let seen = ["specversion", "id", "source", "type", "data"].map(|name| &event[name]);
    assert_eq!(
        seen,
        [
            &json!("1.0"),
            &json!(id),
            &json!("/shop"),
            &json!("order.created"),
            &json!({"orderId": 7})
        ]
    );
    assert_eq!(app.dead_letters_when_idle().await, []);
}

#[tokio::test]
async fn the_documented_command_publishes_an_event() {
    publishes("AWS CLI", "cli-1").await;
}

#[tokio::test]
async fn the_documented_python_publishes_an_event() {
    publishes("Python", "python-1").await;
}

#[tokio::test]
async fn the_documented_node_program_publishes_an_event() {
    publishes("Node", "node-1").await;
}

#[tokio::test]
async fn the_documented_binary_form_arrives_as_one_document() {
    publishes("Binary form", "binary-1").await;
}

#[tokio::test]
async fn the_documented_request_publishes_an_event() {
    publishes("HTTP", "http-1").await;
}

/// Here, or on the emulated AWS (`emulated_aws/publishers.rs`), or with the command line
/// (`crates/cli/tests/cli`: `samples.rs`, `sample_subscriber.rs` and `publish_moment.rs`).
#[test]
fn every_example_of_the_page_is_run() {
    let all: Vec<(String, String)> = snippets::of_page(PAGE)
        .into_iter()
        .map(|snippet| (snippet.heading, snippet.language))
        .collect();
    let run = [
        ("On your machine", "sh"),
        ("On your machine", "sh"),
        ("AWS CLI", "sh"),
        ("Python", "python"),
        ("Node", "js"),
        ("Binary form", "sh"),
        ("HTTP", "sh"),
        ("With a function", "sh"),
        ("With a function", "sh"),
        ("Delivery at a given time", "sh"),
        ("Delivery at a given time", "yaml"),
        ("Amazon SNS, EventBridge, S3", "yaml"),
        ("SNS", "sh"),
        ("EventBridge", "sh"),
        ("S3", "sh"),
    ];
    assert_eq!(all, run.map(|(heading, language)| (heading.to_owned(), language.to_owned())));
}
