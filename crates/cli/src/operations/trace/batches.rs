//! Finds the deliveries of a request with several events by the `webhook-id` of the request.
//!
//! Separate because no log line contains this id. It is derived from the ids of all deliveries in
//! the request, so the search needs the log lines of several deliveries. Pure.
//!
//! The deliveries of one request belong to one subscription. Their attempts have the same result
//! and duration, and are logged together. Two requests with the same result and duration within
//! [`TOGETHER_MS`] cannot be distinguished, so neither is found.

use std::collections::{BTreeMap, BTreeSet};

use delivery::request::webhook_id;
use local::watch::Line;
use uuid::Uuid;

/// The maximum time between the log lines of one request.
const TOGETHER_MS: u64 = 100;
/// The names of the log lines about attempts.
const ATTEMPTS: [&str; 2] = ["delivery.attempted", "delivery.delivered"];
/// The fields that all deliveries of a request have in common.
const COMMON: [&str; 4] = ["subscription", "status", "outcome", "duration_ms"];

/// Returns the deliveries of the request with this id; empty if the log has no such request.
pub(crate) fn deliveries_of_batch(id: Uuid, lines: &[Line]) -> Vec<Uuid> {
    let mut attempts: BTreeMap<[&str; 4], Vec<(u64, Uuid)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| ATTEMPTS.contains(&line.name.as_str())) {
        if let Ok(delivery) = line.field("delivery_id").parse() {
            attempts
                .entry(COMMON.map(|name| line.field(name)))
                .or_default()
                .push((line.at_ms, delivery));
        }
    }
    for attempts in attempts.values_mut() {
        attempts.sort_unstable();
        for request in attempts.chunk_by(|(before, _), (at, _)| at - before <= TOGETHER_MS) {
            let deliveries: BTreeSet<Uuid> =
                request.iter().map(|(_, delivery)| *delivery).collect();
            let deliveries: Vec<Uuid> = deliveries.into_iter().collect();
            if deliveries.len() > 1 && webhook_id(&deliveries) == id {
                return deliveries;
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    fn attempt(at_ms: u64, delivery: u128, duration_ms: &str) -> Line {
        let fields = [
            ("subscription", "shop/orders/billing".to_owned()),
            ("delivery_id", Uuid::from_u128(delivery).to_string()),
            ("duration_ms", duration_ms.to_owned()),
            ("status", "200".to_owned()),
        ];
        let level = LevelFilter::INFO.into_level().unwrap();
        Line { name: "delivery.delivered".to_owned(), at_ms, level, fields: fields.into() }
    }

    #[test]
    fn a_request_is_found_by_the_deliveries_that_were_logged_together() {
        let lines = [
            attempt(1_000, 2, "7"),
            attempt(1_001, 1, "7"),
            attempt(1_001, 9, "8"),
            attempt(5_000, 3, "7"),
            attempt(5_080, 4, "7"),
        ];
        let [first, second] = [[1, 2], [3, 4]].map(|ids| ids.map(Uuid::from_u128));
        for deliveries in [first, second] {
            assert_eq!(deliveries_of_batch(webhook_id(&deliveries), &lines), deliveries);
        }
        for ids in [&[Uuid::from_u128(9)][..], &[first[0], second[0]]] {
            assert!(deliveries_of_batch(webhook_id(ids), &lines).is_empty());
        }
    }
}
