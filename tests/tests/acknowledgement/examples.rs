//! Example events, records, deliveries and subscriptions; one invocation of each function; and what a message carries.

use deadletter::DeadLetters;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::{DeadLetter, Delivery, Origin, Publication};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Message, QueueName, Record};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::profile::Dialect;
use delivery::subscription::sink::Container;
use delivery::table::ItemKey;
use delivery::waits::{Kind, Schedule};
use delivery::wire::{
    read_dead_letter, read_delivery, read_publication, write_dead_letter, write_delivery,
};
use dialects::Source;
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

/// The event of most tests.
pub(crate) const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
/// A deadline two minutes away.
pub(crate) const ENDS_MS: u64 = NOW_MS + 120_000;

/// One invocation of dispatch; the records that go back to their queue.
pub(crate) fn dispatch(ports: &FakePorts, records: &[Record], ends_ms: u64) -> Vec<String> {
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    ports.run(dispatch.handle(records, &Deadline::new(NOW_MS, ends_ms)))
}

/// One invocation of deadletter; the records that go back to their queue.
pub(crate) fn deadletter(ports: &FakePorts, records: &[Record]) -> Vec<String> {
    ports.run(DeadLetters::new(ports.clone(), container()).handle(records))
}

/// A delivery of the event to this subscription.
pub(crate) fn delivery(name: &str) -> Delivery {
    let origin = Origin { message: "published".to_owned(), index: 0 };
    Delivery::new(
        Event::recall(&EVENT.into(), Input::Auto),
        name.parse().expect("a name"),
        origin,
        NOW_MS - 10_000,
    )
}

/// A delivery to s0 that was attempted once, and is due.
pub(crate) fn tried() -> Delivery {
    Delivery { attempts: 1, ..delivery("shop/orders/s0") }
}

/// A delivery to s0 of an event that was published then, and is due at once.
pub(crate) fn published_at(at_ms: u64) -> Delivery {
    let delivery = delivery("shop/orders/s0");
    Delivery { published_ms: at_ms, starts_ms: at_ms, due_ms: at_ms, ..delivery }
}

/// A subscription to `https://<its name>.example.com/` with native defaults but for its waits, 2 4 8 … s.
pub(crate) fn subscription(name: &str) -> Subscription {
    let name: SubscriptionName = name.parse().expect("a name");
    let url = format!("https://{}.example.com/", name.name).parse().expect("an address");
    let mut subscription = Subscription::new(name, Dialect::Native, url);
    subscription.retry.jitter_percent = 0;
    let kind = Kind::Exponential { delay_ms: 1_000 };
    subscription.retry.schedule = Schedule { kind, max_ms: Some(3_600_000) };
    subscription
}

/// The delivery that a message carries.
pub(crate) fn carried(message: &Message) -> Delivery {
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    read_delivery(attribute, Event::recall(&message.body, Input::Auto)).expect("a valid attribute")
}

/// Queue and wait of each message that was sent.
pub(crate) fn waits(ports: &FakePorts) -> Vec<(QueueName, u64)> {
    ports.sent().into_iter().map(|(queue, message)| (queue, message.wait_ms)).collect()
}

/// The published record that a message carries.
pub(crate) fn publication(message: &Message) -> Publication {
    let Attribute::Publication(attribute) = &message.attribute else { panic!("{message:?}") };
    read_publication(attribute).expect("a valid attribute")
}

/// The dead letter that a message carries.
pub(crate) fn letter(message: &Message) -> DeadLetter {
    let Attribute::DeadLetter(attribute) = &message.attribute else { panic!("{message:?}") };
    read_dead_letter(attribute, &message.body).expect("a valid attribute")
}

/// An event so large that no delivery state fits into a message with it.
pub(crate) fn large() -> String {
    format!(
        r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","data":"{}"}}"#,
        "x".repeat(1_048_400)
    )
}

