//! `maxPerSecond` over several processes: how even the requests are, and what the waiting costs.

use delivery::subscription::Concurrency;
use std::collections::BTreeMap;
use std::io::Write as _;

use delivery::subscription::Destination;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::{Fault, SeededRandom};
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::plain_record;
use super::rules::Rules;
use super::verdict::verdict;
use super::world::{Inner, World};

const PER_SECOND: u32 = 20;

/// A backlog of so many events for one destination, handled by as many processes as Lambda may run.
fn run(
    events: usize,
    limit: impl Fn(&mut Destination),
    takes_ms: u64,
    random: SeededRandom,
    is_reliable: bool,
) -> World {
    let mut rules = Rules::of_seven_days(0);
    limit(&mut rules.subscription.destination);
    let records = (0..events).map(|number| plain_record(number, BEGINNING_MS)).collect();
    let (behaviours, began_ms) = (vec![Behaviour::Takes(takes_ms)], BEGINNING_MS);
    let mut world = Setting { random, began_ms, rules: vec![rules], behaviours, records }.begin();
    // Not one in which every attempt is made exactly when it is due, but without faults.
    world.random.quiet = false;
    world.limits = Limits {
        concurrency: 12,
        pollers: 12,
        fair: true,
        processes: true,
        restarts: 5,
        full_batches: true,
        ..Limits::NONE
    };
    world.shared.latency_ms = 5;
    world.shared.is_reliable = is_reliable;
    let world = World::new(world);
    Driver::new(world.clone()).run();
    world
}

/// A backlog is delivered evenly, whoever handles it, and waiting costs one message for each delivery
/// and one for each 900 s.
fn assert_even(events: usize) {
    let world = run(
        events,
        |destination| destination.max_per_second = Some(PER_SECOND),
        50,
        SeededRandom::new(0),
        true,
    );
    let world = world.lock();
    assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
    let mut requests: Vec<u64> =
        world.ledger.seen.values().flatten().map(|seen| seen.at_ms - BEGINNING_MS).collect();
    requests.sort_unstable();
    assert_eq!(requests.len(), events, "each was made once");

    let count = |period_ms: u64| {
        let mut counts = BTreeMap::<u64, usize>::new();
        requests.iter().for_each(|at_ms| *counts.entry(at_ms / period_ms).or_default() += 1);
        counts
    };
    let (seconds, minutes) = (count(SECOND_MS), count(MINUTE_MS));
    let most = seconds.values().max().copied().unwrap_or_default();
    assert!(most <= 2 * PER_SECOND as usize, "{most} in a second");
    let whole_minutes = minutes.len().saturating_sub(1);
    for (minute, count) in minutes.iter().skip(1).take(whole_minutes.saturating_sub(1)) {
        let expected = PER_SECOND as usize * 60;
        assert!(count.abs_diff(expected) * 10 <= expected, "minute {minute}: {count}");
    }

    let last_ms = requests.last().copied().unwrap_or_default();
    let sends = world.ledger.costs.deliveries.values().map(|sends| sends.count);
    let most_sends = sends.max().unwrap_or_default();
    assert!(most_sends <= last_ms / (900 * SECOND_MS) + 2, "{most_sends} sends");
    let processes = world.processes.len();
    let _ = writeln!(
        std::io::stdout(),
        "{events} waiting at {PER_SECOND}/s: the last after {} s, at most {most} in a second, {most_sends} sends \
         of a delivery, {processes} processes",
        last_ms / SECOND_MS
    );
    // As if one process had made one request after the other.
    let ideal_ms = events as u64 * SECOND_MS / u64::from(PER_SECOND);
    assert!(last_ms <= ideal_ms + MINUTE_MS, "the last after {last_ms} ms, not {ideal_ms}");
}

#[test]
fn a_backlog_of_a_destination_with_a_rate_is_delivered_evenly_by_all_processes() {
    assert_even(4_000);
}

/// The most requests that the destination saw at once.
fn most_at_once(world: &Inner) -> usize {
    let requests: Vec<_> = world.ledger.seen.values().flatten().collect();
    let at_once = |at_ms: u64| {
        requests.iter().filter(|seen| (seen.at_ms..seen.ended_ms).contains(&at_ms)).count()
    };
    requests.iter().map(|seen| at_once(seen.at_ms)).max().unwrap_or_default()
}

