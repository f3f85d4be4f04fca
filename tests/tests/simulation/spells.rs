//! A destination whose answers take longer than `slowAfter`: hardly any event reaches it twice.

use std::io::Write as _;

use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::SeededRandom;
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::plain_record;
use super::rules::Rules;
use super::verdict::verdict;
use super::world::World;

const EVENTS: usize = 1_000;
const PROCESSES: u64 = 12;
/// With the default `slowAfter`, two seconds.
const ANSWERS: Behaviour = Behaviour::Takes(3 * SECOND_MS);

/// So many events reach it twice that are published within this time, and so many processes there were.
fn arrive_twice(within_ms: u64) -> (u64, u64) {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.destination.probation = true;
    let at_ms = |number: usize| BEGINNING_MS + number as u64 * within_ms / EVENTS as u64;
    let records = (0..EVENTS).map(|number| plain_record(number, at_ms(number))).collect();
    let (random, began_ms, rules) = (SeededRandom::new(0), BEGINNING_MS, vec![rules]);
    let mut world = Setting { random, began_ms, rules, behaviours: vec![ANSWERS], records }.begin();
    // Not one in which every attempt is made exactly when it is due, but without faults.
    world.random.quiet = false;
    world.limits = Limits {
        concurrency: PROCESSES as usize,
        pollers: PROCESSES as usize,
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
    assert_eq!(world.ledger.seen.len(), EVENTS);
    // The receiver answers an abandoned request as well.
    let twice = world.ledger.abandoned;
    let processes = world.processes.len() as u64;
    let _ = writeln!(
        std::io::stdout(),
        "{EVENTS} events within {} s, {processes} processes: {twice} arrive twice",
        within_ms / SECOND_MS
    );
    (twice, processes)
}

/// A process abandons one attempt at most, however long the destination is slow.
#[test]
fn of_a_thousand_events_at_most_one_of_each_process_reaches_a_slow_destination_twice() {
    for within_ms in [0, SECOND_MS, 100 * SECOND_MS, 100 * MINUTE_MS] {
        let (twice, processes) = arrive_twice(within_ms);
        assert!(twice <= PROCESSES.min(processes), "{twice} arrive twice");
    }
}
