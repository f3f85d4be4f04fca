//! Composes the headers that Event Grid adds to a delivery (`aeg-…`).
//!
//! The sources are "webhook event delivery" and "Event Grid message delivery and retry" in the
//! documentation of Event Grid. `aeg-delivery-count` is the number of attempts before this one. For
//! a batch, it is the number of the delivery with the most attempts. A version is omitted if the
//! events of a batch have different versions.

use serde_json::value::RawValue;

use crate::delivery::Delivery;
use crate::event::Members;
use crate::event::path::scalar;
use crate::subscription::header::sendable;

/// Returns the headers `aeg-event-type`, `aeg-subscription-name` and `aeg-delivery-count`. Adds
/// `aeg-data-version` if all events in the body have the same data version, and
/// `aeg-metadata-version` in the same way.
pub(super) fn headers(deliveries: &[&Delivery], body: &[u8]) -> Vec<(String, String)> {
    let sent: Vec<&RawValue> = serde_json::from_slice(body).unwrap_or_default();
    let sent: Vec<Members<'_>> =
        sent.iter().filter_map(|event| Members::parse(event.get()).ok()).collect();
    let version = |name: &str| {
        let mut values = sent.iter().map(|event| event.get(name).and_then(scalar));
        let first = values.next()?.filter(|version| !version.is_empty())?;
        values.all(|other| other.as_ref() == Some(&first)).then(|| sendable(&first).value)
    };
    let values = [
        ("aeg-event-type", Some("Notification".to_owned())),
        (
            "aeg-subscription-name",
            deliveries.first().map(|delivery| delivery.subscription.name.to_uppercase()),
        ),
        (
            "aeg-delivery-count",
            deliveries
                .iter()
                .map(|delivery| delivery.attempts)
                .max()
                .map(|count| count.to_string()),
        ),
        ("aeg-data-version", version("dataVersion")),
        ("aeg-metadata-version", version("metadataVersion")),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
