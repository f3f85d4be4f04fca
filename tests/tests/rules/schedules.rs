//! Properties of every wait, drawn near the values that real files have and near the limits of the
//! types.

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::reason::Reason;
use delivery::machine::step::{Arrival, End, arrive, settle};
use delivery::subscription::Subscription;
use delivery::subscription::profile::{Dialect, LIFETIME_MAX_MS};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::{ARRIVAL_MS, Jitter, Kind, Moments, Schedule, Spread, retry_ms, storage_ms};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::samples::{PUBLISHED_MS, delivery, subscription};

/// Values that are common in tables and files.
const REAL_MS: [u64; 12] = [
    0,
    200,
    SECOND_MS,
    2_500,
    10 * SECOND_MS,
    30 * SECOND_MS,
    MINUTE_MS,
    5 * MINUTE_MS,
    HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
    14 * DAY_MS,
];

/// A duration at, or just beside, a common value.
fn real_ms() -> impl Strategy<Value = u64> {
    (select(&REAL_MS[..]), 0..=2_u64, any::<bool>()).prop_map(|(ms, distance, above)| {
        if above { ms + distance } else { ms.saturating_sub(distance) }
    })
}

/// Mostly a common duration; sometimes any number, or one near the limit of the type.
fn any_ms() -> impl Strategy<Value = u64> {
    prop_oneof![6 => real_ms(), 1 => any::<u64>(), 1 => (0..=2_u64).prop_map(|below| u64::MAX - below)]
}

/// Mostly a realistic retry number; sometimes one near the limit of the type.
fn retry() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 1..=40_u32, 1 => 1..=1_000_u32, 1 => (0..=2_u32).prop_map(|below| u32::MAX - below)]
}

/// The kinds whose waits depend only on the number of the retry.
fn counted_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        any_ms().prop_map(|delay_ms| Kind::Linear { delay_ms }),
        any_ms().prop_map(|delay_ms| Kind::Exponential { delay_ms }),
        any_ms().prop_map(|delay_ms| Kind::LinearFromZero { delay_ms }),
        any_ms().prop_map(|delay_ms| Kind::ExponentialFromZero { delay_ms }),
        any_ms().prop_map(|delay_ms| Kind::Constant { delay_ms }),
        vec(any_ms(), 1..12).prop_map(|mut waits_ms| {
            waits_ms.sort_unstable();
            Kind::Waits { waits_ms: waits_ms.into() }
        }),
    ]
}

fn moments_kind() -> impl Strategy<Value = Kind> {
    btree_set(any_ms(), 1..8)
        .prop_map(|moments| Kind::Moments { moments_ms: moments.into_iter().collect() })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    (prop_oneof![4 => counted_kind(), 1 => moments_kind()], option::of(any_ms()))
        .prop_map(|(kind, max_ms)| Schedule { kind, max_ms })
}

/// A first attempt, and an outcome that is not before it.
fn moments() -> impl Strategy<Value = Moments> {
    (prop_oneof![Just(PUBLISHED_MS), any::<u64>()], any_ms()).prop_map(
        |(first_attempt_ms, after_ms)| Moments {
            first_attempt_ms,
            outcome_ms: first_attempt_ms.saturating_add(after_ms),
        },
    )
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>()].prop_map(Jitter)
}

const AT_ONCE: Moments = Moments { first_attempt_ms: PUBLISHED_MS, outcome_ms: PUBLISHED_MS };

