//! The shared state of a destination that fails for hours, also while processes cannot share it.

use std::io::Write as _;

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::News;
use delivery::delivery::health::shared::{DestinationState, Document as _};
use delivery::subscription::{Concurrency, Destination};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::SeededRandom;
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::plain_record;
use super::rules::Rules;
use super::shared::Trouble;
use super::verdict::verdict;
use super::world::{Inner, World};

/// An event every four seconds for three hours.
const EVENTS: usize = 2_700;
const EVERY_MS: u64 = 4 * SECOND_MS;

/// Publishes events for a destination that fails for the first two hours. The table has this fault
/// during the first hour.
fn run(trouble: Option<Trouble>, restarts: u64, limit: impl Fn(&mut Destination)) -> World {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.destination.probation = true;
    limit(&mut rules.subscription.destination);
    let records =
        (0..EVENTS).map(|number| plain_record(number, BEGINNING_MS + number as u64 * EVERY_MS));
    let (random, began_ms) = (SeededRandom::new(0), BEGINNING_MS);
    let behaviours = vec![Behaviour::RecoversAt(BEGINNING_MS + 2 * HOUR_MS)];
    let (rules, records) = (vec![rules], records.collect());
    let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
    // The world has no faults, but `quiet` would require each attempt exactly when it is due.
    world.random.quiet = false;
    world.limits = Limits {
        concurrency: 6,
        pollers: 6,
        fair: true,
        processes: true,
        restarts,
        ..Limits::NONE
    };
    world.shared.latency_ms = 5;
    if let Some(trouble) = trouble {
        world.shared.disturb(trouble, BEGINNING_MS + HOUR_MS);
    }
    let world = World::new(world);
    Driver::new(world.clone()).run();
    let broken = world.with(|world| verdict(world));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    world
}

/// Start and end of each request while the destination failed.
fn failed(world: &World) -> Vec<(u64, u64)> {
    let world = world.lock();
    let seen = world.ledger.seen.values().flatten().filter(|seen| !seen.taken);
    let mut failed: Vec<(u64, u64)> =
        seen.map(|seen| (seen.at_ms - BEGINNING_MS, seen.ended_ms - BEGINNING_MS)).collect();
    failed.sort_unstable();
    failed
}

/// Returns, for the beginning and for each write of its state, whether the destination was failing.
fn states(world: &World) -> Vec<bool> {
    let world = world.lock();
    let item = key(&world).health_item("shop");
    let writes = world.shared.written.iter().filter(|(key, _)| *key == item);
    let is_failing =
        |text: &str| DestinationState::read(text.as_bytes()).expect("a state").failing.is_some();
    [false].into_iter().chain(writes.map(|(_, text)| is_failing(text))).collect()
}

fn key(world: &Inner) -> DestinationKey {
    DestinationKey::new("shop", &world.rules[0].subscription.destination.url)
}

fn arrived(world: &World) -> usize {
    let world = world.lock();
    world.ledger.seen.values().filter(|seen| seen.iter().any(|seen| seen.taken)).count()
}

#[test]
fn a_destination_that_fails_for_two_hours_is_probed_by_one_process_at_a_time() {
    let world = run(None, 10, |_| ());
    let failed = failed(&world);
    let probes: Vec<_> = failed.iter().filter(|(began_ms, _)| *began_ms > MINUTE_MS).collect();
    let processes = world.lock().processes.len();
    let _ = writeln!(
        std::io::stdout(),
        "two hours of failures: {} requests, {} of them after a minute, {processes} processes",
        failed.len(),
        probes.len()
    );
    assert!(probes.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two at once: {probes:?}");
    // A probation lasts 10 s, then twice as long each time, at most five minutes. That makes 23
    // probes in two hours without the first minute.
    assert!((20..=28).contains(&probes.len()), "{probes:?}");
    // The first deferred delivery of a process comes back at the end of the period.
    let gaps = probes.windows(2).map(|pair| pair[1].0 - pair[0].1);
    assert!(gaps.clone().all(|gap_ms| gap_ms < 6 * MINUTE_MS), "a probe is late: {gaps:?}");
    assert!(processes > 6, "they were restarted");
    let states = states(&world);
    let begins = states.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    let ends = states.windows(2).filter(|pair| pair[0] && !pair[1]).count();
    assert_eq!((begins, ends), (1, 1), "one notice that it fails, one that it recovered");
    assert_eq!(arrived(&world), EVENTS);
}

/// Each process continues by itself, and everything arrives.
#[test]
fn deliveries_go_on_while_something_is_wrong_with_the_table_for_an_hour() {
    use Trouble::{Emptied, Takes, Throttled, Unreachable};
    for trouble in [Unreachable, Throttled, Takes(2 * SECOND_MS), Emptied] {
        let world = run(Some(trouble), 0, |destination| {
            destination.max_concurrency = Concurrency::of_all(6);
            destination.max_per_second = Some(20);
        });
        let failed = failed(&world);
        let after = failed.iter().filter(|(began_ms, _)| *began_ms > HOUR_MS + 30 * SECOND_MS);
        let _ = writeln!(
            std::io::stdout(),
            "two hours of failures, in the first the table is {trouble:?}: {} failed requests, {} after it",
            failed.len(),
            after.count()
        );
        assert_eq!(arrived(&world), EVENTS, "{trouble:?}");
    }
}

#[test]
fn what_is_published_in_six_days_of_being_disabled_is_set_aside_and_the_rest_is_delivered() {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.retry.time_to_live_ms = Some(DAY_MS);
    let records =
        (0..200).map(|number| plain_record(number, BEGINNING_MS + number as u64 * HOUR_MS));
    let (random, began_ms, records) = (SeededRandom::new(0), BEGINNING_MS, records.collect());
    let behaviours = vec![Behaviour::Takes(20)];
    let mut world = Setting { random, began_ms, rules: vec![rules], behaviours, records }.begin();
    // The world has no faults, but `quiet` would require each attempt exactly when it is due.
    world.random.quiet = false;
    let key = key(&world);
    let healthy = DestinationState::healthy("https://s0.example.com/", "shop/orders/s0", began_ms);
    let disabled = healthy.disabled_by_operator(began_ms);
    let enabled_ms = began_ms + 6 * DAY_MS;
    let (mut before, mut states) = (None, vec![(began_ms, disabled.clone())]);
    states.push((enabled_ms, disabled.enabled(enabled_ms)));
    for (at_ms, state) in states {
        world.shared.plan(at_ms, key.health_item("shop"), state.entry());
        for news in News::of_change(key, before.as_ref(), &state) {
            world.shared.plan(at_ms, news.item(), news.entry());
        }
        before = Some(state);
    }
    let world = World::new(world);
    Driver::new(world.clone()).run();
    let arrived = arrived(&world);
    let world = world.lock();
    let mut requests = world.ledger.seen.values().flatten().map(|seen| seen.at_ms);
    assert!(requests.all(|at_ms| at_ms >= enabled_ms), "while it was disabled");
    let set_aside = world.ledger.letters.len();
    assert_eq!(arrived + set_aside, 200);
    // One event an hour is published in these six days. Processes read the news within half a
    // minute.
    assert!((143..=145).contains(&set_aside), "{set_aside}");
}
