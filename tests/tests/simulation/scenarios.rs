//! Named scenarios: outages that operators know, each in one world without other faults.

use std::io::Write as _;

use delivery::ports::QueueName;
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::{Fault, SeededRandom};
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::{Limits, SKEW_MAX_MS};
use super::publish::{Published, large_record, plain_record};
use super::queued::Queued;
use super::rules::Rules;
use super::verdict::verdict;
use super::versions::Versions;
use super::world::{Inner, World};

const LIMITS: Limits = Limits {
    concurrency: 5,
    window_ms: SECOND_MS,
    pollers: 3,
    overpulls: true,
    in_flight: 120_000,
    fair: true,
    processes: true,
    skew_ms: SKEW_MAX_MS,
    restarts: 3,
    full_batches: true,
};

/// A world with these records and one subscription with a time to live of seven days.
fn world(records: Vec<Published>, behaviour: Behaviour) -> Inner {
    let rules = vec![Rules::of_seven_days(0)];
    let (random, behaviours) = (SeededRandom::new(0), vec![behaviour]);
    let began_ms = BEGINNING_MS;
    let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
    // The world has no faults, but `quiet` would require each attempt exactly when it is due.
    world.random.quiet = false;
    world.limits = LIMITS;
    world
}

/// Runs a world to its end, and checks it by the rules of every world.
fn run(world: Inner) -> World {
    let world = World::new(world);
    Driver::new(world.clone()).run();
    let broken = world.with(|world| verdict(world));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    world
}

fn records(count: usize, every_ms: u64) -> Vec<Published> {
    (0..count).map(|number| plain_record(number, BEGINNING_MS + every_ms * number as u64)).collect()
}

/// The number of deliveries that arrived.
fn arrived(world: &Inner) -> usize {
    world.ledger.seen.values().filter(|seen| seen.iter().any(|seen| seen.taken)).count()
}

#[test]
fn after_72_hours_without_subscriptions_everything_is_delivered_and_nothing_dead_lettered() {
    let mut broken = world(records(30, HOUR_MS), Behaviour::Takes(20));
    broken.versions = Versions::broken_until(BEGINNING_MS + 72 * HOUR_MS, &broken.rules);
    let world = run(broken);
    let world = world.lock();
    assert_eq!((arrived(&world), world.ledger.letters.len()), (30, 0));
    assert!(world.ledger.most_receives <= 2, "{}", world.ledger.most_receives);
    let costs = &world.ledger.costs;
    let most = costs.records.values().map(|sends| sends.count).max().unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "72 hours without subscriptions: {most} sends per event");
    assert!((70..=80).contains(&most) && costs.deliveries.is_empty(), "{most} sends");
}

#[test]
fn three_hours_of_throttling_dead_letter_nothing() {
    let mut throttled = world(records(300, MINUTE_MS), Behaviour::Flaky(30));
    throttled.throttled_ms = BEGINNING_MS + HOUR_MS..BEGINNING_MS + 4 * HOUR_MS;
    let world = run(throttled);
    let world = world.lock();
    assert_eq!((arrived(&world), world.ledger.letters.len()), (300, 0));
    // The test was hard enough: records were received again and again, and then handled alone.
    assert!(world.ledger.most_receives >= 10, "{}", world.ledger.most_receives);
    assert!(world.random.counts[&Fault::Isolated] > 100, "{:?}", world.random.counts);
    assert!(!world.random.counts.contains_key(&Fault::Redriven));
}

#[test]
fn one_record_that_crashes_the_function_ends_alone_and_the_nine_beside_it_are_delivered() {
    let mut crashing = world(records(10, 0), Behaviour::Takes(20));
    crashing.crashing_record = Some(3);
    let world = run(crashing);
    let world = world.lock();
    let ledger = &world.ledger;
    for (id, known) in &ledger.known {
        let requests = ledger.seen.get(id).map_or(0, Vec::len);
        let expected = if known.record == 3 { 0..=0 } else { 1..=2 };
        assert!(expected.contains(&requests), "{}: {requests} requests", ledger.name(*id));
    }
    assert_eq!((arrived(&world), ledger.letters.values().sum::<u32>()), (9, 1));
    let of_crash = |world: &Inner| {
        let taken = world.invocations.iter().flat_map(|invocation| &invocation.taken);
        let isolated = taken.filter(|(queue, _)| *queue == QueueName::Isolation);
        let record = |queued: &Queued| queued.carried.id().map(|id| world.ledger.known[&id].record);
        let of_it = |queued: &Queued| queued.origin() == Some("m3") || record(queued) == Some(3);
        isolated.filter(|(_, queued)| of_it(queued)).count()
    };
    assert_eq!((of_crash(&world), world.random.counts[&Fault::Redriven]), (10, 1));
    let blobs: Vec<_> = world.storage.blobs.values().collect();
    assert!(blobs.len() == 1 && String::from_utf8_lossy(blobs[0]).contains("ProcessingFailed"));
}

