//! The effect of destinations that hang or are slow on the healthy ones beside them. The tests
//! measure the time from publication to delivery, under a load that uses most of the concurrency of
//! Lambda.

use std::fmt;
use std::io::Write as _;
use std::ops::Range;

use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::SeededRandom;
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::{Published, plain_record};
use super::rules::{Rules, TOPIC};
use super::world::{Inner, World};

/// A healthy destination: each response takes 50 ms.
const HEALTHY: Behaviour = Behaviour::Takes(50);
/// After this time, dispatch must have detected the slow destinations.
const LEARNT_MS: u64 = 30 * SECOND_MS;

/// A load on many destinations.
struct Load {
    destinations: usize,
    /// The behaviours of the first destinations, which are not healthy.
    ill: Vec<Behaviour>,
    /// Events per second.
    per_second: usize,
    /// True if every event goes to all destinations. Otherwise, each event goes to one of them in
    /// turn.
    fan_out: bool,
    /// Concurrent invocations of the events queue. The other queues have fewer.
    concurrency: usize,
    /// Duration of the load.
    seconds: usize,
}

/// Delivery times of a group of destinations.
#[derive(Debug, Default)]
struct Noticed {
    /// The number of events published for the group, and the delivery times of those that arrived.
    published: usize,
    took_ms: Vec<u64>,
}

impl Noticed {
    fn share(&self, fraction: f64) -> u64 {
        let last = self.took_ms.len().saturating_sub(1);
        self.took_ms.get((last as f64 * fraction) as usize).copied().unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Noticed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, nearly_all, all] =
            [0.5, 0.95, 0.99, 1.0].map(|fraction| self.share(fraction));
        let (arrived, published) = (self.took_ms.len(), self.published);
        write!(f, "{arrived} of {published}; ms: {half}, {most}, {nearly_all}, {all}")
    }
}

impl Load {
    fn topic(&self, number: usize) -> &'static str {
        if self.fan_out { TOPIC } else { Box::leak(format!("shop/t{number}").into_boxed_str()) }
    }

    fn world(&self) -> Inner {
        let topics: Vec<_> = (0..self.destinations).map(|number| self.topic(number)).collect();
        let rules = topics.iter().enumerate();
        let rules = rules.map(|(number, topic)| {
            let mut rules = Rules::of_topic_and_number(topic, number);
            rules.subscription.destination.probation = true;
            rules
        });
        let events = self.per_second * self.seconds;
        let records = (0..events).map(|number| Published {
            topic: Some(topics[number % self.destinations]),
            ..plain_record(number, BEGINNING_MS + (number * 1_000 / self.per_second) as u64)
        });
        let mut behaviours = self.ill.clone();
        behaviours.resize(self.destinations, HEALTHY);
        let (random, began_ms) = (SeededRandom::new(0), BEGINNING_MS);
        let (rules, records) = (rules.collect(), records.collect());
        let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
        // The world has no faults, but `quiet` would require each attempt exactly when it is due.
        world.random.quiet = false;
        world.limits = Limits {
            concurrency: self.concurrency,
            // Few, as on Lambda: while all pollers hold a batch, new messages make the next batch
            // larger.
            pollers: 10,
            overpulls: false,
            fair: true,
            processes: true,
            full_batches: true,
            ..Limits::NONE
        };
        world
    }

    /// Runs the world until half a minute after the last event.
    fn lived(&self) -> World {
        let world = World::new(self.world());
        let ends_ms = BEGINNING_MS + (self.seconds as u64 + 30) * SECOND_MS;
        Driver::new(world.clone()).run_while(|world| world.now_ms < ends_ms);
        world
    }

    /// Runs the load. The returned function gives the delivery times of the destinations with a
    /// behaviour, for events after `LEARNT_MS`.
    fn run(&self) -> impl Fn(fn(&Behaviour) -> bool) -> Noticed {
        let world = self.lived();
        let from_ms = BEGINNING_MS + LEARNT_MS;
        move |is_meant| noticed(&world.lock(), is_meant, from_ms..u64::MAX)
    }
}

