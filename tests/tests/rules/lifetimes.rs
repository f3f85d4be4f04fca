//! Whole lifetimes of deliveries, by `arrive` and `settle` alone: when each attempt is made, and how they end.
//!
//! The lifetimes that the documents of Knative and Event Grid work out are in `conformance/tables.rs`.

use delivery::delivery::Store;
use delivery::delivery::outcome::{Exchange, TransportResult, Verdict};
use delivery::delivery::reason::Reason;
use delivery::machine::step::{Arrival, End, arrive, end_without_success, left_to_live_ms, settle};
use delivery::subscription::Subscription;
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::{ATTEMPTS_MAX, Dialect, LIFETIME_MAX_MS};
use delivery::subscription::sink::Sink;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::{Jitter, Kind, Schedule};

use crate::samples::{PUBLISHED_MS, answered, delivery, subscription};

/// A lifetime, in milliseconds since publication.
#[derive(Debug, PartialEq)]
pub(crate) struct Lifetime {
    pub(crate) attempts: Vec<u64>,
    pub(crate) ended: u64,
    /// `None` means delivered.
    reason: Option<Reason>,
}

/// More steps than any delivery may take.
const STEPS_MAX: u32 = 2 * ATTEMPTS_MAX;

/// Runs a delivery with instant responses; `status` returns the status of attempt `n` (1 for the
/// first).
fn run_lifetime(subscription: &Subscription, status: impl Fn(u32) -> u16) -> Lifetime {
    let mut delivery = delivery();
    let mut now_ms = PUBLISHED_MS;
    let mut attempts = Vec::new();
    for _ in 0..STEPS_MAX {
        let end = match arrive(&delivery, subscription, now_ms) {
            Arrival::NotDue { wait_ms } => End::Retry { wait_ms },
            Arrival::Ended(reason) => End::Drop(reason),
            Arrival::Forward(_) => End::Done,
            Arrival::Attempt => {
                attempts.push(now_ms - PUBLISHED_MS);
                let exchange = answered(status(delivery.attempts + 1), now_ms);
                settle(&mut delivery, subscription, &exchange, now_ms, Jitter::NONE).end
            }
        };
        let reason = match end {
            End::Retry { wait_ms } => {
                now_ms += wait_ms;
                continue;
            }
            End::Done => None,
            End::DeadLetter(letter) | End::ToSink(letter) => letter.reason.known(),
            End::Drop(reason) => Some(reason),
        };
        return Lifetime { attempts, ended: now_ms - PUBLISHED_MS, reason };
    }
    panic!("no end after {STEPS_MAX} steps: {subscription:?}");
}

pub(crate) fn always_500(subscription: &Subscription) -> Lifetime {
    run_lifetime(subscription, |_| 500)
}

pub(crate) fn seconds(times: &[u64]) -> Vec<u64> {
    times.iter().map(|seconds| seconds * SECOND_MS).collect()
}

/// The dialect's defaults with another limit of attempts and another time to live.
pub(crate) fn limited(
    dialect: Dialect,
    max_attempts: u32,
    time_to_live_ms: Option<u64>,
) -> Subscription {
    let mut subscription = subscription(dialect);
    subscription.retry.max_attempts = max_attempts;
    subscription.retry.time_to_live_ms = time_to_live_ms;
    subscription
}

/// Retries at this interval, with no limits except those of every dialect.
fn unlimited(delay_ms: u64) -> Subscription {
    let mut subscription = limited(Dialect::Native, u32::MAX, None);
    subscription.retry.schedule = Schedule { kind: Kind::Constant { delay_ms }, max_ms: None };
    subscription
}

