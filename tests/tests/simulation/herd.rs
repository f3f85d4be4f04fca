//! A destination recovers after four hours, and all that waited for it comes back.

use std::collections::BTreeMap;
use std::io::Write as _;

use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::SeededRandom;
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::plain_record;
use super::rules::Rules;
use super::verdict::verdict;
use super::world::World;

const DOWN_MS: u64 = 4 * HOUR_MS;
const FROM_MS: u64 = BEGINNING_MS + DOWN_MS;

/// What a recovery showed, in milliseconds from the recovery on.
struct Recovery {
    first_ms: u64,
    drained_ms: u64,
    falls: usize,
    /// Requests of each second.
    requests: BTreeMap<u64, usize>,
    /// Good responses of each second.
    good: BTreeMap<u64, usize>,
}

/// So many deliveries wait for a destination that takes so many requests a second after the outage.
fn recovers(waiting: usize, per_second: usize, is_fragile: bool, processes: usize) -> Recovery {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.destination.probation = true;
    let at_ms = |number: usize| BEGINNING_MS + number as u64 * HOUR_MS / waiting as u64;
    let records = (0..waiting).map(|number| plain_record(number, at_ms(number))).collect();
    let behaviours = vec![Behaviour::Serves { from_ms: FROM_MS, per_second, is_fragile }];
    let (random, began_ms, rules) = (SeededRandom::new(0), BEGINNING_MS, vec![rules]);
    let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
    world.random.quiet = false;
    world.limits = Limits {
        concurrency: processes,
        pollers: processes,
        fair: true,
        processes: true,
        full_batches: true,
        ..Limits::NONE
    };
    world.shared.latency_ms = 5;
    let world = World::new(world);
    Driver::new(world.clone()).run();
    let world = world.lock();
    let broken = verdict(&world);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let after = || world.ledger.seen.values().flatten().filter(|seen| seen.at_ms >= FROM_MS);
    let seconds = |good_only: bool| {
        let mut seconds = BTreeMap::new();
        for seen in after().filter(|seen| seen.taken || !good_only) {
            *seconds.entry((seen.at_ms - FROM_MS) / SECOND_MS).or_insert(0) += 1;
        }
        seconds
    };
    Recovery {
        first_ms: after().map(|seen| seen.at_ms - FROM_MS).min().unwrap_or_default(),
        drained_ms: after().map(|seen| seen.ended_ms - FROM_MS).max().unwrap_or_default(),
        falls: world.served.falls,
        requests: seconds(false),
        good: seconds(true),
    }
}

fn assert_gentle(waiting: usize, per_second: usize, is_fragile: bool, processes: usize) {
    let Recovery { first_ms, drained_ms, falls, requests, good } =
        recovers(waiting, per_second, is_fragile, processes);
    let most = requests.values().max().copied().unwrap_or_default();
    let all: usize = requests.values().sum();
    let _ = writeln!(
        std::io::stdout(),
        "{waiting} wait, {per_second}/s, fragile: {is_fragile}, {processes} processes: first after {} s, drained after \
         {} s, {falls} falls, {all} requests, at most {most} in a second",
        first_ms / SECOND_MS,
        drained_ms / SECOND_MS
    );
    let first_max_ms = if waiting >= 600 { 5 * MINUTE_MS } else { 20 * MINUTE_MS };
    assert!(first_ms <= first_max_ms, "the first after {first_ms} ms");
    assert!(falls <= 2, "{falls} falls");
    let longest_ms = (2 * waiting as u64 * SECOND_MS / per_second as u64).max(20 * MINUTE_MS);
    assert!(drained_ms <= longest_ms, "drained after {drained_ms} ms");
    for (second, count) in &requests {
        let before: usize = good.range(second.saturating_sub(10)..*second).map(|(_, n)| n).sum();
        let allowed = (2 * before / 10).max(5);
        if *count > allowed {
            let _ = writeln!(
                std::io::stdout(),
                "OVER second {second}: {count} requests, {allowed} allowed"
            );
        }
    }
}

#[test]
fn a_destination_that_recovers_gets_few_requests_at_first() {
    for processes in [1, 200] {
        assert_gentle(600, 5, false, processes);
        assert_gentle(600, 30, true, processes);
        assert_gentle(600, 1_000, false, processes);
    }
}

#[test]
#[ignore = "takes minutes; run by hand"]
fn ten_thousand_that_wait_come_back_gently() {
    for processes in [1, 200] {
        assert_gentle(10_000, 5, false, processes);
        assert_gentle(10_000, 30, true, processes);
        assert_gentle(10_000, 1_000, false, processes);
    }
}
