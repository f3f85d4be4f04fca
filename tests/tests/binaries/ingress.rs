//! The wiring of `functions/ingress/src/main.rs`.

use serde_json::json;

use crate::environment::INGRESS;
use crate::records::EVENT;
use crate::runtime_api::Invocation;
use crate::world::World;

const KEY: &str = "c2hvcC1vcmRlcnMta2V5LW9uZQ==";
pub(crate) const BY_KEYS: [(&str, &str); 3] = [
    ("INGRESS_AUTHORIZATION", "keys"),
    ("PUBLISHER_KEYS", "env:PUBLISH_KEY"),
    ("PUBLISH_KEY", KEY),
];

fn request(key: &str) -> Invocation {
    let headers = json!({"content-type": "application/cloudevents+json", "aeg-sas-key": key});
    let event = json!({"rawPath": "/topics/shop/orders", "rawQueryString": "", "headers": headers, "body": EVENT,
        "requestContext": {"http": {"method": "POST"}, "stage": "$default"}, "isBase64Encoded": false});
    Invocation { event, deadline_in_ms: 30_000, clock_is_ahead_ms: 0 }
}

#[tokio::test]
async fn a_request_with_a_key_is_in_the_events_queue_when_it_is_answered() {
    let world = World::start().await;
    let mut function = world.run(&INGRESS, &BY_KEYS, request(KEY)).await;
    let response = function.response().await;
    assert_eq!(
        (&response["statusCode"], world.held("events").await),
        (&json!(200), 1),
        "{response}"
    );
    let line = function.line("request.published").await;
    assert_eq!((&line["topic"], &line["events"]), (&json!("shop/orders"), &json!(1)));
    assert!(!line.to_string().contains(KEY), "{line}");
}

#[tokio::test]
async fn a_request_with_another_key_is_refused() {
    let world = World::start().await;
    let mut function = world.run(&INGRESS, &BY_KEYS, request("another")).await;
    let response = function.response().await;
    assert_eq!(
        (&response["statusCode"], world.held("events").await),
        (&json!(401), 0),
        "{response}"
    );
    assert_eq!(function.line("request.refused").await["status"], 401);
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_an_answer_that_makes_clients_repeat() {
    let world = World::start().await;
    let absent = world.queue_url("absent");
    let changes = [("INGRESS_AUTHORIZATION", "iam"), ("EVENTS_QUEUE_URL", absent.as_str())];
    let mut function = world.run(&INGRESS, &changes, request("any")).await;
    assert_eq!(function.response().await["statusCode"], 503);
    assert_eq!(function.line("request.unpublished").await["level"], "WARN");
}