#[test]
fn three_hours_without_the_retry_queue_dead_letter_nothing_not_even_from_isolation() {
    let outage_ms = BEGINNING_MS + 3 * HOUR_MS;
    let mut refused = world(records(10, 0), Behaviour::RecoversAt(outage_ms));
    // At first, invocations are throttled, so that the records are received again and move to
    // isolation.
    refused.throttled_ms = BEGINNING_MS..BEGINNING_MS + MINUTE_MS;
    refused.no_retries_until_ms = Some(outage_ms);
    let world = run(refused);
    let world = world.lock();
    assert_eq!((arrived(&world), world.ledger.letters.len()), (10, 0));
    assert!(world.random.counts[&Fault::Isolated] >= 10);
}

#[test]
fn records_of_thousands_of_elements_survive_crashes_between_their_parts() {
    const ELEMENTS: usize = 1_500;
    let mut crashes = 0;
    for seed in 0..3 {
        let mut random = SeededRandom::with_faults(seed, 40, Fault::Crash);
        let records = vec![large_record(0, BEGINNING_MS, ELEMENTS, &mut random)];
        let mut rules = vec![Rules::of_seven_days(0), Rules::of_seven_days(1)];
        // The crashes are over within an hour. Waiting for a `Retry-After` of a day would cost
        // 100,000 messages.
        rules[1].subscription.retry.time_to_live_ms = Some(HOUR_MS);
        let behaviours = vec![Behaviour::Takes(20), Behaviour::Flaky(20)];
        let began_ms = BEGINNING_MS;
        let world = run(Setting { random, began_ms, rules, behaviours, records }.begin());
        let world = world.lock();
        let parts = world.ledger.costs.records.values().map(|sends| sends.count).sum::<u64>();
        assert!(parts > 200, "{parts} parts");
        crashes += world.random.counts.get(&Fault::Crash).copied().unwrap_or(0);
    }
    let _ = writeln!(std::io::stdout(), "3 × {ELEMENTS} elements: {crashes} crashes");
    assert!(crashes > 30, "{crashes} crashes are too few to prove anything");
}

#[test]
fn two_hundred_thousand_waiting_messages_of_a_noisy_publisher_delay_no_quiet_one() {
    const NOISY: usize = 200_000;
    const QUIET: usize = 50;
    let noisy = (0..NOISY).map(|number| plain_record(number, BEGINNING_MS));
    let quiet = (NOISY..NOISY + QUIET).map(|number| plain_record(number, BEGINNING_MS + MINUTE_MS));
    let noisy = noisy.map(|record| Published { group: Some("noisy"), ..record });
    let quiet = quiet.map(|record| Published { group: Some("quiet"), ..record });
    let world = World::new(world(noisy.chain(quiet).collect(), Behaviour::Takes(1_000)));
    let quiet_ms = |world: &Inner| -> Vec<u64> {
        let ids = (NOISY..NOISY + QUIET).flat_map(|record| world.ledger.ids_of(record));
        let seen = ids.filter_map(|(.., id)| world.ledger.seen.get(&id));
        seen.map(|seen| seen[0].ended_ms - BEGINNING_MS - MINUTE_MS).collect()
    };
    Driver::new(world.clone()).run_while(|world| quiet_ms(world).len() < QUIET);
    let world = world.lock();
    let (waiting, slowest_ms) =
        (world.queues.all(QueueName::Events).count(), quiet_ms(&world).into_iter().max());
    let _ = writeln!(
        std::io::stdout(),
        "{waiting} messages wait; quiet ones took at most {slowest_ms:?} ms"
    );
    assert!(waiting > NOISY - 10_000 && slowest_ms.is_some_and(|ms| ms < MINUTE_MS));
}