/// Returns the delivery times of the destinations with this behaviour, for events published in this
/// period.
fn noticed(world: &Inner, is_meant: fn(&Behaviour) -> bool, at_ms: Range<u64>) -> Noticed {
    assert!(world.ledger.broken.is_empty(), "{:?}", world.ledger.broken);
    let mut noticed = Noticed::default();
    for (id, known) in &world.ledger.known {
        let published_ms = world.ledger.published[known.record].1.at_ms;
        let number = known.subscription.expect("every event is wanted");
        if !at_ms.contains(&published_ms) || !is_meant(&world.behaviours[number]) {
            continue;
        }
        noticed.published += 1;
        let taken = world.ledger.seen.get(id).into_iter().flatten().find(|seen| seen.taken);
        noticed.took_ms.extend(taken.map(|seen| seen.ended_ms.saturating_sub(published_ms)));
    }
    noticed.took_ms.sort_unstable();
    noticed
}

fn is_healthy(behaviour: &Behaviour) -> bool {
    matches!(behaviour, Behaviour::Takes(50))
}

/// Checks that ill destinations do not reduce the throughput of the healthy ones. The 99th
/// percentile of their delivery times grows by at most four seconds.
fn assert_spared<const N: usize>(load: &Load, cases: [(&str, Vec<Behaviour>); N]) {
    let before = load.run()(is_healthy);
    for (name, ill) in cases {
        let healthy = Load { ill, ..*load }.run()(is_healthy);
        let _ = writeln!(std::io::stdout(), "{name}: healthy alone {before}; beside {healthy}");
        assert!(healthy.took_ms.len() * 100 >= healthy.published * 99, "{name}: {healthy}");
        assert!(healthy.share(0.99) <= before.share(0.99) + 4_000, "{name}: {healthy}");
    }
}

#[test]
fn one_of_twenty_that_hangs_delays_the_others_by_little() {
    let load = |fan_out, per_second| Load {
        destinations: 20,
        ill: Vec::new(),
        per_second,
        fan_out,
        concurrency: 10,
        seconds: 60,
    };
    let cases = [
        ("1 of 20 hangs", vec![Behaviour::Silent]),
        ("4 of 20 hang", vec![Behaviour::Silent; 4]),
        ("4 of 20, retries hang", vec![Behaviour::SilentAgain; 4]),
    ];
    assert_spared(&load(false, 100), cases);
    assert_spared(&load(true, 10), [("1 of 20 of a topic hangs", vec![Behaviour::Silent])]);
}

#[test]
#[ignore = "takes minutes; tests/nightly runs it"]
fn of_a_hundred_destinations_those_that_hang_delay_the_others_by_little() {
    let (destinations, per_second, concurrency) = (100, 1_000, 50);
    let (ill, fan_out, seconds) = (Vec::new(), false, 60);
    let load = Load { destinations, ill, per_second, fan_out, concurrency, seconds };
    let cases = [
        ("1 of 100 hangs", vec![Behaviour::Silent]),
        ("10 of 100 hang", vec![Behaviour::Silent; 10]),
        ("10 of 100, retries hang", vec![Behaviour::SilentAgain; 10]),
        ("10 of 100 fail", vec![Behaviour::Always(503); 10]),
        ("10 of 100 take 5 s", vec![SLOW; 10]),
    ];
    assert_spared(&load, cases);
}

/// Maximum delivery times to a healthy destination beside one that hangs: for 95 % of the events,
/// and for all.
const MOST_WITHIN_MS: u64 = SECOND_MS;
const ALL_WITHIN_MS: u64 = 3 * SECOND_MS;

/// Checks the delivery times of the healthy destinations in each of these minutes.
fn assert_hardly_noticed(load: &Load, minutes: Range<u64>) {
    let world = load.lived();
    let world = world.lock();
    for minute in minutes {
        let from_ms = BEGINNING_MS + minute * MINUTE_MS;
        let healthy = noticed(&world, is_healthy, from_ms..from_ms + MINUTE_MS);
        let _ = writeln!(std::io::stdout(), "minute {minute}: {healthy}");
        assert_eq!(healthy.took_ms.len(), healthy.published, "minute {minute}");
        assert!(healthy.share(0.95) <= MOST_WITHIN_MS, "minute {minute}: {healthy}");
        assert!(healthy.share(1.0) <= ALL_WITHIN_MS, "minute {minute}: {healthy}");
    }
}

#[test]
fn of_the_events_beside_one_that_hangs_nearly_all_take_a_second_and_the_last_three() {
    // Ten concurrent invocations, four, and two as in a new account.
    for (per_second, concurrency, fan_out) in
        [(100, 10, false), (33, 4, false), (10, 2, false), (5, 4, true)]
    {
        let (destinations, ill, seconds) = (20, vec![Behaviour::Silent], 120);
        let load = Load { destinations, ill, per_second, fan_out, concurrency, seconds };
        assert_hardly_noticed(&load, 0..2);
    }
}