/// A backlog is delivered with no more requests at once than allowed, but with nearly as many, and waiting
/// costs few messages.
fn assert_at_once(most: u32, takes_ms: u64, longest_ms: u64, most_requests: f64) {
    const EVENTS: usize = 300;
    let limit = move |destination: &mut Destination| {
        destination.max_concurrency = Concurrency::of_all(most);
    };
    let world = run(EVENTS, limit, takes_ms, SeededRandom::new(0), true);
    let world = world.lock();
    assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
    let requests = world.ledger.seen.values().flatten();
    assert_eq!(requests.clone().count(), EVENTS, "each was made once");
    let seen_at_once = most_at_once(&world);
    let last_ms = requests.map(|seen| seen.ended_ms - BEGINNING_MS).max().unwrap_or_default();
    let sends = || world.ledger.costs.deliveries.values().map(|sends| sends.count);
    let (most_sends, all_sends) = (sends().max().unwrap_or_default(), sends().sum::<u64>());
    let sends_of_each = all_sends as f64 / EVENTS as f64;
    let (processes, table) = (world.processes.len(), world.shared.table.requests);
    let of_each = table as f64 / EVENTS as f64;
    let _ = writeln!(
        std::io::stdout(),
        "{EVENTS} waiting, {most} at once, {takes_ms} ms each: the last after {last_ms} ms, at most {seen_at_once} at \
         once, at most {most_sends} sends of a delivery, {sends_of_each:.1} on average, {processes} processes, {of_each:.2} requests to the table for each"
    );
    assert!(seen_at_once <= most as usize, "{seen_at_once}");
    assert!(last_ms <= longest_ms, "{last_ms} ms");
    assert!(of_each <= most_requests, "{of_each} requests");
}

#[test]
fn processes_together_make_as_many_requests_at_once_as_a_destination_takes_and_no_more() {
    assert_at_once(3, 100, 45_000, 2.2);
    assert_at_once(3, 500, 80_000, 2.2);
    assert_at_once(3, 2_000, 330_000, 2.2);
    assert_at_once(1, 100, 80_000, 2.9);
    assert_at_once(1, 500, 215_000, 2.9);
    // Groups meet more often while their attempts take seconds, and then ask for what the others return.
    assert_at_once(2, 5_000, 980_000, 2.9);
    assert_at_once(3, 5_000, 680_000, 2.9);
    assert_at_once(10, 5_000, 210_000, 2.2);
}

/// The most requests at once while functions are killed, of a destination that takes so many.
fn most_while_killed(seed: u64, most: u32, is_reliable: bool) -> usize {
    let limit = move |destination: &mut Destination| {
        destination.max_concurrency = Concurrency::of_all(most);
    };
    let random = SeededRandom::with_faults(seed, 20, Fault::Crash);
    let world = run(200, limit, 300, random, is_reliable);
    let world = world.lock();
    let broken = verdict(&world);
    assert!(broken.is_empty(), "seed {seed}: {broken:?}");
    let (killed, at_once) = (world.random.counts.get(&Fault::Crash), most_at_once(&world));
    let _ = writeln!(
        std::io::stdout(),
        "seed {seed}, table reached: {is_reliable}: at most {at_once} of {most} at once, {killed:?} killed"
    );
    assert!(killed.is_some(), "seed {seed}");
    at_once
}

fn assert_while_killed(is_reliable: bool, times: usize) {
    for seed in 1..=12 {
        let most = if seed % 2 == 0 { 1 } else { 3 };
        let at_once = most_while_killed(seed, most, is_reliable);
        assert!(at_once <= times * most as usize, "seed {seed}: {at_once}");
    }
}

#[test]
fn no_more_requests_are_made_at_once_while_functions_are_killed() {
    assert_while_killed(true, 1);
}

/// Without the table, each process keeps to a share. A limit below the number of functions holds on average only, because some
/// draw one.
#[test]
fn at_most_five_times_as_many_while_functions_are_killed_and_the_table_is_away() {
    assert_while_killed(false, 5);
}

#[test]
#[ignore = "takes minutes; tests/nightly runs it"]
fn a_hundred_thousand_waiting_deliveries_are_sent_once_for_each_delay_of_their_wait() {
    assert_even(100_000);
}
