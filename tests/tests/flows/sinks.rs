//! Sinks other than containers, over real HTTP and the queues of the local AWS.

use serde_json::Value;

use crate::CLOUD_EVENT;
use crate::app_fixture::AppFixture;
use crate::reactions::{Reaction, answers};

use local::subscriber::Received;

const ONCE: &str =
    "retry: {maxAttempts: 2, schedule: {kind: constant, delay: PT0.1S}, jitterPercent: 0}";

/// A subscription of shop/orders whose destination is `/orders`, with this sink.
fn with_sink(sink: &str) -> String {
    of_topic("orders", &format!("  {ONCE}\n  deadLetter: {{sink: {sink}, format: knative}}\n"))
}

/// The subscription of this topic of shop; its destination's path is the topic's name.
fn of_topic(topic: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: only}}\n\
         spec:\n  destination: {{url: \"http://127.0.0.1:PORT/{topic}\"}}\n{more}"
    )
}

/// Refuses requests to these paths, and accepts all others.
fn by_path(
    busy: &'static [&'static str],
) -> impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static {
    move |_, request| answers(if busy.contains(&request.path.as_str()) { 503 } else { 200 })
}

fn paths(received: &[Received]) -> Vec<&str> {
    received.iter().map(|request| request.path.as_str()).collect()
}

#[tokio::test]
async fn an_address_gets_the_event_with_the_reason_and_nothing_is_stored() {
    let app = AppFixture::with_reactions(
        &[with_sink("'http://127.0.0.1:PORT/lost'")],
        by_path(&["/orders"]),
    )
    .await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let received = app.received(3).await;
    assert_eq!(app.dead_letters_when_idle().await, []);
    assert_eq!(paths(&received), ["/orders", "/orders", "/lost"]);
    let document: Value = serde_json::from_slice(&received[2].body).expect("JSON");
    assert_eq!(
        (&document["id"], &document["knativeerrorcode"], &document["errorretry"]),
        (&"1".into(), &503.into(), &2.into())
    );
    assert_eq!(document["errorreason"], "MaxDeliveryAttemptsExceeded");
    let text = std::str::from_utf8(&received[2].body).expect("text");
    assert!(
        text.contains(r#""big":12345678901234567890123,"data":{"a":1,"a":"€ 😀"}"#),
        "{document}"
    );
}

#[tokio::test]
async fn an_address_that_fails_too_leads_to_one_dead_letter_with_both_histories() {
    let app = AppFixture::with_reactions(
        &[with_sink("'http://127.0.0.1:PORT/lost'")],
        by_path(&["/orders", "/lost"]),
    )
    .await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let (key, letter) = app.dead_letters(1).await.remove(0);
    assert_eq!(app.dead_letters_when_idle().await.len(), 1);
    assert_eq!(paths(&app.received(4).await), ["/orders", "/orders", "/lost", "/lost"]);
    assert!(key.starts_with("shop/orders/only/"), "{key}");
    let lastmile: Value =
        serde_json::from_str(letter[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        (&lastmile["deadletterreasoncode"], &lastmile["sink"]["deliveryattempts"]),
        (&"MaxDeliveryAttemptsExceeded".into(), &2.into())
    );
    assert_eq!(
        (
            lastmile["history"].as_array().map(Vec::len),
            lastmile["sink"]["history"].as_array().map(Vec::len)
        ),
        (Some(2), Some(2))
    );
}

#[tokio::test]
async fn a_dead_letter_for_a_topic_is_delivered_to_its_subscriptions() {
    let documents = [with_sink("{topic: shop/lost}"), of_topic("lost", "")];
    let app = AppFixture::with_reactions(&documents, by_path(&["/orders"])).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let received = app.received(3).await;
    assert_eq!(app.dead_letters_when_idle().await, []);
    assert_eq!(paths(&received), ["/orders", "/orders", "/lost"]);
    let document: Value = serde_json::from_slice(&received[2].body).expect("JSON");
    assert_eq!(
        (&document["id"], &document["errorreason"]),
        (&"1".into(), &"MaxDeliveryAttemptsExceeded".into())
    );
}

#[tokio::test]
async fn a_cycle_of_topics_ends_in_one_dead_letter_about_the_dead_letter() {
    let cycle =
        format!("  {ONCE}\n  deadLetter: {{sink: {{topic: shop/orders}}, format: knative}}\n");
    let documents = [with_sink("{topic: shop/lost}"), of_topic("lost", &cycle)];
    let app = AppFixture::with_reactions(&documents, by_path(&["/orders", "/lost"])).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let (key, letter) = app.dead_letters(1).await.remove(0);
    assert_eq!(app.dead_letters_when_idle().await.len(), 1);
    assert_eq!(app.received(4).await.len(), 4);
    assert!(key.starts_with("shop/lost/only/"), "{key}");
    let lastmile: Value =
        serde_json::from_str(letter[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        lastmile["sinkerror"],
        "topic shop/orders is the sink, but the dead letter came from it"
    );
}

#[tokio::test]
async fn an_external_queue_gets_the_dead_letter_and_without_one_it_is_in_the_container() {
    for (queue, letters) in [("lost", 0), ("nowhere", 1), ("last-resort", 1)] {
        let sink = format!("'sqs://127.0.0.1:4566/000000000000/{queue}'");
        let app = AppFixture::with_reactions(&[with_sink(&sink)], by_path(&["/orders"])).await;
        let created = app.stack.sqs().create_queue().queue_name("lost").send().await;
        created.expect("the queue of somebody else");
        app.publish("shop/orders", CLOUD_EVENT).await;
        if letters == 0 {
            let document = app.message_of(queue).await;
            assert_eq!(
                (&document["id"], &document["errorreason"]),
                (&"1".into(), &"MaxDeliveryAttemptsExceeded".into())
            );
        } else {
            let (_, letter) = app.dead_letters(1).await.remove(0);
            let lastmile: Value =
                serde_json::from_str(letter[0]["lastmile"].as_str().expect("a text"))
                    .expect("JSON");
            let why = lastmile["sinkerror"].as_str().expect("it says why");
            assert!(why.starts_with(&format!("127.0.0.1:4566/000000000000/{queue}: ")), "{why}");
            assert_eq!(why.contains("a queue of this deployment"), queue == "last-resort", "{why}");
        }
        assert_eq!(app.dead_letters_when_idle().await.len(), letters);
    }
}
