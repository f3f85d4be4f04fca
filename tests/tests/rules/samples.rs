//! The event, the subscription and the delivery that the tables start from.

use std::io::Write as _;

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::subscription::Subscription;
use delivery::subscription::profile::Dialect;

/// When the sample event was published: 2026-11-20T07:03:00.123Z.
pub(crate) const PUBLISHED_MS: u64 = 1_795_158_180_123;

/// A CloudEvent.
pub(crate) const EVENT: &str =
    r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.created"}"#;

/// A subscription with nothing but its dialect's defaults.
pub(crate) fn subscription(dialect: Dialect) -> Subscription {
    let url = "https://billing.example.com/events".parse().expect("well formed");
    Subscription::new("shop/orders/billing".parse().expect("well formed"), dialect, url)
}

/// The sample event for the sample subscription, before its first attempt.
pub(crate) fn delivery() -> Delivery {
    delivery_of(EVENT, Input::CloudEvents)
}

/// The same with another event.
pub(crate) fn delivery_of(text: &str, input: Input) -> Delivery {
    let origin = Origin { message: "4c2b1f5e-9a3d-4e0b-8f6a-7d1c2e3f4a5b".to_owned(), index: 0 };
    Delivery::new(
        Event::recall(&text.into(), input),
        "shop/orders/billing".parse().expect("well formed"),
        origin,
        PUBLISHED_MS,
    )
}

/// An instant response.
pub(crate) fn answered(status: u16, started_ms: u64) -> Exchange {
    let result = TransportResult::Answered { status, retry_after: None, body: Vec::new() };
    Exchange::new(result, started_ms, 0)
}

/// Reports a skipped test, written past the test harness, which would swallow it.
pub(crate) fn skipped(what: &str, missing: &str) {
    let written =
        writeln!(std::io::stderr(), "SKIPPED: {what}: {missing} is not beside the repository");
    written.expect("standard error is writable");
}
