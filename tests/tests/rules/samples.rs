//! The event, the subscription and the delivery that the tables start from, and golden files.

use std::fs;
use std::path::Path;

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::subscription::Subscription;
use delivery::subscription::profile::Dialect;

/// Publication time of the sample event: 2026-11-20T07:03:00.123Z.
pub(crate) const PUBLISHED_MS: u64 = 1_795_158_180_123;

/// The sample event, a CloudEvent.
pub(crate) const EVENT: &str =
    r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.created"}"#;

/// A subscription with nothing but its dialect's defaults.
pub(crate) fn subscription(dialect: Dialect) -> Subscription {
    let url = "https://billing.example.com/events".parse().expect("well formed");
    let name = "shop/orders/billing".parse().expect("well formed");
    let mut subscription = Subscription::new(name, dialect, url);
    // Requests without a schema are then the same in every dialect.
    subscription.destination.plain_json = false;
    subscription
}

/// The sample event for the sample subscription, before its first attempt.
pub(crate) fn delivery() -> Delivery {
    delivery_of(EVENT, Input::CloudEvents)
}

/// A delivery of this event for the sample subscription, before its first attempt.
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

/// Compares with a file below `golden`, or writes the file if `UPDATE_GOLDEN` is set.
#[track_caller]
pub(crate) fn assert_golden(file: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(String::from_utf8_lossy(bytes), String::from_utf8_lossy(&golden), "{file}");
    assert!(bytes == golden, "{file} differs in bytes that are no text");
}
