//! Many events in few requests. None is lost, no request exceeds the limit, and a refused event
//! does not affect the others.

use std::collections::BTreeMap;

use delivery::delivery::outcome::Outcome;
use local::subscriber::Received;
use serde_json::Value;

use crate::app_fixture::AppFixture;
use crate::reactions::answers;
use crate::subscription;

/// Returns records of ten events each, with this many events in total. Larger records would be
/// split.
fn records(events: usize) -> Vec<String> {
    let event = |number: usize| {
        format!(r#"{{"specversion":"1.0","id":"e{number}","source":"s","type":"t"}}"#)
    };
    let all: Vec<String> = (0..events).map(event).collect();
    all.chunks(10).map(|ten| format!("[{}]", ten.join(","))).collect()
}

fn ids(request: &Received) -> Vec<String> {
    let events: Vec<Value> = serde_json::from_slice(&request.body).expect("a batch is an array");
    events.iter().map(|event| event["id"].as_str().expect("an id").to_owned()).collect()
}

/// Returns the number of times that each event was accepted.
fn taken<'a>(requests: impl IntoIterator<Item = &'a Received>) -> BTreeMap<String, u32> {
    let mut taken = BTreeMap::new();
    requests.into_iter().flat_map(ids).for_each(|id| *taken.entry(id).or_default() += 1);
    taken
}

#[tokio::test]
async fn all_events_arrive_in_batches_although_every_second_request_is_refused_for_a_while() {
    let batching = "  batch: {maxEvents: 100}\n  \
                   retry: {maxAttempts: 100, jitterPercent: 0, schedule: {kind: constant, delay: PT1S}}";
    let app =
        AppFixture::with_reactions(&[subscription("billing", "/in", batching)], |index, _| {
            answers(if index % 2 == 0 { 503 } else { 200 })
        })
        .await;
    for ten in records(250).chunks(10) {
        app.publish_all("shop/orders", ten).await;
    }
    app.received(1).await;
    assert_eq!(app.dead_letters_when_idle().await, []);
    let received = app.received(1).await;
    let sizes: Vec<usize> = received.iter().map(|request| ids(request).len()).collect();
    let most = sizes.iter().max().copied().unwrap_or_default();
    assert!(most > 10 && most <= 100, "{sizes:?}");
    println!(
        "250 events in {} requests of at most {most}, every second of them refused",
        sizes.len()
    );
    let arrived = taken(
        received.iter().enumerate().filter(|(index, _)| index % 2 == 1).map(|(_, request)| request),
    );
    assert_eq!(arrived.len(), 250);
    assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
}

#[tokio::test]
async fn one_event_that_is_always_refused_becomes_one_dead_letter_and_the_others_arrive() {
    let poisonous = |request: &Received| ids(request).iter().any(|id| id == "e13");
    let app = AppFixture::with_reactions(
        &[subscription("billing", "/in", "  batch: {maxEvents: 100}")],
        move |_, request| answers(if poisonous(request) { 400 } else { 200 }),
    )
    .await;
    app.publish_all("shop/orders", &records(30)).await;
    let (_, letter) = app.dead_letters(1).await.remove(0);
    assert_eq!(app.dead_letters_when_idle().await.len(), 1);
    let properties = &letter["deadletterProperties"];
    assert_eq!(
        (&letter["event"]["id"], &properties["deliveryattempts"]),
        (&Value::from("e13"), &Value::from(2))
    );
    assert_eq!(properties["deadletterreasoncode"], "UndeliverableDueToHttpBadRequest");
    assert_eq!(properties["history"][0]["outcome"], Outcome::BadRequest.as_str());
    let received = app.received(1).await;
    let arrived = taken(received.iter().filter(|request| !poisonous(request)));
    assert_eq!(arrived.len(), 29);
    assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
}
