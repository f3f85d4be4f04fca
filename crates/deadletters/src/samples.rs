//! Dead letters for the tests of this crate.

use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter};
use delivery::subscription::dead_letter_format::{Format, Layout};
use delivery::time::moment;
use uuid::Uuid;

use crate::ledger::{LedgerEntry, PlannedReplay, ReplayState, delivery_id};

/// Returns a dead letter of shop/orders/billing after two attempts with 503.
pub(crate) fn letter(number: u32) -> StoredDeadLetter {
    let id = Uuid::from_u128(u128::from(number));
    let at_ms = 1_795_158_180_000 + u64::from(number);
    let attempt = |at_ms| StoredAttempt {
        at_ms,
        outcome: "Busy".to_owned(),
        status: Some(503),
        duration_ms: 5,
    };
    StoredDeadLetter {
        id,
        key: format!("shop/orders/billing/2026/11/20/7/{id}.json"),
        subscription: "shop/orders/billing".parse().unwrap(),
        reason: "MaxDeliveryAttemptsExceeded".to_owned(),
        outcome: Some("Busy".to_owned()),
        status: Some(503),
        attempts: 2,
        published_ms: Some(at_ms - 20_000),
        last_attempt_ms: Some(at_ms),
        destination: Some("https://billing.example.com/events".to_owned()),
        last_response: Some("overloaded\nplease wait".to_owned()),
        last_headers: Vec::new(),
        failing: None,
        decided_ms: None,
        history: vec![attempt(at_ms - 10_000), attempt(at_ms)],
        omitted: 0,
        detail: None,
        sink_error: None,
        sink: None,
        traceparent: None,
        replay: None,
        is_reply: false,
        shape: None,
        format: Format::Namespace,
        layout: Layout::Nested,
        mapped: None,
        addresses: None,
        headers: Vec::new(),
        event: format!(
            r#"{{"specversion":"1.0","id":"order-{number}","source":"shop","type":"order.created"}}"#
        ),
        event_id: Some(format!("order-{number}")),
        event_type: Some("order.created".to_owned()),
        source: Some("shop".to_owned()),
    }
}

/// Returns a dead letter in the plan of a job.
pub(crate) fn planned(number: u128) -> PlannedReplay {
    PlannedReplay { key: format!("a/b/c/2026/1/2/3/{}.json", Uuid::from_u128(number)) }
}

/// Returns the entry of a planned dead letter in the ledger of the job `j`, at millisecond 7.
pub(crate) fn entry(number: u128, state: ReplayState) -> LedgerEntry {
    let letter = Uuid::from_u128(number);
    LedgerEntry {
        letter,
        delivery: delivery_id("j", letter),
        state,
        at: moment::rfc3339(7),
        problem: None,
        end: None,
    }
}
