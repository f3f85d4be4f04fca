use super::*;
use crate::delivery::outcome::Outcome;
use crate::subscription::profile::Dialect;
use crate::subscription::sink::Sink;
use crate::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use crate::waits::{ARRIVAL_MS, Kind, Schedule};

/// 2026-11-20T07:03:00Z.
const PUBLISHED_MS: u64 = 1_795_158_180_000;

/// A subscription with nothing but its dialect's defaults.
fn subscription(dialect: Dialect) -> Subscription {
    let url = "https://billing.example.com/events".parse().unwrap();
    Subscription::new("shop/orders/billing".parse().unwrap(), dialect, url)
}

/// A Knative subscription with this many retries.
fn knative(kind: Kind, retries: u32) -> Subscription {
    let mut subscription = subscription(Dialect::Knative);
    subscription.retry.max_attempts = retries + 1;
    subscription.retry.schedule = Schedule { kind, max_ms: None };
    subscription
}

fn always(outcome: &str) -> Endpoint {
    Endpoint { always: outcome.parse().unwrap(), retry_after: None }
}

fn life(subscription: &Subscription, outcome: &str) -> Life {
    explain(subscription, &always(outcome), PUBLISHED_MS)
}

/// The waits before the second attempt and those after it, in seconds.
fn waits_s(life: &Life) -> Vec<u64> {
    life.attempts.iter().skip(1).map(|attempt| attempt.wait_ms / SECOND_MS).collect()
}

/// The moments of the attempts, in seconds.
fn moments_s(life: &Life) -> Vec<u64> {
    life.attempts.iter().map(|attempt| attempt.at_ms / SECOND_MS).collect()
}

#[test]
fn a_status_may_ask_for_a_longer_first_wait_or_end_the_delivery() {
    assert_eq!(waits_s(&life(&subscription(Dialect::EventGrid), "408"))[0], 120);
    for (dialect, outcome, reason) in [
        (Dialect::EventGrid, "400", Reason::UndeliverableDueToHttpBadRequest),
        (Dialect::EventGrid, "404", Reason::UndeliverableDueToHttpNotFound),
        (Dialect::Native, "302", Reason::UndeliverableDueToRedirect),
        (Dialect::Knative, "blocked", Reason::UndeliverableDueToBlockedAddress),
    ] {
        let mut subscription = subscription(dialect);
        subscription.retry.max_attempts = subscription.retry.max_attempts.max(2);
        let life = life(&subscription, outcome);
        let first = Attempt { attempt: 1, wait_ms: 0, at_ms: 0 };
        assert_eq!(
            (life.attempts, life.reason, life.ended_ms),
            (vec![first], Some(reason), 0),
            "{dialect:?} {outcome}"
        );
    }
}

#[test]
fn success_is_one_attempt_and_no_dead_letter() {
    let life = life(&subscription(Dialect::Native), "204");
    assert_eq!(
        (life.attempts.len(), life.ended_ms, life.reason_name().as_str()),
        (1, 0, "Delivered")
    );
    assert_eq!(life.stored, None);
}

#[test]
fn a_timeout_takes_the_response_timeout_before_each_wait() {
    let mut subscription = knative(Kind::Constant { delay_ms: SECOND_MS }, 2);
    subscription.destination.response_timeout_ms = 30 * SECOND_MS;
    let life = life(&subscription, "timeout");
    assert_eq!((moments_s(&life), waits_s(&life)), (vec![0, 31, 62], vec![1, 1]));
    assert_eq!(life.ended_ms, 92 * SECOND_MS);
}

#[test]
fn retry_after_is_followed_as_seconds_and_as_a_date() {
    let subscription = subscription(Dialect::EventGrid);
    for (asked, wait_s) in
        [("5", 10), ("90", 90), ("86400", 3_600), ("Fri, 20 Nov 2026 07:05:00 GMT", 120)]
    {
        let endpoint =
            Endpoint { always: Always::Status(429), retry_after: Some(asked.to_owned()) };
        assert_eq!(waits_s(&explain(&subscription, &endpoint, PUBLISHED_MS))[0], wait_s, "{asked}");
    }
}

#[test]
fn the_dead_letter_says_where_in_what_form_and_when() {
    let mut subscription = knative(Kind::Constant { delay_ms: 1 }, 0);
    subscription.dead_letter.sink = Sink::Container("letters/shop".parse().unwrap());
    subscription.dead_letter.delay_ms = 5 * MINUTE_MS;
    let stored = life(&subscription, "reset").stored;
    let container = Some("letters/shop".parse().unwrap());
    assert_eq!(stored, Some(Stored { after_ms: 5 * MINUTE_MS, container, format: "knative" }));
    subscription.dead_letter.sink = Sink::None;
    let dropped = life(&subscription, "dns");
    assert_eq!((dropped.reason, dropped.stored), (Some(Reason::MaxDeliveryAttemptsExceeded), None));
}

