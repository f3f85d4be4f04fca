//! Example records, and catalogues of subscriptions to them.

use delivery::ports::{QueueName, Record};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::sink::Container;
use dialects::Source;
use lastmile_tests::fake_ports::NOW_MS;

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
    dialects::read(&[Source { name: "test", text: &text }])
        .into_result()
        .expect("the subscriptions are valid")
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
    dialects::read(&[Source { name: "test", text: &text }])
        .into_result()
        .expect("the subscriptions are valid")
}

/// These subscriptions and their topics.
pub(crate) fn catalogue_of(subscriptions: impl IntoIterator<Item = Subscription>) -> Catalogue {
    let mut catalogue = Catalogue::default();
    subscriptions.into_iter().for_each(|subscription| catalogue.add_subscription(subscription));
    catalogue
}
