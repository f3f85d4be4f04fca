//! Knative: which statuses are retried, and how long a retry waits.
//!
//! The tables of `TestSelectiveRetry`, `TestRetryConfigFromDeliverySpec` and `TestGenerateBackoffFnWithRetryAfter` of
//! `pkg/kncloudevents`, for every status and not for some.

use delivery::delivery::outcome::{Exchange, TransportResult, Verdict, judge};
use delivery::machine::step::{End, settle};
use delivery::subscription::Subscription;
use delivery::subscription::profile::{Dialect, Profile};
use delivery::waits::Jitter;
use lastmile_tests::conformance::{RETRIES, RETRY_AFTER, Results};

use super::knative::catalogue;
use crate::samples::{PUBLISHED_MS, answered, delivery};

pub(super) fn statuses() -> Results {
    let mut results = Results::new(RETRIES);
    let policy = Profile::for_dialect(Dialect::Knative).retry;
    for status in 100..=599 {
        let is_retried =
            matches!(judge(&policy, &answered(status, 0)), Verdict::Retry { least_wait_ms: 0 });
        let expected = status >= 500 || matches!(status, 404 | 408 | 409 | 429);
        results.check(&status.to_string(), is_retried == expected, None);
    }
    for result in
        [TransportResult::TimedOut, TransportResult::SocketError, TransportResult::ResolutionError]
    {
        let verdict = judge(&policy, &Exchange::new(result.clone(), 0, 0));
        let is_retried = matches!(verdict, Verdict::Retry { .. });
        results.check(&format!("{result:?}"), is_retried, None);
    }
    results
}

/// A subscription of a trigger with these fields of `delivery`.
fn trigger(delivery: &str) -> Subscription {
    let catalogue = catalogue(&format!(
        "{{apiVersion: eventing.knative.dev/v1, kind: Trigger, metadata: {{name: t, namespace: n}}, spec: {{broker: b, \
         subscriber: {{uri: 'https://t.example.com/'}}, delivery: {{{delivery}}}}}}}\n---\n\
         {{apiVersion: eventing.knative.dev/v1, kind: Broker, metadata: {{name: b, namespace: n}}}}\n"
    ));
    let subscription = catalogue.subscriptions().next().expect("a trigger");
    Subscription::clone(subscription)
}

/// The wait after the first attempt.
fn wait_ms(subscription: &Subscription, exchange: &Exchange) -> u64 {
    let mut delivery = delivery();
    let end = settle(&mut delivery, subscription, exchange, PUBLISHED_MS, Jitter::NONE).end;
    let End::Retry { wait_ms } = end else { panic!("{end:?}") };
    wait_ms
}

pub(super) fn waits() -> Results {
    let mut results = Results::new(RETRY_AFTER);
    for (policy, delay, waits_ms) in [
        ("linear", "PT2.5S", [2_500, 5_000, 7_500, 10_000, 12_500]),
        ("exponential", "PT1.5S", [3_000, 6_000, 12_000, 24_000, 48_000]),
        ("exponential", "PT0.5S", [1_000, 2_000, 4_000, 8_000, 16_000]),
    ] {
        let retry = trigger(&format!("retry: 5, backoffPolicy: {policy}, backoffDelay: {delay}"));
        let moments = delivery::waits::Moments { first_attempt_ms: 0, outcome_ms: 0 };
        let found = [1, 2, 3, 4, 5].map(|k| retry.retry.schedule.wait_ms(k, moments));
        results.check(&format!("{policy} {delay}"), found == waits_ms, None);
    }
    let date = httpdate(PUBLISHED_MS + 30_000);
    let headers = [
        (429, None),
        (429, Some("30")),
        (429, Some(&*date)),
        (429, Some("soon")),
        (503, Some("30")),
        (500, None),
    ];
    for (max, capped_ms) in
        [("", None), ("PT90S", Some(30_000)), ("PT10S", Some(10_000)), ("PT0S", None)]
    {
        let field = if max.is_empty() { String::new() } else { format!(", retryAfterMax: {max}") };
        let delivery = format!("retry: 1, backoffPolicy: linear, backoffDelay: PT2S{field}");
        let subscription = trigger(&delivery);
        for (status, retry_after) in headers {
            let result = TransportResult::Answered {
                status,
                retry_after: retry_after.map(ToOwned::to_owned),
                body: Vec::new(),
            };
            let found_ms = wait_ms(&subscription, &Exchange::new(result, PUBLISHED_MS, 0));
            let asks = retry_after.is_some_and(|text| text != "soon");
            let expected_ms = capped_ms.filter(|_| asks).unwrap_or(2_000);
            let departs = (max.is_empty() && asks).then_some("longer-retry-after");
            let case = format!("{max:?} {status} {retry_after:?}: {found_ms} ms");
            // A date has whole seconds, and the present may not.
            let is_same = found_ms.abs_diff(expected_ms) < 1_000;
            results.check(&case, is_same, departs);
        }
    }
    results
}

/// The date that is so many milliseconds after 1970, as HTTP writes it.
fn httpdate(at_ms: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms.cast_signed()).expect("a time");
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
