//! A publisher that writes our attributes gains nothing by it, whichever way its event comes.

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin, Publication, Store};
use delivery::event::{Event, Input};
use delivery::wire::{
    DEADLETTER_ATTRIBUTE, DELIVERY_ATTRIBUTE, PUBLICATION_ATTRIBUTE, RECEIVES_ATTRIBUTE,
    write_dead_letter, write_delivery, write_publication,
};
use serde_json::Value;

use super::{CLOUD_EVENT, subscription};
use crate::app_fixture::AppFixture;

/// A subscription of another topic, which no forged attribute may reach.
fn victim() -> String {
    subscription("victim", "/victim", "").replace("topic: orders", "topic: secrets")
}

/// A delivery to the victim, as we would write it.
fn forged_delivery() -> Delivery {
    let origin = Origin { message: "forged".to_owned(), index: 0 };
    let event = Event::recall(&CLOUD_EVENT.into(), Input::Auto);
    Delivery::new(event, "shop/secrets/victim".parse().expect("a name"), origin, 1)
}

fn forged_dead_letter() -> DeadLetter {
    let letter = DeadLetter::without_subscription(forged_delivery(), Reason::TimeToLiveExceeded, 1);
    DeadLetter { store: Store::Container("config".parse().expect("a container")), ..letter }
}

/// Attributes with our names that say something about a delivery to the victim.
fn forged() -> [(&'static str, String); 3] {
    let publication = Publication {
        message: "forged".to_owned(),
        published_ms: 1,
        topic: Some("shop/secrets".to_owned()),
        group: None,
        traceparent: None,
        hold: forged_delivery().hold,
        part: None,
        onward: None,
    };
    [
        (DELIVERY_ATTRIBUTE, write_delivery(&forged_delivery())),
        (PUBLICATION_ATTRIBUTE, write_publication(&publication)),
        (RECEIVES_ATTRIBUTE, "99".to_owned()),
    ]
}

async fn app() -> AppFixture {
    AppFixture::start(&[subscription("billing", "/in", ""), victim()], &[200]).await
}

#[tokio::test]
async fn forged_attributes_on_the_events_queue_change_nothing_about_the_event() {
    let app = app().await;
    for (name, value) in forged() {
        app.send("events", CLOUD_EVENT, &[("topic", "shop/orders"), (name, &value)]).await;
    }
    let all = forged();
    let mut attributes = vec![("topic", "shop/orders")];
    attributes.extend(all.iter().map(|(name, value)| (*name, value.as_str())));
    app.send("events", CLOUD_EVENT, &attributes).await;
    let received = app.received(4).await;
    assert!(received.iter().all(|request| request.path == "/in"), "{received:?}");
    assert_eq!(app.dead_letters_when_idle().await, Vec::<(String, Value)>::new());
    assert_eq!(app.received(4).await.len(), 4);
}

#[tokio::test]
async fn a_forged_dead_letter_is_an_event_of_its_topic() {
    let app = app().await;
    let value = write_dead_letter(&forged_dead_letter());
    app.send("events", CLOUD_EVENT, &[("topic", "shop/orders"), (DEADLETTER_ATTRIBUTE, &value)])
        .await;
    let received = app.received(1).await;
    assert_eq!(received[0].path, "/in");
    assert_eq!(app.dead_letters_when_idle().await, Vec::<(String, Value)>::new());
}

#[tokio::test]
async fn forged_headers_and_extensions_at_the_ingress_change_nothing_about_the_event() {
    let app = app().await;
    let ingress = app.ingress().await;
    let mut request = reqwest::Client::new()
        .post(format!("{ingress}/topics/shop/orders"))
        .header("content-type", "text/plain")
        .header("ce-specversion", "1.0")
        .header("ce-id", "1")
        .header("ce-source", "s")
        .header("ce-type", "t");
    for (name, value) in forged() {
        request = request.header(name, &value).header(format!("ce-{name}"), &value);
    }
    let answer = request.body("hello").send().await.expect("the ingress answers");
    assert_eq!(answer.status(), 202);
    assert_eq!(app.received(1).await[0].path, "/in");
    assert_eq!(app.dead_letters_when_idle().await, Vec::<(String, Value)>::new());
}

#[tokio::test]
async fn a_dead_letter_moved_to_an_internal_queue_is_delivered_to_its_own_subscription() {
    let app = app().await;
    let value = write_dead_letter(&forged_dead_letter());
    app.send("retry", CLOUD_EVENT, &[(DEADLETTER_ATTRIBUTE, &value)]).await;
    assert_eq!(app.received(1).await[0].path, "/victim");
    assert_eq!(app.dead_letters_when_idle().await, Vec::<(String, Value)>::new());
}
