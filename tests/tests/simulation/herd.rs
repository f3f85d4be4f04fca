//! A destination recovers after four hours, and all waiting deliveries come back.

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

/// The number of waiting deliveries, their destination, and the number of processes.
#[derive(Debug, Clone, Copy)]
struct Case {
    waiting: usize,
    /// Capacity of the destination in requests a second. A fragile destination falls over above it.
    per_second: usize,
    is_fragile: bool,
    processes: usize,
}

/// The course of a recovery. Times are in milliseconds since the destination recovered.
struct Recovery {
    first_ms: u64,
    drained_ms: u64,
    falls: usize,
    /// Requests of each second.
    requests: BTreeMap<u64, usize>,
    /// Good responses of each second.
    good: BTreeMap<u64, usize>,
}

fn recovers(case: Case) -> Recovery {
    let mut rules = Rules::of_seven_days(0);
    rules.subscription.destination.probation = true;
    if case.waiting < 10 {
        // A few deliveries make all probes of four hours, so they need many attempts. Later waits
        // are as long as the last wait of the schedule.
        rules.subscription.retry.max_attempts = 200;
        rules.subscription.retry.schedule.max_ms = Some(512 * SECOND_MS);
    }
    // A few events are published at once. One after the other, each delivery would use up its
    // attempts before probation begins.
    let within_ms = if case.waiting < 10 { 0 } else { HOUR_MS };
    let at_ms = |number: usize| BEGINNING_MS + number as u64 * within_ms / case.waiting as u64;
    let records = (0..case.waiting).map(|number| plain_record(number, at_ms(number))).collect();
    let Case { per_second, is_fragile, processes, .. } = case;
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
    assert!(
        world.ledger.letters.is_empty(),
        "{case:?}: {} dead letters",
        world.ledger.letters.len()
    );
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

impl Recovery {
    /// Returns the seconds with too many requests, and the number of excess requests. The limit is
    /// five requests a second, or twice the average of good responses in the ten seconds before if
    /// that is more.
    fn excesses(&self) -> Vec<(u64, usize)> {
        let excess = |(second, count): (&u64, &usize)| {
            let before = self.good.range(second.saturating_sub(10)..*second).map(|(_, good)| good);
            let allowed = (2 * before.sum::<usize>() / 10).max(5);
            (*second, count.saturating_sub(allowed))
        };
        self.requests.iter().map(excess).filter(|(_, excess)| *excess > 0).collect()
    }
}

fn assert_gentle(case: Case) {
    let recovery = recovers(case);
    let excesses = recovery.excesses();
    let Recovery { first_ms, drained_ms, falls, requests, .. } = &recovery;
    let most = requests.values().max().copied().unwrap_or_default();
    let all: usize = requests.values().sum();
    let _ = writeln!(
        std::io::stdout(),
        "{case:?}: first after {} s, drained after {} s, {falls} falls, {all} requests, at most {most} in a second, \
         too many in these: {excesses:?}",
        first_ms / SECOND_MS,
        drained_ms / SECOND_MS
    );
    let first_max_ms = if case.waiting >= 600 { 5 * MINUTE_MS } else { 20 * MINUTE_MS };
    assert!(*first_ms <= first_max_ms, "the first after {first_ms} ms");
    assert!(*falls <= 2, "{falls} falls");
    let longest_ms = 2 * case.waiting as u64 * SECOND_MS / case.per_second as u64;
    assert!(*drained_ms <= longest_ms.max(20 * MINUTE_MS), "drained after {drained_ms} ms");
    assert!(excesses.is_empty(), "too many requests in these seconds: {excesses:?}");
}

/// Checks the recovery of each of these destinations, with one process and with 200.
fn assert_all_gentle(waiting: usize, capacities: &[(usize, bool)]) {
    for processes in [1, 200] {
        for (per_second, is_fragile) in capacities.iter().copied() {
            assert_gentle(Case { waiting, per_second, is_fragile, processes });
        }
    }
}

const WEAK: (usize, bool) = (5, false);
const FRAGILE: (usize, bool) = (30, true);
const STRONG: (usize, bool) = (1_000, false);

#[test]
fn a_destination_that_recovers_gets_few_requests_at_first() {
    assert_all_gentle(3, &[WEAK, FRAGILE, STRONG]);
    assert_all_gentle(600, &[WEAK, FRAGILE, STRONG]);
}

#[test]
#[ignore = "takes minutes; run by hand"]
fn ten_thousand_that_wait_come_back_gently() {
    assert_all_gentle(10_000, &[WEAK, FRAGILE, STRONG]);
}

/// Runs faster with `--config profile.dev.package.delivery.opt-level=1`, and with the same option
/// for `dispatch` and `lastmile-tests`.
#[test]
#[ignore = "takes half an hour; run by hand"]
fn a_hundred_thousand_that_wait_come_back_gently() {
    assert_all_gentle(100_000, &[FRAGILE, STRONG]);
}

/// Example: `HERD=10000,30,true,200`.
#[test]
#[ignore = "by hand, with HERD=waiting,capacity,fragile,processes"]
fn one_case_comes_back_gently() {
    let case = std::env::var("HERD").expect("HERD is a case");
    let parts: Vec<&str> = case.split(',').collect();
    let [waiting, per_second, is_fragile, processes] = parts[..] else { panic!("four parts") };
    let number = |text: &str| text.parse().expect("a number");
    let (waiting, per_second) = (number(waiting), number(per_second));
    let (is_fragile, processes) = (is_fragile == "true", number(processes));
    assert_gentle(Case { waiting, per_second, is_fragile, processes });
}
