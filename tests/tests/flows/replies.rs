//! Subscribers that respond with an event: where it is sent, and that a chain of replies ends.

use serde_json::Value;

use crate::CLOUD_EVENT;
use crate::app_fixture::AppFixture;
use crate::reactions::{answers, replies};

const REPLY: &str = r#"{"specversion":"1.0","id":"r1","source":"/billing","type":"order.billed","data":{"n":1.50}}"#;

fn subscription(name: &str, channel: &str, reply: &str) -> String {
    format!(
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  channel: {{apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: {channel}}}\n  \
         subscriber: {{uri: 'http://127.0.0.1:PORT/{name}'}}\n  reply: {reply}\n"
    )
}

fn to_channel(channel: &str) -> String {
    format!(
        "{{ref: {{apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: {channel}}}}}"
    )
}

fn channel(name: &str) -> String {
    format!(
        "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {{name: {name}, namespace: shop}}\n"
    )
}

#[tokio::test]
async fn a_reply_arrives_at_its_address_once_and_unchanged() {
    let documents = [
        channel("orders"),
        subscription("billing", "orders", "{uri: 'http://127.0.0.1:PORT/replies'}"),
    ];
    let app = AppFixture::with_reactions(&documents, |_, _| replies(REPLY)).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(2).await;
    assert_eq!(app.dead_letters_when_idle().await, []);
    let received = app.received(2).await;
    let paths: Vec<&str> = received.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(
        (paths, &received[0].headers["prefer"]),
        (vec!["/billing", "/replies"], &"reply".parse().unwrap())
    );
    assert_eq!(received[1].body, REPLY);
    assert_eq!(received[1].headers["content-type"], "application/cloudevents+json; charset=utf-8");
}

#[tokio::test]
async fn a_plain_response_is_no_reply() {
    let documents = [
        channel("orders"),
        subscription("billing", "orders", "{uri: 'http://127.0.0.1:PORT/replies'}"),
    ];
    let app = AppFixture::with_reactions(&documents, |_, _| answers(200)).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(1).await;
    assert_eq!(app.dead_letters_when_idle().await, []);
    assert_eq!(app.received(1).await.len(), 1);
}

#[tokio::test]
async fn two_channels_that_reply_to_each_other_stop_after_ten_hops() {
    let documents = [
        channel("ping"),
        channel("pong"),
        subscription("pinger", "ping", &to_channel("pong")),
        subscription("ponger", "pong", &to_channel("ping")),
    ];
    let app = AppFixture::with_reactions(&documents, |_, _| replies(REPLY)).await;
    app.publish("shop/ping", CLOUD_EVENT).await;
    app.publish("shop/pong", CLOUD_EVENT).await;
    let letters = app.dead_letters(2).await;
    assert_eq!(app.dead_letters_when_idle().await.len(), 2);
    // One request for each published event, and one for each of the ten replies that follow from
    // it.
    assert_eq!(app.received(22).await.len(), 22);
    for (_, letter) in letters {
        assert_eq!(letter[0]["errorreason"], "ReplyLoop");
        assert_eq!(
            (&letter[0]["errorretry"], &letter[0]["id"]),
            (&Value::from(0), &Value::from("r1"))
        );
    }
}

#[tokio::test]
async fn two_triggers_that_always_answer_make_a_bounded_number_of_requests() {
    let trigger = |name: &str| {
        format!(
            "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec: {{broker: default, subscriber: {{uri: 'http://127.0.0.1:PORT/{name}'}}}}\n"
        )
    };
    let broker = "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: default, namespace: shop}\n";
    let documents = [broker.to_owned(), trigger("a"), trigger("b")];
    let app = AppFixture::with_reactions(&documents, |_, _| replies(REPLY)).await;
    app.publish("shop/default", CLOUD_EVENT).await;
    let letters = app.dead_letters(32).await;
    // The event's own two, four answers to it, and 56 of the 64 that may follow.
    assert_eq!(app.dead_letters_when_idle().await.len(), 32);
    assert_eq!(app.received(62).await.len(), 62);
    for (_, letter) in letters {
        assert_eq!(letter[0]["errorreason"], "ReplyLoop", "{letter}");
    }
}