#[test]
fn each_dialect_follows_its_defaults() {
    let exceeded = Some(Reason::MaxDeliveryAttemptsExceeded);
    let kubernetes: Vec<u64> = [0, 60].into_iter().chain((1..=11).map(|k| 60 + 600 * k)).collect();
    // 5 s, doubled each time, at most two hours.
    let waits = (0..19).map(|k| (5_u64 << k).min(7_200));
    let passed = waits.scan(0, |at_s, wait_s| {
        *at_s += wait_s;
        Some(*at_s)
    });
    let native: Vec<u64> = [0].into_iter().chain(passed).collect();
    let event_grid = [0, 10, 40, 100, 400, 1_000, 2_800, 6_400, 17_200, 38_800, 82_000];
    let expired = Some(Reason::TimeToLiveExceeded);
    for (dialect, attempts_s, ended_s, reason) in [
        (Dialect::Knative, vec![0], 0, exceeded),
        (Dialect::EventGrid, event_grid.into(), 125_200, expired),
        (Dialect::EventGridResource, event_grid.into(), 125_200, expired),
        (
            Dialect::EventGridNamespace,
            vec![0, 10, 30, 60, 300, 600, 900, 1_200, 1_500, 1_800],
            1_800,
            exceeded,
        ),
        (Dialect::EventGridKubernetes, kubernetes, 7_260, expired),
        (Dialect::Native, native, 67_835, exceeded),
    ] {
        let lifetime = always_500(&subscription(dialect));
        assert_eq!(
            lifetime,
            Lifetime { attempts: seconds(&attempts_s), ended: ended_s * SECOND_MS, reason },
            "{dialect:?}"
        );
    }
}

#[test]
fn a_success_ends_a_delivery_even_at_its_last_attempt() {
    for dialect in Dialect::ALL {
        let lifetime =
            run_lifetime(
                &limited(dialect, 3, None),
                |attempt| if attempt == 3 { 200 } else { 500 },
            );
        assert_eq!((lifetime.attempts.len(), lifetime.reason), (3, None), "{dialect:?}");
    }
}

#[test]
fn no_delivery_makes_more_than_a_thousand_attempts() {
    let lifetime = always_500(&unlimited(SECOND_MS));
    assert_eq!(lifetime.attempts.len(), 1_000);
    assert_eq!(
        (lifetime.ended, lifetime.reason),
        (999 * SECOND_MS, Some(Reason::MaxDeliveryAttemptsExceeded))
    );
}

#[test]
fn no_delivery_lives_longer_than_fourteen_days() {
    let lifetime = always_500(&unlimited(DAY_MS));
    assert_eq!(lifetime.attempts, (0..14).map(|day| day * DAY_MS).collect::<Vec<_>>());
    assert_eq!((lifetime.ended, lifetime.reason), (13 * DAY_MS, Some(Reason::TimeToLiveExceeded)));
}

#[test]
fn a_wait_that_would_pass_the_fourteen_days_is_not_begun() {
    for (kind, attempts) in [
        // 28 days: the first wait of an exponential schedule is twice its delay.
        (Kind::Exponential { delay_ms: 14 * DAY_MS }, vec![0]),
        (Kind::Constant { delay_ms: 14 * DAY_MS }, vec![0]),
        (Kind::Constant { delay_ms: 14 * DAY_MS - 1 }, vec![0, 14 * DAY_MS - 1]),
        (Kind::Waits { waits_ms: [DAY_MS, 14 * DAY_MS].into() }, vec![0, DAY_MS]),
    ] {
        let mut subscription = unlimited(DAY_MS);
        subscription.retry.schedule.kind = kind.clone();
        let ended = attempts.last().copied().unwrap();
        let expected = Lifetime { attempts, ended, reason: Some(Reason::TimeToLiveExceeded) };
        assert_eq!(always_500(&subscription), expected, "{kind:?}");
    }
}

#[test]
fn a_delivery_without_a_further_wait_is_dead_lettered_under_the_hour_of_its_last_attempt() {
    let mut delivery = delivery();
    let exchange = answered(500, PUBLISHED_MS);
    let subscription = unlimited(14 * DAY_MS);
    let end = settle(&mut delivery, &subscription, &exchange, PUBLISHED_MS, Jitter::NONE).end;
    let End::DeadLetter(letter) = end else { panic!("{end:?}") };
    assert_eq!((letter.delivery.due_ms, letter.decided_ms), (PUBLISHED_MS, PUBLISHED_MS));
}

#[test]
fn an_event_that_is_too_old_on_its_first_arrival_is_not_attempted() {
    let subscription = limited(Dialect::Native, 10, Some(MINUTE_MS));
    for (age_ms, arrival) in [
        (0, Arrival::Attempt),
        (MINUTE_MS - 1, Arrival::Attempt),
        (MINUTE_MS, Arrival::Ended(Reason::TimeToLiveExceeded)),
        (LIFETIME_MAX_MS, Arrival::Ended(Reason::TimeToLiveExceeded)),
    ] {
        assert_eq!(arrive(&delivery(), &subscription, PUBLISHED_MS + age_ms), arrival, "{age_ms}");
    }
}

