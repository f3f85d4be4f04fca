//! Deliveries that start later than their publication: for the moment of their event, and for the delay of their subscription.

use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::time::moment::rfc3339;

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::{Fault, SeededRandom};
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::{Published, plain_record, record_for};
use super::rules::Rules;
use super::verdict::verdict;
use super::world::{Inner, World};

/// A subscription with this delay and time to live.
fn rules(delay_ms: u64, time_to_live_ms: u64) -> Rules {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.delay_ms = delay_ms;
    rules.subscription.retry.time_to_live_ms = Some(time_to_live_ms);
    rules
}

/// A record that is published so long after the beginning for a moment so long after that.
fn record(number: usize, at_ms: u64, wait_ms: u64) -> Published {
    let at_ms = BEGINNING_MS + at_ms;
    record_for(number, at_ms, &rfc3339(at_ms + wait_ms), Some(at_ms + wait_ms))
}

fn world(
    random: SeededRandom,
    rules: Rules,
    records: Vec<Published>,
    behaviour: Behaviour,
) -> Inner {
    let began_ms = BEGINNING_MS;
    let (rules, behaviours) = (vec![rules], vec![behaviour]);
    Setting { random, began_ms, rules, behaviours, records }.begin()
}

/// Runs a world to its end, and checks it by the rules of every world.
fn run(world: Inner) -> World {
    let world = World::new(world);
    Driver::new(world.clone()).run();
    let broken = world.with(|world| verdict(world));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    world
}

/// A world without faults, in which each attempt is made when it is due.
fn run_quiet(rules: Rules, records: Vec<Published>, behaviour: Behaviour) -> World {
    let mut quiet = world(SeededRandom::new(0), rules, records, behaviour);
    quiet.limits = Limits::NONE;
    run(quiet)
}

/// The attempts of each delivery, in milliseconds after its start, in the order of the records.
fn after_start_ms(world: &Inner) -> Vec<Vec<u64>> {
    let ids = (0..world.ledger.published.len()).flat_map(|record| world.ledger.ids_of(record));
    let ids = ids.filter(|(number, ..)| number.is_some());
    let attempts = |id| {
        let published_ms = world.ledger.published_ms(id).expect("a published event");
        let starts_ms = published_ms + world.delayed_ms(id);
        let seen = world.ledger.seen.get(&id).into_iter().flatten();
        seen.map(|seen| seen.at_ms.checked_sub(starts_ms).expect("not before its start")).collect()
    };
    ids.map(|(.., id)| attempts(id)).collect()
}

