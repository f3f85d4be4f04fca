//! What several processes know of a destination that fails for hours, also while they cannot tell each
//! other.

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

/// An event every two seconds for three hours, for a destination that fails for the first two.
fn run(unshared_ms: u64, restarts: u64) -> World {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.destination.probation = true;
    let records =
        (0..5_400).map(|number| plain_record(number, BEGINNING_MS + number as u64 * 2_000));
    let (random, began_ms) = (SeededRandom::new(0), BEGINNING_MS);
    let behaviours = vec![Behaviour::RecoversAt(BEGINNING_MS + 2 * HOUR_MS)];
    let (rules, records) = (vec![rules], records.collect());
    let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
    // Not one in which every attempt is made exactly when it is due, but without faults.
    world.random.quiet = false;
    world.limits = Limits {
        concurrency: 6,
        pollers: 6,
        fair: true,
        processes: true,
        restarts,
        ..Limits::NONE
    };
    world.shared.refuse_until(BEGINNING_MS + unshared_ms);
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

fn arrived(world: &World) -> usize {
    let world = world.lock();
    world.ledger.seen.values().filter(|seen| seen.iter().any(|seen| seen.taken)).count()
}

#[test]
fn a_destination_that_fails_for_two_hours_is_probed_by_one_process_at_a_time() {
    let world = run(0, 10);
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
    // 10 s, twice as long each time, an hour at most.
    assert!((4..=12).contains(&probes.len()), "{probes:?}");
    assert!(processes > 6, "they were restarted");
    assert_eq!(arrived(&world), 5_400);
}

#[test]
fn deliveries_go_on_while_processes_cannot_tell_each_other_for_an_hour() {
    let world = run(HOUR_MS, 0);
    let failed = failed(&world);
    let after = failed.iter().filter(|(began_ms, _)| *began_ms > HOUR_MS + 30 * SECOND_MS);
    let _ = writeln!(
        std::io::stdout(),
        "two hours of failures, the first without storage: {} requests, {} after it",
        failed.len(),
        after.count()
    );
    assert_eq!(arrived(&world), 5_400);
}