#[test]
fn a_delivery_that_is_not_due_is_postponed_by_the_rest_of_its_wait_whatever_its_age() {
    let subscription = limited(Dialect::Native, 10, Some(1));
    let mut delivery = delivery();
    delivery.due_ms = PUBLISHED_MS + HOUR_MS;
    let before = delivery.clone();
    for (age_ms, wait_ms) in [(0, HOUR_MS), (2, HOUR_MS - 2), (HOUR_MS - 1, 1)] {
        assert_eq!(
            arrive(&delivery, &subscription, PUBLISHED_MS + age_ms),
            Arrival::NotDue { wait_ms }
        );
    }
    assert_eq!(delivery, before);
    let expired = Arrival::Ended(Reason::TimeToLiveExceeded);
    assert_eq!(arrive(&delivery, &subscription, PUBLISHED_MS + HOUR_MS), expired);
}

#[test]
fn a_clock_behind_the_publication_time_postpones_the_delivery() {
    let arrival = arrive(&delivery(), &subscription(Dialect::Native), PUBLISHED_MS - 5);
    assert_eq!(arrival, Arrival::NotDue { wait_ms: 5 });
}

#[test]
fn a_paused_delivery_ends_at_once_whether_it_is_due_or_not() {
    let mut subscription = limited(Dialect::Native, 10, Some(MINUTE_MS));
    subscription.paused = true;
    let mut delivery = delivery();
    for due_ms in [PUBLISHED_MS, PUBLISHED_MS + HOUR_MS] {
        delivery.due_ms = due_ms;
        let arrival = arrive(&delivery, &subscription, PUBLISHED_MS + 1);
        assert_eq!(arrival, Arrival::Ended(Reason::Paused), "{due_ms}");
    }
    subscription.paused = false;
    delivery.due_ms = PUBLISHED_MS;
    assert_eq!(arrive(&delivery, &subscription, PUBLISHED_MS), Arrival::Attempt);
}

#[test]
fn what_a_person_has_stopped_is_stored_at_once_whatever_becomes_of_other_dead_letters() {
    let sinks = [
        Sink::None,
        Sink::Container("others".parse().expect("a container")),
        Sink::Address("https://sink.example.com/".parse().expect("a URL")),
        Sink::Topic("shop/letters".parse().expect("a topic")),
    ];
    for sink in sinks {
        let mut subscription = limited(Dialect::EventGrid, 10, None);
        subscription.dead_letter.sink = sink.clone();
        for reason in [Reason::Paused, Reason::DestinationDisabled] {
            let end = end_without_success(&delivery(), &subscription, reason, PUBLISHED_MS + 7);
            let End::DeadLetter(letter) = end else { panic!("{end:?}") };
            assert!(letter.is_set_aside());
            assert_eq!(
                (&letter.store, letter.not_before_ms),
                (&Store::DefaultContainer, PUBLISHED_MS + 7),
                "{sink:?}"
            );
        }
    }
}

#[test]
fn a_later_start_moves_the_time_to_live_and_not_the_14_days() {
    const DAYS_13_MS: u64 = 13 * DAY_MS;
    for (delay_ms, time_to_live_ms, last_ms) in [
        (0, Some(HOUR_MS), HOUR_MS - 1),
        (2 * HOUR_MS, Some(HOUR_MS), 3 * HOUR_MS - 1),
        (DAYS_13_MS, Some(HOUR_MS), DAYS_13_MS + HOUR_MS - 1),
        (DAYS_13_MS, Some(7 * DAY_MS), LIFETIME_MAX_MS - 1),
        (2 * HOUR_MS, None, LIFETIME_MAX_MS - 1),
    ] {
        let subscription = limited(Dialect::Native, 10, time_to_live_ms);
        let delivery = delivery().delayed(delay_ms);
        let arrived = |after_ms| arrive(&delivery, &subscription, PUBLISHED_MS + after_ms);
        let case = format!("{delay_ms} {time_to_live_ms:?}");
        if let Some(before_ms) = delay_ms.checked_sub(1) {
            assert_eq!(arrived(before_ms), Arrival::NotDue { wait_ms: 1 }, "{case}");
            assert_eq!(arrived(0), Arrival::NotDue { wait_ms: delay_ms }, "{case}");
        }
        let ended = Arrival::Ended(Reason::TimeToLiveExceeded);
        let arrivals = [delay_ms, last_ms, last_ms + 1].map(arrived);
        assert_eq!(arrivals, [Arrival::Attempt, Arrival::Attempt, ended], "{case}");
        let left_ms =
            |after_ms| left_to_live_ms(&delivery, &subscription.retry, PUBLISHED_MS + after_ms);
        assert_eq!([last_ms, last_ms + 1].map(left_ms), [1, 0], "{case}");
    }
}

