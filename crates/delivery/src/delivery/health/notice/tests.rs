//! The changes of a destination that lead to a notice, and its CloudEvent.

use serde_json::{Value, json};

use super::*;
use crate::delivery::health::Finding;
use crate::delivery::health::shared::{Attempted, DestinationState, Document as _, Findings};
use crate::delivery::outcome::Outcome;
use crate::subscription::Disable;
use crate::time::duration::{DAY_MS, HOUR_MS};
use crate::time::moment::rfc3339;

fn failing(finding: Finding, at_ms: u64) -> Findings {
    let attempts = vec![Attempted::new(at_ms, Outcome::Busy, Some(503), 7)];
    let findings = Findings::new("https://example.com/".to_owned(), "n/t/s".to_owned());
    Findings { failing: Some((finding, at_ms)), attempts, notifies: true, ..findings }
}

fn kinds(state: &DestinationState) -> Vec<Transition> {
    state.notices.iter().map(|notice| notice.kind).collect()
}

#[test]
fn each_change_is_told_once() {
    let began = failing(Finding::Began { lasts_ms: 10_000 }, 1_000);
    let state = DestinationState::merged(None, &began, 1_000);
    assert_eq!(kinds(&state), [Transition::Failing]);
    let again = failing(Finding::GoesOn { lasts_ms: 20_000 }, 11_000);
    let state = DestinationState::merged(Some(state), &again, 11_000);
    assert_eq!(kinds(&state), [Transition::Failing]);
    let sent = state.notices.clone();
    let state = state.without_notices(&sent);
    let ended = DestinationState::merged(Some(state), &failing(Finding::Ended, 31_000), 31_000);
    assert_eq!(kinds(&ended), [Transition::Recovered]);
    let silent = Findings { notifies: false, ..began };
    assert_eq!(kinds(&DestinationState::merged(None, &silent, 1_000)), []);
}

#[test]
fn a_destination_that_keeps_failing_is_disabled_if_its_subscription_says_so() {
    let disable = Some(Disable { after_ms: 5 * DAY_MS });
    let mut state = None;
    let mut now_ms = 1_000;
    while now_ms < 6 * DAY_MS {
        let finding = Finding::GoesOn { lasts_ms: HOUR_MS };
        let findings = Findings { disable, ..failing(finding, now_ms) };
        let merged = DestinationState::merged(state.take(), &findings, now_ms);
        let is_due = now_ms - 1_000 >= 5 * DAY_MS;
        assert_eq!(merged.disabled.is_some(), is_due, "{now_ms}");
        state = Some(merged);
        now_ms += HOUR_MS;
    }
    let state = state.expect("it was found");
    let disabled = state.disabled.clone().expect("it is disabled");
    assert_eq!(
        (disabled.since_ms, disabled.why.as_str()),
        (1_000 + 5 * DAY_MS, "deliveries failed for P5D")
    );
    assert_eq!(kinds(&state), [Transition::Failing, Transition::Disabled]);
    let enabled = state.enabled(now_ms);
    assert!(enabled.is_healthy() && enabled.disabled.is_none());
    assert_eq!(kinds(&enabled)[2..], [Transition::Enabled]);
}

#[test]
fn an_operator_disables_and_enables_and_has_it_probed() {
    let healthy = DestinationState::healthy("https://example.com/", "n/t/s", 1_000);
    let disabled = healthy.disabled_by_operator(2_000);
    assert_eq!(kinds(&disabled), [Transition::Disabled]);
    let again = disabled.disabled_by_operator(3_000);
    let of_again = again.disabled.clone().expect("it is disabled");
    assert_eq!(of_again.since_ms, 2_000);
    assert_eq!(kinds(&again.enabled(4_000)), [Transition::Disabled, Transition::Enabled]);
    let began = failing(Finding::Began { lasts_ms: HOUR_MS }, 1_000);
    let probed = DestinationState::merged(None, &began, 1_000).probed_now(5_000);
    assert_eq!(probed.failing.map(|failing| failing.until_ms), Some(5_000));
}

#[test]
fn a_notice_is_a_cloud_event_that_says_what_is_known() {
    let began = failing(Finding::Began { lasts_ms: 10_000 }, 1_795_158_180_000);
    let state = DestinationState::merged(None, &began, 1_795_158_180_000);
    let again = DestinationState::read(state.entry().text.as_bytes()).expect("it is one");
    let event: Value = serde_json::from_str(&again.notices[0].event(&again)).expect("JSON");
    assert_eq!(
        event,
        json!({
            "specversion": "1.0",
            "id": state.notices[0].id,
            "source": "/lastmile/destinations",
            "type": "dev.lastmile.destination.failing",
            "subject": "n/t/s",
            "time": rfc3339(1_795_158_180_000),
            "datacontenttype": "application/json",
            "data": {
                "destination": "https://example.com/",
                "subscription": "n/t/s",
                "since": rfc3339(1_795_158_180_000),
                "why": null,
                "lastAttempt": {
                    "at": rfc3339(1_795_158_180_000),
                    "outcome": "Busy",
                    "status": 503,
                    "durationMs": 7,
                },
                "command": "lastmile destinations show n/t/s",
            },
        })
    );
}