/// The reasons of all dead letters.
fn reasons(world: &Inner) -> Vec<String> {
    let blobs = world.storage.blobs.values();
    let text = |blob: &Vec<u8>| String::from_utf8_lossy(blob).into_owned();
    let reason = |text: String| {
        let (_, rest) = text.split_once(r#""deadletterreasoncode":""#).expect("a dead letter");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    blobs.map(|blob| reason(text(blob))).collect()
}

const WAITS_MS: [u64; 8] = [
    0,
    500,
    SECOND_MS,
    10 * MINUTE_MS,
    15 * MINUTE_MS,
    15 * MINUTE_MS + 1,
    3 * HOUR_MS,
    7 * DAY_MS - 1,
];

#[test]
fn an_event_with_a_moment_arrives_then_and_at_most_two_seconds_later() {
    let records = WAITS_MS.iter().enumerate();
    let records = records.map(|(number, wait_ms)| record(number, 7 * number as u64, *wait_ms));
    let world = run_quiet(rules(0, DAY_MS), records.collect(), Behaviour::Takes(20));
    let world = world.lock();
    let late_ms = after_start_ms(&world).concat();
    assert_eq!(late_ms.len(), WAITS_MS.len());
    assert!(late_ms.iter().all(|late_ms| *late_ms <= 2 * SECOND_MS), "{late_ms:?}");
    // A message waits for at most 15 minutes.
    let sends: u64 = world.ledger.costs.deliveries.values().map(|sends| sends.count).sum();
    let expected: u64 = WAITS_MS.iter().map(|ms| (ms / SECOND_MS).div_ceil(900)).sum();
    assert!((expected..=expected + 8).contains(&sends), "{sends} messages, not {expected}");
}

#[test]
fn a_subscription_with_a_delay_gets_every_event_then_and_at_most_two_seconds_later() {
    for delay_ms in WAITS_MS {
        let records = (0..5).map(|number| plain_record(number, BEGINNING_MS + 7 * number as u64));
        let world = run_quiet(rules(delay_ms, DAY_MS), records.collect(), Behaviour::Takes(20));
        let late_ms = after_start_ms(&world.lock()).concat();
        let in_time = late_ms.iter().all(|late_ms| *late_ms <= 2 * SECOND_MS);
        assert!(late_ms.len() == 5 && in_time, "{delay_ms}: {late_ms:?}");
    }
}

#[test]
fn the_later_of_delay_and_moment_counts() {
    let records = vec![record(0, 0, HOUR_MS), record(1, 0, 3 * HOUR_MS)];
    let world = run_quiet(rules(2 * HOUR_MS, DAY_MS), records, Behaviour::Takes(20));
    let world = world.lock();
    let mut at_ms: Vec<u64> =
        world.ledger.seen.values().flatten().map(|seen| seen.at_ms - BEGINNING_MS).collect();
    at_ms.sort_unstable();
    assert_eq!(at_ms.iter().map(|ms| ms / HOUR_MS).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn the_time_to_live_counts_from_the_start() {
    // One attempt is due each time: after 0, 2, 4, 8, 16 and 32 s.
    for (delay_ms, wait_ms) in [(HOUR_MS, 0), (0, HOUR_MS)] {
        let failing = Behaviour::Always(500);
        let records = vec![record(0, 0, wait_ms)];
        let world = run_quiet(rules(delay_ms, MINUTE_MS), records, failing);
        let world = world.lock();
        let attempts = after_start_ms(&world).concat();
        assert_eq!(attempts.len(), 5, "{attempts:?}");
        assert!(attempts.iter().all(|after_ms| *after_ms < MINUTE_MS), "{attempts:?}");
        assert_eq!(reasons(&world), ["TimeToLiveExceeded"]);
    }
}

#[test]
fn a_delivery_ends_fourteen_days_after_publication_whatever_its_start_was() {
    let records = vec![record(0, 0, LIFETIME_MAX_MS - MINUTE_MS)];
    let world = run_quiet(rules(0, 7 * DAY_MS), records, Behaviour::Always(500));
    let world = world.lock();
    let attempts = after_start_ms(&world).concat();
    assert!(!attempts.is_empty() && attempts.iter().all(|after_ms| *after_ms < MINUTE_MS));
    assert_eq!(reasons(&world), ["TimeToLiveExceeded"]);
}

#[test]
fn an_event_with_an_impossible_moment_becomes_a_dead_letter_at_once() {
    let too_far = rfc3339(BEGINNING_MS + LIFETIME_MAX_MS);
    for deliver_at in [too_far.as_str(), "tomorrow", "2026-12-01", ""] {
        let records = vec![record_for(0, BEGINNING_MS, deliver_at, None)];
        let world = run_quiet(rules(0, DAY_MS), records, Behaviour::Takes(20));
        let world = world.lock();
        assert_eq!(reasons(&world), ["MalformedEvent"], "{deliver_at}");
        assert!(world.ledger.seen.is_empty() && world.now_ms < BEGINNING_MS + MINUTE_MS);
    }
}

#[test]
fn crashes_and_duplicates_make_no_attempt_too_early_and_lose_nothing() {
    let mut faults = 0;
    for fault in [Fault::Crash, Fault::DeliveredTwice, Fault::DeliveredEarly, Fault::Panic] {
        for seed in 0..20 {
            let random = SeededRandom::with_faults(seed, 20, fault);
            let records = (0..6).map(|number| record(number, 0, number as u64 * 20 * MINUTE_MS));
            let rules = rules(40 * MINUTE_MS, DAY_MS);
            let mut faulty = world(random, rules, records.collect(), Behaviour::Flaky(30));
            (faulty.crashing_record, faulty.storage_panics) = (None, false);
            // Every request is checked: no attempt was made before the start.
            let world = run(faulty);
            faults += world.lock().random.counts.get(&fault).copied().unwrap_or(0);
        }
    }
    assert!(faults > 100, "{faults} faults are too few to prove anything");
}