#[test]
fn jitter_does_not_move_an_attempt_past_the_time_to_live() {
    const MINUTES_10_MS: u64 = 10 * MINUTE_MS;
    let (last_ms, lifetime_ms) = (LIFETIME_MAX_MS - 1, LIFETIME_MAX_MS);
    for (delay_ms, time_to_live_ms, due_ms, is_in_time) in [
        (MINUTES_10_MS, None, 11 * MINUTE_MS, true),
        (MINUTES_10_MS, Some(12 * MINUTE_MS), 11 * MINUTE_MS, true),
        (MINUTES_10_MS, Some(630_000), 627_000, true),
        (MINUTES_10_MS, Some(600_001), MINUTES_10_MS, true),
        // Its time to live is over by then, also without jitter: it waits and expires when it is due.
        (MINUTES_10_MS, Some(600_000), 11 * MINUTE_MS, false),
        (MINUTES_10_MS, Some(MINUTE_MS), 11 * MINUTE_MS, false),
        // Nor does jitter move it past the 14 days.
        (13 * DAY_MS, None, lifetime_ms - 3 * SECOND_MS, true),
        (13 * DAY_MS, Some(20 * DAY_MS), lifetime_ms - 3 * SECOND_MS, true),
        (last_ms, None, last_ms, true),
    ] {
        let mut subscription = limited(Dialect::Native, 10, time_to_live_ms);
        let kind = Kind::Constant { delay_ms };
        subscription.retry.schedule = Schedule { kind, max_ms: None };
        subscription.retry.jitter_percent = 10;
        let mut delivery = delivery();
        let (exchange, full) = (answered(500, PUBLISHED_MS), Jitter(u32::MAX));
        let end = settle(&mut delivery, &subscription, &exchange, PUBLISHED_MS, full).end;
        let case = format!("{delay_ms} {time_to_live_ms:?}");
        assert_eq!(end, End::Retry { wait_ms: due_ms }, "{case}");
        let arrival = arrive(&delivery, &subscription, delivery.due_ms);
        assert_eq!(arrival == Arrival::Attempt, is_in_time, "{case}");
    }
}

#[test]
fn a_lowered_maximum_of_attempts_ends_a_delivery_without_a_request() {
    let mut subscription = limited(Dialect::Native, 10, None);
    let mut delivery = delivery();
    for _ in 0..3 {
        let now_ms = delivery.due_ms;
        let end =
            settle(&mut delivery, &subscription, &answered(500, now_ms), now_ms, Jitter::NONE).end;
        assert!(matches!(end, End::Retry { .. }));
    }
    let due_ms = delivery.due_ms;
    for (max_attempts, arrival) in [
        (4, Arrival::Attempt),
        (3, Arrival::Ended(Reason::MaxDeliveryAttemptsExceeded)),
        (2, Arrival::Ended(Reason::MaxDeliveryAttemptsExceeded)),
    ] {
        subscription.retry.max_attempts = max_attempts;
        assert_eq!(arrive(&delivery, &subscription, due_ms), arrival, "{max_attempts}");
    }
}

#[test]
fn in_the_event_grid_dialects_the_last_attempt_has_the_limit_as_reason_whatever_its_status() {
    let refused = Some(Reason::UndeliverableDueToHttpPayloadTooLarge);
    let exceeded = Some(Reason::MaxDeliveryAttemptsExceeded);
    for (dialect, at_the_last) in [
        (Dialect::Knative, refused),
        (Dialect::EventGrid, exceeded),
        (Dialect::EventGridResource, exceeded),
        (Dialect::EventGridNamespace, exceeded),
        (Dialect::Native, refused),
    ] {
        let on_413_at = |attempt| {
            run_lifetime(&limited(dialect, 3, None), move |n| if n == attempt { 413 } else { 500 })
        };
        let (second, third) = (on_413_at(2), on_413_at(3));
        assert_eq!((second.attempts.len(), second.reason), (2, refused), "{dialect:?}");
        assert_eq!((third.attempts.len(), third.reason), (3, at_the_last), "{dialect:?}");
    }
    let kubernetes = run_lifetime(&limited(Dialect::EventGridKubernetes, 3, None), |_| 413);
    assert_eq!((kubernetes.attempts.len(), kubernetes.reason), (3, exceeded));
}

