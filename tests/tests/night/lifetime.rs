//! The night itself: events are published for an hour, every destination fails, and both functions run until no message is left.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;
use std::thread;

use deadletter::DeadLetters;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::ports::{Clock as _, QueueName};
use delivery::request::Request;
use delivery::subscription::sink::Container;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use dialects::Source;
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::FakePorts;
use serde_json::Value;
use url::Url;

use crate::container::Stored;
use crate::destinations::Destinations;
use crate::queues::Queues;

/// The begin of the night: 2026-11-20, 20:00 UTC.
const BEGIN_MS: u64 = 1_795_204_800_000;
/// The default container.
const BUCKET: &str = "dead-letters";
/// The time that a destination takes for a response.
const RESPONSE_MS: u64 = 20;
/// The default of `DispatchTimeout`.
const TIMEOUT_MS: u64 = 60 * SECOND_MS;
/// Lambda starts no function meanwhile. The time to live of the first events ends before they get their last attempt.
const THROTTLED_MS: Range<u64> = BEGIN_MS + DAY_MS - 10 * MINUTE_MS..BEGIN_MS + DAY_MS + HOUR_MS;
/// Events of each type.
pub(crate) const EVENTS: u64 = 4;
/// Events for the destination that is down all the time. So many that not each of them is a probe.
pub(crate) const INVOICES: u64 = 120;
/// A message with our attribute and so much data is too large for a queue.
const TOO_LARGE: usize = 1_048_300;

/// The dead letters of one night, which all tests share.
static NIGHT: LazyLock<Vec<Stored>> = LazyLock::new(|| {
    // Real exchanges block, which the thread of an asynchronous test may not.
    thread::spawn(live).join().expect("the night ends")
});

/// The dead letters of the night, by key.
pub(crate) fn letters() -> &'static [Stored] {
    &NIGHT
}

/// Both functions, until every queue is empty. Returns what they have stored.
fn live() -> Vec<Stored> {
    let destinations = Destinations::start();
    let text = destinations.subscriptions();
    let catalogue = dialects::read(&[Source { name: "night", text: &text }]).into_result();
    let ports = FakePorts::new(catalogue.expect("the subscriptions are valid"))
        .starting_at(BEGIN_MS)
        .with_seeded_jitter(0)
        .with_real_exchanges(repeating(destinations));
    let container = Container { bucket: BUCKET.to_owned(), prefix: String::new() };
    let dispatch = Dispatch::new(ports.clone(), container.clone(), None);
    let dead_letters = DeadLetters::new(ports.clone(), container);
    let mut queues = Queues::default();
    publish(&mut queues);
    while let Some(next_ms) = queues.next_ms() {
        let next_ms = if THROTTLED_MS.contains(&next_ms) { THROTTLED_MS.end } else { next_ms };
        ports.advance_ms(next_ms.saturating_sub(ports.now_ms()));
        let now_ms = ports.now_ms();
        let records = queues.receive(now_ms);
        let returned = if records[0].queue == QueueName::DeadLetter {
            ports.run(dead_letters.handle(&records))
        } else {
            let deadline = Deadline::new(now_ms, now_ms + TIMEOUT_MS);
            ports.run(dispatch.handle(&records, &deadline))
        };
        queues.take_sent(&ports);
        let done = records.iter().filter(|record| !returned.contains(&record.message));
        done.for_each(|record| queues.delete(&record.message));
    }
    assert_eq!(ports.visibility_changes(), [], "no queue here hides a message for longer");
    stored(&ports)
}

/// A real exchange takes real time, and a night has thousands. So each destination answers the first event of a type for
/// real, and its answer is repeated.
fn repeating(destinations: Destinations) -> impl FnMut(&Request) -> Exchange + Send {
    let mut known: HashMap<(Url, String), Exchange> = HashMap::new();
    move |request| {
        let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let place = (request.url.clone(), event["type"].to_string());
        let exchange = known.entry(place).or_insert_with(|| destinations.exchange(request)).clone();
        let is_silent = exchange.result == TransportResult::TimedOut;
        let duration_ms = if is_silent { request.timeout_ms } else { RESPONSE_MS };
        Exchange { duration_ms, ..exchange }
    }
}

/// The dead letters in the container, by key. What begins with `_` is beside them.
fn stored(ports: &FakePorts) -> Vec<Stored> {
    let stored = ports.blobs().into_iter().filter_map(|(path, text)| {
        let key = path.strip_prefix(BUCKET)?.strip_prefix('/')?.to_owned();
        (!key.starts_with('_')).then_some(Stored { key, text })
    });
    stored.collect()
}

/// Publishes the events of an hour: invoices all the time, and one of each other type every quarter of an hour.
fn publish(queues: &mut Queues) {
    for number in 0..EVENTS {
        let at_ms = BEGIN_MS + number * 15 * MINUTE_MS;
        for (topic, kind) in [
            ("shop/orders", "order.created"),
            ("shop/orders", "order.paid"),
            ("shop/search", "page.changed"),
            ("shop/payments", "payment.made"),
            ("shop/payments", "payment.refunded"),
            ("shop/ordrs", "order.created"),
        ] {
            queues.publish(topic, event(kind, &format!("{kind}-{number}"), ""), at_ms);
        }
    }
    for number in 0..INVOICES {
        let at_ms = BEGIN_MS + number * HOUR_MS / INVOICES;
        let body = event("invoice.made", &format!("invoice-{number}"), "");
        queues.publish("shop/invoices", body, at_ms);
    }
    queues.publish("shop/orders", "order 17 was paid".to_owned(), BEGIN_MS);
    let large = event("page.changed", "large", &"x".repeat(TOO_LARGE));
    queues.publish("shop/search", large, BEGIN_MS);
}

/// A CloudEvent.
pub(crate) fn event(kind: &str, id: &str, data: &str) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"https://shop.example.com","type":"{kind}","data":"{data}"}}"#
    )
}