/// A record that the events queue gave up ten days ago, too large to travel.
pub(crate) fn long_given_up() -> Record {
    Record {
        queue: QueueName::DeadLetter,
        first_received_ms: NOW_MS - 10 * 86_400_000,
        ..record("m1", &large())
    }
}

/// A record of the retry queue that carries this delivery.
pub(crate) fn retry_record(delivery: &Delivery) -> Record {
    Record {
        attribute: Some(Attribute::Delivery(write_delivery(delivery))),
        topic: Some(delivery.subscription.topic.to_string()),
        queue: QueueName::Retry,
        ..record("m1", EVENT)
    }
}

/// A record of the dead-letter queue that carries this dead letter.
pub(crate) fn dead_letter_record(letter: &DeadLetter) -> Record {
    Record {
        attribute: Some(Attribute::DeadLetter(write_dead_letter(letter))),
        queue: QueueName::DeadLetter,
        ..record("m1", EVENT)
    }
}

/// The default container.
pub(crate) fn container() -> Container {
    Container { bucket: "letters".to_owned(), prefix: String::new() }
}

/// A published record of topic shop/orders, received for the first time.
pub(crate) fn record(message: &str, body: &str) -> Record {
    Record {
        message: message.to_owned(),
        receipt: message.to_owned(),
        queue: QueueName::Events,
        body: body.into(),
        topic: Some("shop/orders".to_owned()),
        attribute: None,
        group: None,
        earlier_receives: 0,
        unread: 0,
        traceparent: None,
        sent_ms: NOW_MS - 10,
        first_received_ms: NOW_MS,
        receives: 1,
    }
}

/// So many events of topic shop/orders, each in a record of its own.
pub(crate) fn events(name: &str, count: usize) -> Vec<Record> {
    (0..count).map(|number| record(&format!("{name}{number}"), EVENT)).collect()
}

/// The topic shop/orders with this many subscriptions, s0, s1 and so on.
pub(crate) fn subscriptions(count: usize) -> Catalogue {
    catalogue(count, "")
}

/// The topic shop/orders with the subscription s0, whose dead letters go to this sink.
pub(crate) fn subscriptions_with_sink(sink: &str) -> Catalogue {
    catalogue(1, &format!(", deadLetter: {{sink: '{sink}'}}"))
}

/// The topic shop/orders with the subscription s0, whose destination has these further fields.
pub(crate) fn subscriptions_with_destination(more: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s0}}\n\
         spec: {{destination: {{url: 'https://s0.example.com/', {more}}}, retry: {{jitterPercent: 0, timeToLive: PT1H, schedule: {{kind: exponential, delay: PT1S, max: PT1H}}}}}}\n"
    );
    catalogue_from(&text)
}

fn catalogue(count: usize, more: &str) -> Catalogue {
    let topic =
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n"
            .to_owned();
    let subscription = |n: usize| {
        format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s{n}}}\n\
             spec: {{destination: {{url: 'https://s{n}.example.com/'}}, retry: {{jitterPercent: 0, schedule: {{kind: exponential, delay: PT1S, max: PT1H}}}}{more}}}\n"
        )
    };
    let text = (0..count).map(subscription).fold(topic, |text, next| text + &next);
    catalogue_from(&text)
}

/// The item with the limits of the destination of a subscription of the namespace shop.
pub(crate) fn limits_item(subscription: &Subscription) -> ItemKey {
    DestinationKey::new("shop", &subscription.destination.url).limits_item("shop")
}

/// The topics and subscriptions of a file.
pub(crate) fn catalogue_from(text: &str) -> Catalogue {
    let read = dialects::read(&[Source { name: "test", text }]).into_result();
    read.expect("the subscriptions are valid")
}

/// These subscriptions and their topics.
pub(crate) fn catalogue_of(subscriptions: impl IntoIterator<Item = Subscription>) -> Catalogue {
    let mut catalogue = Catalogue::default();
    subscriptions.into_iter().for_each(|subscription| catalogue.add_subscription(subscription));
    catalogue
}