#[test]
fn a_wait_starts_when_the_outcome_is_known_and_settling_late_shortens_it() {
    let subscription = subscription(Dialect::EventGrid);
    let exchange = Exchange::new(TransportResult::TimedOut, PUBLISHED_MS, 30 * SECOND_MS);
    for (late_ms, wait_ms) in [(0, 10_000), (4_000, 6_000), (10_000, 0), (60_000, 0)] {
        let mut delivery = delivery();
        let now_ms = exchange.ended_ms() + late_ms;
        let settled = settle(&mut delivery, &subscription, &exchange, now_ms, Jitter::NONE);
        assert_eq!(settled.end, End::Retry { wait_ms }, "{late_ms}");
        assert_eq!(delivery.due_ms, PUBLISHED_MS + 40 * SECOND_MS, "{late_ms}");
    }
}

#[test]
fn a_namespace_that_responds_slowly_skips_no_scheduled_time() {
    let subscription = limited(Dialect::EventGridNamespace, 10, None);
    let mut delivery = delivery();
    let mut starts = Vec::new();
    for _ in 0..7 {
        let started_ms = delivery.due_ms;
        starts.push((started_ms - PUBLISHED_MS) / SECOND_MS);
        let exchange = Exchange::new(TransportResult::TimedOut, started_ms, 30 * SECOND_MS);
        let end =
            settle(&mut delivery, &subscription, &exchange, exchange.ended_ms(), Jitter::NONE).end;
        assert!(matches!(end, End::Retry { .. }));
    }
    // 30 s of silence and the minimum wait of 10 s delay the first three; from 5 min on the waits
    // fit the schedule again.
    assert_eq!(starts, [0, 40, 80, 120, 300, 600, 900]);
}

#[test]
fn a_dead_letter_carries_all_that_its_writer_needs_and_when_it_may_be_written() {
    let mut subscription = subscription(Dialect::EventGrid);
    subscription.destination.url =
        "https://user:secret@billing.example.com/in?code=secret".parse().unwrap();
    subscription.destination.headers =
        vec![Header { name: "X-Tenant".to_owned(), value: Value::Static("acme".to_owned()) }];
    subscription.dead_letter.sink = Sink::Container("letters/shop".parse().unwrap());
    subscription.dead_letter.delay_ms = 5 * MINUTE_MS;
    let mut delivery = delivery();
    let settled = settle(
        &mut delivery,
        &subscription,
        &answered(400, PUBLISHED_MS),
        PUBLISHED_MS + 7,
        Jitter::NONE,
    );
    assert_eq!(settled.verdict, Verdict::Undeliverable(Reason::UndeliverableDueToHttpBadRequest));
    let End::DeadLetter(letter) = settled.end else { panic!("{:?}", settled.end) };
    assert_eq!(letter.delivery, delivery);
    assert_eq!((letter.delivery.attempts, letter.delivery.due_ms), (1, PUBLISHED_MS));
    assert_eq!(
        (letter.decided_ms, letter.not_before_ms),
        (PUBLISHED_MS + 7, PUBLISHED_MS + 5 * MINUTE_MS)
    );
    assert_eq!(letter.keep_trying_for_ms, 4 * HOUR_MS);
    assert_eq!(letter.store, Store::Container("letters/shop".parse().unwrap()));
    assert_eq!(letter.headers, [("X-Tenant".to_owned(), "acme".to_owned())]);
    assert_eq!(letter.destination.as_deref(), Some("https://billing.example.com/in"));
}

#[test]
fn a_subscription_without_dead_letters_drops_the_delivery_with_the_reason() {
    let mut subscription = limited(Dialect::Native, 1, None);
    subscription.dead_letter.sink = Sink::None;
    let settled = settle(
        &mut delivery(),
        &subscription,
        &answered(500, PUBLISHED_MS),
        PUBLISHED_MS,
        Jitter::NONE,
    );
    assert_eq!(settled.end, End::Drop(Reason::MaxDeliveryAttemptsExceeded));
}