proptest! {
    #[test]
    fn a_wait_is_between_the_longer_of_schedule_and_minimum_wait_and_that_with_full_jitter(
        schedule in schedule(), k in retry(), moments in moments(), (least_ms, left_ms) in (any_ms(), any_ms()),
        percent in 0..=100_u32, jitter in jitter(),
    ) {
        let scheduled_ms = schedule.wait_ms(k, moments);
        let plain_ms = scheduled_ms.max(least_ms);
        let wait_ms = retry_ms(scheduled_ms, least_ms, Spread { percent, jitter }, left_ms);
        prop_assert!(wait_ms >= plain_ms);
        let most_ms = u128::from(plain_ms) + u128::from(plain_ms) * u128::from(percent) / 100;
        prop_assert!(u128::from(wait_ms) <= most_ms, "{} above {}", wait_ms, most_ms);
    }

    #[test]
    fn a_wait_that_ends_within_the_time_to_live_does_so_with_every_jitter(
        plain_ms in any_ms(), further_ms in any_ms(), percent in 0..=100_u32, jitter in jitter(),
    ) {
        let spread = Spread { percent, jitter };
        let left_ms = plain_ms.saturating_add(further_ms);
        let wait_ms = retry_ms(plain_ms, 0, spread, left_ms);
        if plain_ms < left_ms {
            prop_assert!(wait_ms < left_ms);
            // The wait is no shorter than necessary.
            let free_ms = retry_ms(plain_ms, 0, spread, 0);
            prop_assert!(wait_ms == free_ms || wait_ms == plain_ms || wait_ms + ARRIVAL_MS == left_ms);
        } else {
            prop_assert!(wait_ms >= left_ms);
        }
    }

    // The time to live is already over here (`left_ms` is 0). Otherwise, its end would limit the
    // jitter.
    #[test]
    fn jitter_grows_with_its_random_number_from_nothing_to_all(
        schedule in schedule(), k in retry(), moments in moments(), least_ms in real_ms(),
        percent in 0..=100_u32, (low, high) in (jitter(), jitter()),
    ) {
        let scheduled_ms = schedule.wait_ms(k, moments);
        let wait_ms =
            |jitter| retry_ms(scheduled_ms, least_ms, Spread { percent, jitter }, 0);
        let plain_ms = schedule.wait_ms(k, moments).max(least_ms);
        prop_assert_eq!(wait_ms(Jitter::NONE), plain_ms);
        let all_ms = u128::from(plain_ms) + u128::from(plain_ms) * u128::from(percent) / 100;
        prop_assert_eq!(u128::from(wait_ms(Jitter(u32::MAX))), all_ms.min(u128::from(u64::MAX)));
        let (low, high) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        prop_assert!(wait_ms(low) <= wait_ms(high));
    }

    #[test]
    fn no_wait_is_shorter_than_the_one_before_it(kind in counted_kind(), max_ms in option::of(any_ms()), k in retry()) {
        let schedule = Schedule { kind, max_ms };
        prop_assert!(schedule.wait_ms(k, AT_ONCE) <= schedule.wait_ms(k.saturating_add(1), AT_ONCE));
    }

    #[test]
    fn the_cap_is_kept_and_changes_nothing_below_it(schedule in schedule(), cap_ms in any_ms(), k in retry(), moments in moments()) {
        let uncapped = Schedule { max_ms: None, ..schedule.clone() }.wait_ms(k, moments);
        let capped = Schedule { max_ms: Some(cap_ms), ..schedule }.wait_ms(k, moments);
        prop_assert_eq!(capped, uncapped.min(cap_ms));
    }

    #[test]
    fn a_scheduled_time_is_met_exactly_or_at_once_if_it_has_passed(kind in moments_kind(), k in 1..=40_u32, late_ms in real_ms()) {
        let Kind::Moments { moments_ms } = &kind else { panic!("{kind:?}") };
        let last = moments_ms.len() - 1;
        let gap_ms = if last == 0 { moments_ms[0] } else { moments_ms[last] - moments_ms[last - 1] };
        let index = k as usize - 1;
        let beyond = index.saturating_sub(last) as u64;
        let moment_ms = moments_ms[index.min(last)].saturating_add(gap_ms.saturating_mul(beyond));
        let schedule = Schedule { kind, max_ms: None };
        let outcome_ms = PUBLISHED_MS + late_ms;
        let wait_ms = schedule.wait_ms(k, Moments { first_attempt_ms: PUBLISHED_MS, outcome_ms });
        prop_assert_eq!(wait_ms, PUBLISHED_MS.saturating_add(moment_ms).saturating_sub(outcome_ms));
    }

    #[test]
    fn no_number_makes_a_wait_wrap_around(schedule in schedule(), k in any::<u32>(), moments in moments(), percent in any::<u32>(), jitter in jitter(), least_ms in any_ms()) {
        let spread = Spread { percent, jitter };
        let wait_ms = retry_ms(schedule.wait_ms(k, moments), least_ms, spread, 0);
        prop_assert!(wait_ms >= least_ms);
    }

    #[test]
    fn storage_is_retried_within_five_minutes_and_never_at_once(since_ms in any_ms()) {
        let wait_ms = storage_ms(since_ms);
        prop_assert!(wait_ms <= 5 * MINUTE_MS);
        prop_assert!(wait_ms > 0 || since_ms > u64::MAX - 5 * MINUTE_MS);
    }
}

fn is_retry(end: &End) -> bool {
    matches!(end, End::Retry { .. })
}

/// A destination that responds in any way, slowly or at once, and a queue that delivers messages
/// early or late.
#[derive(Debug, Clone)]
struct Step {
    status: u16,
    retry_after: Option<u64>,
    duration_ms: u64,
    early_ms: u64,
    late_ms: u64,
    jitter: Jitter,
}