#[test]
fn every_life_ends_within_the_limits_of_all_dialects() {
    let mut subscription = knative(Kind::Constant { delay_ms: 1 }, 5_000);
    subscription.paused = true;
    assert_eq!(life(&subscription, "500").attempts.len(), 1_000);
    subscription.retry.schedule.kind = Kind::LinearFromZero { delay_ms: 0 };
    assert_eq!(life(&subscription, "refused").attempts.len(), 1_000);
    subscription.retry.schedule.kind = Kind::Exponential { delay_ms: DAY_MS };
    let life = life(&subscription, "500");
    assert_eq!((life.attempts.len(), life.reason), (3, Some(Reason::TimeToLiveExceeded)));
}

#[test]
fn outcomes_are_read_back_and_others_refused() {
    for text in ["100", "599", "timeout", "refused", "reset", "dns", "tls", "blocked"] {
        assert_eq!(text.parse::<Always>().map(|always| always.to_string()), Ok(text.to_owned()));
    }
    for (word, shown) in
        [("Busy", "503"), ("TimedOut", "timeout"), ("Success", "200"), ("aborted", "Aborted")]
    {
        assert_eq!(word.parse::<Always>().map(|always| always.to_string()), Ok(shown.to_owned()));
    }
    for text in ["", "99", "600", "hang", "-1", "200 "] {
        assert!(text.parse::<Always>().is_err_and(|error| error.contains("timeout")), "{text}");
    }
    let none = "Probation".parse::<Always>();
    assert_eq!(
        none,
        Err("Probation cannot result from an attempt, because no request is sent".to_owned())
    );
}

#[test]
fn every_word_for_an_outcome_leads_to_that_outcome() {
    let subscription = subscription(Dialect::Native);
    for outcome in Outcome::ALL.into_iter().filter(|outcome| *outcome != Outcome::Probation) {
        let endpoint = Endpoint { always: outcome.as_str().parse().unwrap(), retry_after: None };
        let exchange = endpoint.exchange(&subscription, 0);
        assert_eq!(exchange.outcome(&subscription.retry), outcome);
    }
}

#[test]
fn the_wait_after_which_it_was_too_late_is_reported_and_jitter_lengthens_waits_within_the_time_to_live()
 {
    let subscription = subscription(Dialect::EventGrid);
    let plain = life(&subscription, "500");
    assert_eq!(plain.last_wait_ms, 12 * HOUR_MS);
    let last = plain.attempts.last().unwrap();
    assert_eq!(plain.ended_ms, last.at_ms + plain.last_wait_ms);
    let most = explain_jittered(&subscription, &always("500"), PUBLISHED_MS, Jitter(u32::MAX));
    let (plain_s, most_s) = (waits_s(&plain), waits_s(&most));
    let longer_s: Vec<u64> = plain_s.iter().map(|wait_s| wait_s * 11 / 10).collect();
    let last = plain_s.len() - 1;
    assert_eq!(most_s[..last], longer_s[..last]);
    // With all of the jitter the last attempt would come after the 24 hours.
    assert_eq!(most.attempts.last().map(|last| last.at_ms), Some(DAY_MS - ARRIVAL_MS));
    assert_eq!(life(&knative(Kind::Constant { delay_ms: 1_000 }, 2), "500").last_wait_ms, 0);
}

#[test]
fn probation_depends_on_the_outcome_and_may_be_off() {
    let mut subscription = subscription(Dialect::Native);
    let first_ms =
        |tested: &Subscription, outcome| probation(tested, &always(outcome)).unwrap().first_ms;
    assert_eq!(first_ms(&subscription, "503"), Some(10 * SECOND_MS));
    for outcome in ["refused", "500", "502", "504"] {
        assert_eq!(first_ms(&subscription, outcome), Some(30 * SECOND_MS), "{outcome}");
    }
    assert_eq!(first_ms(&subscription, "404"), Some(5 * MINUTE_MS));
    assert_eq!((first_ms(&subscription, "400"), first_ms(&subscription, "200")), (None, None));
    let terms = probation(&subscription, &always("timeout")).unwrap();
    assert_eq!((terms.after_failures, terms.longest_ms), (10, 5 * MINUTE_MS));
    subscription.destination.probation = false;
    assert_eq!(probation(&subscription, &always("503")), None);
}