#[test]
fn so_they_do_beside_one_that_hangs_again_twenty_minutes_after_it_recovered() {
    let (recovers, hangs) = (5, 25);
    let at_ms = |minute| BEGINNING_MS + minute * MINUTE_MS;
    let hangs_twice = Behaviour::HangsTwice(at_ms(recovers), at_ms(hangs));
    let (destinations, per_second, concurrency) = (20, 10, 4);
    let (ill, fan_out, seconds) = (vec![hangs_twice], false, 28 * 60);
    let load = Load { destinations, ill, per_second, fan_out, concurrency, seconds };
    assert_hardly_noticed(&load, 0..28);
}

/// A slow destination: each response takes longer than `slowAfter`.
const SLOW: Behaviour = Behaviour::Takes(5_000);

/// Checks one slow destination beside ten that hang. Its events take less than a minute, even at
/// the beginning.
fn assert_slow_is_bounded(per_second: usize, concurrency: usize) {
    let mut ill = vec![Behaviour::Silent; 10];
    ill.push(SLOW);
    let (destinations, fan_out, seconds) = (20, false, 300);
    let load = Load { destinations, ill, per_second, fan_out, concurrency, seconds };
    let world = load.lived();
    let world = world.lock();
    let (mut most_ms, mut taken) = (Vec::new(), 0);
    for half_minute in 0..10 {
        let from_ms = BEGINNING_MS + half_minute * 30 * SECOND_MS;
        let slow = noticed(&world, is_slow, from_ms..from_ms + 30 * SECOND_MS);
        most_ms.push(slow.share(1.0));
        taken += slow.took_ms.len();
    }
    let name = format!("{per_second} events/s, {concurrency} at once");
    let _ =
        writeln!(std::io::stdout(), "{name}: {taken}; of each half minute at most ms {most_ms:?}");
    assert_eq!(taken, per_second * seconds / destinations, "{name}");
    assert!(most_ms.iter().all(|most_ms| *most_ms < 60 * SECOND_MS), "{name}: {most_ms:?}");
}

fn is_slow(behaviour: &Behaviour) -> bool {
    matches!(behaviour, Behaviour::Takes(5_000))
}

#[test]
fn ten_that_hang_delay_one_that_is_slow_by_less_than_a_minute() {
    assert_slow_is_bounded(20, 10);
}

#[test]
#[ignore = "takes a minute; tests/nightly runs it"]
fn ten_that_hang_delay_one_that_is_slow_by_less_than_a_minute_under_more_load() {
    assert_slow_is_bounded(40, 10);
    assert_slow_is_bounded(100, 10);
    assert_slow_is_bounded(200, 50);
}

/// Prints the rows of `bench/neighbours`: every kind of ill destination, at several shares.
#[test]
#[ignore = "prints a table; bench/neighbours runs it"]
fn table_of_neighbours() {
    let ill = [
        ("hang", Behaviour::Silent),
        ("take 5 s", SLOW),
        ("answer 503", Behaviour::Always(503)),
        ("answer 503 for 20 s, then 204 for 20 s", Behaviour::Flaps(20 * SECOND_MS)),
    ];
    let load = |ill: Vec<Behaviour>| {
        let (destinations, per_second, concurrency, seconds) = (20, 100, 10, 120);
        Load { destinations, ill, per_second, fan_out: false, concurrency, seconds }
    };
    let print = |name: &str, ill: Vec<Behaviour>| {
        let healthy = load(ill).run()(is_healthy);
        let [half, most, nearly_all, all] =
            [0.5, 0.95, 0.99, 1.0].map(|fraction| healthy.share(fraction));
        let (arrived, published) = (healthy.took_ms.len(), healthy.published);
        assert_eq!(arrived, published, "{name}: all of it was delivered");
        // Events of the first half minute do not count, so 90 seconds remain.
        let per_second = arrived as f64 / 90.0;
        let _ = writeln!(
            std::io::stdout(),
            "| {name} | {half} | {most} | {nearly_all} | {all} | {per_second:.1} |"
        );
    };
    print("none", Vec::new());
    for (name, behaviour) in ill {
        for count in [1, 4, 10] {
            print(&format!("{count} of 20 {name}"), vec![behaviour; count]);
        }
    }
}