fn step() -> impl Strategy<Value = Step> {
    let answer = (
        prop_oneof![3 => Just(500_u16), 1 => select(&[404, 408, 429, 503, 599][..])],
        option::of(0..7_200_u64),
    );
    let times = (
        prop_oneof![Just(0), 0..30_000_u64],
        prop_oneof![Just(0), 1..DAY_MS],
        prop_oneof![Just(0), 1..HOUR_MS],
    );
    (answer, times, jitter()).prop_map(
        |((status, retry_after), (duration_ms, early_ms, late_ms), jitter)| Step {
            status,
            retry_after,
            duration_ms,
            early_ms,
            late_ms,
            jitter,
        },
    )
}

fn any_subscription() -> impl Strategy<Value = Subscription> {
    (select(&Dialect::ALL[..]), 1..=40_u32, option::of(1..20 * DAY_MS)).prop_map(
        |(dialect, max_attempts, ttl_ms)| {
            let mut subscription = subscription(dialect);
            subscription.retry.max_attempts = max_attempts;
            subscription.retry.time_to_live_ms = ttl_ms;
            subscription
        },
    )
}

proptest! {
    #[test]
    fn whatever_the_queue_and_the_destination_do_no_attempt_is_early_too_old_or_one_too_many(
        subscription in any_subscription(), steps in vec(step(), 1..60),
    ) {
        let policy = &subscription.retry;
        let mut delivery = delivery();
        for step in steps {
            // An early delivery is postponed by exactly the rest of its wait, and nothing else
            // changes.
            let early_ms = delivery.due_ms.saturating_sub(step.early_ms);
            if early_ms < delivery.due_ms {
                let rest = Arrival::NotDue { wait_ms: delivery.due_ms - early_ms };
                prop_assert_eq!(arrive(&delivery, &subscription, early_ms), rest);
            }
            let now_ms = delivery.due_ms + step.late_ms;
            let age_ms = now_ms - PUBLISHED_MS;
            match arrive(&delivery, &subscription, now_ms) {
                Arrival::NotDue { .. } | Arrival::Forward(_) => {
                    prop_assert!(false, "it is due, not paused, and to an endpoint");
                }
                Arrival::Ended(reason) => {
                    let limit_ms = policy.time_to_live_ms.unwrap_or(u64::MAX).min(LIFETIME_MAX_MS);
                    prop_assert_eq!(reason, Reason::TimeToLiveExceeded);
                    prop_assert!(age_ms >= limit_ms);
                    return Ok(());
                }
                Arrival::Attempt => prop_assert!(policy.time_to_live_ms.is_none_or(|ttl_ms| age_ms < ttl_ms)),
            }
            let retry_after = step.retry_after.map(|seconds| seconds.to_string());
            let result = TransportResult::Answered { status: step.status, retry_after, body: Vec::new() };
            let exchange = Exchange::new(result, now_ms, step.duration_ms);
            let before = delivery.attempts;
            let mut without_jitter = delivery.clone();
            let plain = settle(&mut without_jitter, &subscription, &exchange, exchange.ended_ms(), Jitter::NONE).end;
            let end = settle(&mut delivery, &subscription, &exchange, exchange.ended_ms(), step.jitter).end;
            prop_assert_eq!(delivery.attempts, before + 1);
            prop_assert!(delivery.attempts <= policy.max_attempts);
            match end {
                End::Retry { wait_ms } => {
                    let limit_ms = policy.time_to_live_ms.unwrap_or(u64::MAX).min(LIFETIME_MAX_MS);
                    let is_in_time = |due_ms| due_ms - PUBLISHED_MS < limit_ms;
                    prop_assert_eq!(is_in_time(delivery.due_ms), is_in_time(without_jitter.due_ms));
                    prop_assert!(delivery.attempts < policy.max_attempts);
                    prop_assert_eq!(delivery.due_ms, exchange.ended_ms() + wait_ms);
                    prop_assert!(delivery.due_ms - PUBLISHED_MS < LIFETIME_MAX_MS);
                    prop_assert!(wait_ms >= policy.least_wait_ms(step.status));
                }
                End::DeadLetter(letter) | End::ToSink(letter) => {
                    let exhausted = delivery.attempts == policy.max_attempts;
                    // If the 14 days ended the delivery, its next attempt would have been due later
                    // even without jitter.
                    prop_assert_eq!(is_retry(&plain), false);
                    let too_late = letter.reason.known() == Some(Reason::TimeToLiveExceeded);
                    prop_assert!(exhausted || too_late || policy.never_retry.contains(step.status));
                    prop_assert_eq!(&letter.delivery, &delivery);
                    return Ok(());
                }
                End::Done | End::Drop(_) => prop_assert!(false, "no success, and letters are wanted"),
            }
        }
    }
}
