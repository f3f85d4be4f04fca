//! The night itself: events are published for an hour, every destination fails, and both functions run until no message is left.

use std::ops::Range;
use std::sync::LazyLock;
use std::thread;

use deadletter::DeadLetters;
use delivery::ports::{Clock as _, QueueName};
use delivery::subscription::sink::Container;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use dialects::Source;
use dispatch::{Deadline, Dispatch};

use crate::container::{Stored, stored_below};
use crate::destinations::Destinations;
use crate::ports::NightPorts;

/// The begin of the night: 2026-11-20, 20:00 UTC.
const BEGIN_MS: u64 = 1_795_204_800_000;
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
    let container = tempfile::tempdir().expect("a folder can be made");
    let destinations = Destinations::start();
    let text = destinations.subscriptions();
    let catalogue = dialects::read(&[Source { name: "night", text: &text }]).into_result();
    let catalogue = catalogue.expect("the subscriptions are valid");
    let ports = NightPorts::new(BEGIN_MS, catalogue, destinations, container.path());
    publish(&ports);
    let default = Container { bucket: "dead-letters".to_owned(), prefix: String::new() };
    let dispatch = Dispatch::new(ports.clone(), default.clone(), None);
    let dead_letters = DeadLetters::new(ports.clone(), default);
    while let Some(next_ms) = ports.queues(|queues| queues.next_ms()) {
        let next_ms = if THROTTLED_MS.contains(&next_ms) { THROTTLED_MS.end } else { next_ms };
        ports.clock.advance(next_ms.saturating_sub(ports.now_ms()));
        let now_ms = ports.now_ms();
        let records = ports.queues(|queues| queues.receive(now_ms));
        let returned = if records[0].queue == QueueName::DeadLetter {
            ports.clock.run(dead_letters.handle(&records))
        } else {
            let deadline = Deadline::new(now_ms, now_ms + TIMEOUT_MS);
            ports.clock.run(dispatch.handle(&records, &deadline))
        };
        let done = records.iter().filter(|record| !returned.contains(&record.message));
        ports.queues(|queues| done.for_each(|record| queues.delete(&record.message)));
    }
    stored_below(container.path())
}

/// Publishes the events of an hour: invoices all the time, and one of each other type every quarter of an hour.
fn publish(ports: &NightPorts) {
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
            let body = event(kind, &format!("{kind}-{number}"), "");
            ports.queues(|queues| queues.publish(topic, body, at_ms));
        }
    }
    for number in 0..INVOICES {
        let at_ms = BEGIN_MS + number * HOUR_MS / INVOICES;
        let body = event("invoice.made", &format!("invoice-{number}"), "");
        ports.queues(|queues| queues.publish("shop/invoices", body, at_ms));
    }
    let no_event = "order 17 was paid".to_owned();
    ports.queues(|queues| queues.publish("shop/orders", no_event, BEGIN_MS));
    let large = event("page.changed", "large", &"x".repeat(TOO_LARGE));
    ports.queues(|queues| queues.publish("shop/search", large, BEGIN_MS));
}

/// A CloudEvent.
pub(crate) fn event(kind: &str, id: &str, data: &str) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"https://shop.example.com","type":"{kind}","data":"{data}"}}"#
    )
}
