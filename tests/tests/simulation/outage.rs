//! The cost of deliveries that wait for a destination that is down for a day: messages, deferrals,
//! and requests to the destination and to the table.
//!
//! `lastmile cost` uses the figures of four thousand deliveries.

use std::io::Write as _;

use delivery::ports::QueueName;
use delivery::time::duration::{DAY_MS, HOUR_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::SeededRandom;
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::plain_record;
use super::rules::Rules;
use super::verdict::verdict;
use super::world::{Inner, World};

/// The figures of `lastmile cost`.
#[expect(dead_code, reason = "the others are measured beside it")]
#[path = "../../../crates/cli/src/operations/cost/measured.rs"]
mod measured;

/// The cost of a day of waiting.
#[derive(Debug)]
struct Waiting {
    /// Averages for each delivery.
    messages: f64,
    put_offs: f64,
    /// Totals of all deliveries.
    attempts: usize,
    table_reads: u64,
    table_writes: u64,
}

/// A world with this many deliveries of the native policy, published within an hour. Their
/// destination is down for a day.
fn world(deliveries: usize) -> World {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.destination.probation = true;
    let at_ms = |number: usize| BEGINNING_MS + number as u64 * HOUR_MS / deliveries as u64;
    let records = (0..deliveries).map(|number| plain_record(number, at_ms(number)));
    let (random, began_ms) = (SeededRandom::new(0), BEGINNING_MS);
    let behaviours = vec![Behaviour::RecoversEvenlyAt(BEGINNING_MS + DAY_MS)];
    let (rules, records) = (vec![rules], records.collect());
    let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
    // The world has no faults, but `quiet` would require each attempt exactly when it is due.
    world.random.quiet = false;
    // The retry queue has ten concurrent invocations, as in the template.
    world.limits = Limits {
        concurrency: 20,
        pollers: 10,
        overpulls: false,
        fair: true,
        processes: true,
        full_batches: true,
        ..Limits::NONE
    };
    world.shared.latency_ms = 5;
    World::new(world)
}

/// The cost of the first day.
fn waiting(world: &Inner, deliveries: usize) -> Waiting {
    let ledger = &world.ledger;
    let messages: u64 = ledger.costs.deliveries.values().map(|sends| sends.count).sum();
    let put_offs: usize = ledger.postponements.values().map(Vec::len).sum();
    Waiting {
        messages: messages as f64 / deliveries as f64,
        put_offs: put_offs as f64 / deliveries as f64,
        attempts: ledger.seen.values().map(Vec::len).sum(),
        table_reads: world.shared.table.requests - world.shared.table.writes,
        table_writes: world.shared.table.writes,
    }
}

/// The average number of records in an invocation of the retry queue.
fn fill(world: &Inner) -> f64 {
    let retries =
        world.invocations.iter().filter(|invocation| invocation.taken[0].0 == QueueName::Retry);
    let (count, records) = retries
        .fold((0, 0), |(count, records), invocation| (count + 1, records + invocation.taken.len()));
    records as f64 / f64::from(count)
}

fn measure(deliveries: usize) -> Waiting {
    let world = world(deliveries);
    let mut driver = Driver::new(world.clone());
    driver.run_while(|world| world.now_ms < BEGINNING_MS + DAY_MS);
    let (waiting, fill) = world.with(|world| (waiting(world, deliveries), fill(world)));
    let _ = writeln!(
        std::io::stdout(),
        "{deliveries} deliveries wait for a day, {fill:.1} in an invocation: {waiting:?}"
    );
    driver.run();
    let world = world.lock();
    let broken = verdict(&world);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    waiting
}

/// Checks that each delivery costs what `lastmile cost` assumes, however many wait. The requests to
/// the destination and to the table do not grow with the number of deliveries.
fn assert_measured(deliveries: usize) {
    let Waiting { messages, put_offs, attempts, table_reads, table_writes } = measure(deliveries);
    for (name, counted, measured) in [
        ("WAITING_MESSAGES", measured::WAITING_MESSAGES, messages),
        ("WAITING_PUT_OFFS", measured::WAITING_PUT_OFFS, put_offs),
    ] {
        let is_close = (0.96..1.04).contains(&(measured / counted));
        assert!(
            is_close,
            "crates/cli/src/operations/cost/measured.rs: {name} = {measured:.1}; then scripts/generate"
        );
    }
    // Ten failures, five probes in the first five minutes, and then one every five minutes.
    assert!((285..=310).contains(&attempts), "{attempts} requests to the destination");
    // Each attempt writes its claim, the item of the destination, and the news.
    assert!(table_writes <= 3 * attempts as u64, "{table_writes} writes of the table");
    // Ten processes that read the news every half minute would make 28,800 reads.
    assert!(table_reads <= 7_000, "{table_reads} reads of the table");
}

#[test]
fn a_day_of_waiting_costs_each_delivery_the_same_however_many_wait() {
    [100, 200].into_iter().for_each(assert_measured);
}

#[test]
#[ignore = "takes a minute; tests/nightly runs it"]
fn a_day_of_waiting_costs_each_of_four_thousand_deliveries_the_same() {
    assert_measured(4_000);
}
