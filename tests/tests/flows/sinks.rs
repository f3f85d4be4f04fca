//! Sinks other than containers, over real HTTP and the queues of the local AWS.

use serde_json::Value;

use crate::CLOUD_EVENT;
use crate::reactions::{Reaction, answers};
use crate::town::Town;

use local::subscriber::Received;

const ONCE: &str =
    "retry: {maxAttempts: 2, schedule: {kind: constant, delay: PT0.1S}, jitterPercent: 0}";

/// A subscription of shop/orders whose destination is `/orders`, with this sink.
fn sinking(sink: &str) -> String {
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
async fn an_address_is_sent_the_event_with_why_and_nothing_is_stored() {
    let town =
        Town::reacting(&[sinking("'http://127.0.0.1:PORT/lost'")], by_path(&["/orders"])).await;
    town.publish("shop/orders", CLOUD_EVENT).await;
    let received = town.received(3).await;
    assert_eq!(town.letters_at_rest().await, []);
    assert_eq!(paths(&received), ["/orders", "/orders", "/lost"]);
    let told: Value = serde_json::from_slice(&received[2].body).expect("JSON");
    assert_eq!(
        (&told["id"], &told["knativeerrorcode"], &told["errorretry"]),
        (&"1".into(), &503.into(), &2.into())
    );
    assert_eq!(told["errorreason"], "MaxDeliveryAttemptsExceeded");
    let text = std::str::from_utf8(&received[2].body).expect("text");
    assert!(text.contains(r#""big":12345678901234567890123,"data":{"a":1,"a":"€ 😀"}"#), "{told}");
}

#[tokio::test]
async fn an_address_that_fails_too_leaves_one_letter_with_both_stories() {
    let town =
        Town::reacting(&[sinking("'http://127.0.0.1:PORT/lost'")], by_path(&["/orders", "/lost"]))
            .await;
    town.publish("shop/orders", CLOUD_EVENT).await;
    let (key, letter) = town.letters(1).await.remove(0);
    assert_eq!(town.letters_at_rest().await.len(), 1);
    assert_eq!(paths(&town.received(4).await), ["/orders", "/orders", "/lost", "/lost"]);
    assert!(key.starts_with("shop/orders/only/"), "{key}");
    let ours: Value =
        serde_json::from_str(letter[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        (&ours["deadletterreasoncode"], &ours["sink"]["deliveryattempts"]),
        (&"MaxDeliveryAttemptsExceeded".into(), &2.into())
    );
    assert_eq!(
        (
            ours["history"].as_array().map(Vec::len),
            ours["sink"]["history"].as_array().map(Vec::len)
        ),
        (Some(2), Some(2))
    );
}

#[tokio::test]
async fn a_topic_has_the_letter_delivered_to_its_subscriptions() {
    let documents = [sinking("{topic: shop/lost}"), of_topic("lost", "")];
    let town = Town::reacting(&documents, by_path(&["/orders"])).await;
    town.publish("shop/orders", CLOUD_EVENT).await;
    let received = town.received(3).await;
    assert_eq!(town.letters_at_rest().await, []);
    assert_eq!(paths(&received), ["/orders", "/orders", "/lost"]);
    let told: Value = serde_json::from_slice(&received[2].body).expect("JSON");
    assert_eq!(
        (&told["id"], &told["errorreason"]),
        (&"1".into(), &"MaxDeliveryAttemptsExceeded".into())
    );
}

#[tokio::test]
async fn topics_that_lead_back_end_in_one_letter_about_the_letter() {
    let back =
        format!("  {ONCE}\n  deadLetter: {{sink: {{topic: shop/orders}}, format: knative}}\n");
    let documents = [sinking("{topic: shop/lost}"), of_topic("lost", &back)];
    let town = Town::reacting(&documents, by_path(&["/orders", "/lost"])).await;
    town.publish("shop/orders", CLOUD_EVENT).await;
    let (key, letter) = town.letters(1).await.remove(0);
    assert_eq!(town.letters_at_rest().await.len(), 1);
    assert_eq!(town.received(4).await.len(), 4);
    assert!(key.starts_with("shop/lost/only/"), "{key}");
    let ours: Value =
        serde_json::from_str(letter[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(ours["sinkerror"], "topic shop/orders is where it came from");
}

#[tokio::test]
async fn a_queue_has_the_letter_and_one_that_is_missing_leaves_it_in_the_container() {
    for (queue, letters) in [("last-resort", 0), ("nowhere", 1)] {
        let sink = format!("'sqs://127.0.0.1:4566/000000000000/{queue}'");
        let town = Town::reacting(&[sinking(&sink)], by_path(&["/orders"])).await;
        town.publish("shop/orders", CLOUD_EVENT).await;
        if letters == 0 {
            let told = town.message_of(queue).await;
            assert_eq!(
                (&told["id"], &told["errorreason"]),
                (&"1".into(), &"MaxDeliveryAttemptsExceeded".into())
            );
        } else {
            let (_, letter) = town.letters(1).await.remove(0);
            let ours: Value = serde_json::from_str(letter[0]["lastmile"].as_str().expect("a text"))
                .expect("JSON");
            let why = ours["sinkerror"].as_str().expect("it says why");
            assert!(why.starts_with("127.0.0.1:4566/000000000000/nowhere: "), "{why}");
        }
        assert_eq!(town.letters_at_rest().await.len(), letters);
    }
}
