//! Simulated lifetimes: the real functions run over a fake world, hundreds of times, with injected
//! faults. A nightly run has thousands of lifetimes.
//!
//! Time is virtual, randomness is seeded, and queues, endpoints, storage and subscriptions are
//! fakes that misbehave. After each lifetime, the records of the world are checked against the
//! promises:
//! - every event is delivered at least once, and nothing is lost;
//! - nothing is delivered too often or too early;
//! - every dead letter reports the truth.
//!
//! The rules are implemented a second time in `simulation/rules.rs`; nothing here asks the engine
//! what the engine should do.
//!
//! Sinks are part of the world: addresses that accept, refuse, hang and recover; topics whose
//! subscriptions send their own dead letters on and back; a queue that is busy or missing. A dead
//! letter must be in one of them, or in the container with the reason.
//!
//! The limits of AWS are also part of the world, scaled down until a small world reaches them:
//! - concurrency, batch windows and pollers of the mappings;
//! - throttled invocations, and slow and throttled calls;
//! - messages in flight, and fair queues.
//!
//! The functions run in several processes, each with its own memory and clock.
//!
//! A run has 200 seeds; `tests/nightly` runs more, with other seeds each night. Variables choose
//! the seeds:
//! - `LASTMILE_SEED=123` replays one seed and prints its trace.
//! - `LASTMILE_SEEDS=100000` runs this many seeds, starting with `LASTMILE_FIRST_SEED`.
//!
//! HTTP on the wire and the requests to AWS are not simulated; the adapters have their own tests.

mod abandoned;
mod acknowledging;
mod adaptive;
mod blobs;
mod checks;
mod costs;
mod dead_letter_ends;
mod delayed;
mod driver;
mod endpoints;
mod faults;
mod forgery;
mod herd;
mod invocations;
mod late;
mod ledger;
mod lifetime;
mod limits;
mod load;
mod losses;
mod mappings;
mod neighbours;
mod outage;
mod paused;
mod policies;
mod ports;
mod probations;
mod processes;
mod publications;
mod publish;
mod queue_state;
mod queued;
mod queues;
mod rates;
mod replay;
mod replayed;
mod replies;
mod requests;
mod rules;
mod sabotage;
mod scenarios;
mod sending;
mod shared;
mod sharing;
mod sink_deliveries;
mod sinks;
mod slowness;
mod spells;
mod starts;
mod storage;
mod stored;
mod trace;
mod verdict;
mod versions;
mod world;

use std::cell::RefCell;
use std::io::Write as _;
use std::num::NonZero;
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dead_letter_ends::SinkCounts;
use crate::endpoints::Behaviour;
use crate::faults::Fault;
use crate::lifetime::{Summary, run_seed};
use crate::load::{EVENTS, load};
use crate::sabotage::Sabotage;
use crate::trace::Trace;

/// Seeds of a run without `LASTMILE_SEEDS`, as in `.ci/run`.
const SEEDS: u64 = 200;
/// The number of seeds among which every kind of fault occurs.
const SEEDS_OF_ALL_FAULTS: u64 = 2_000;
/// Seeds whose traces are compared. In all but the first few, a process writes the states of
/// several destinations at once, so that a random order shows in the trace.
const TRACED: [u64; 12] = [0, 1, 2, 3, 56, 71, 80, 88, 90, 97, 112, 122];
/// The maximum number of failing seeds that are printed.
const FAILURES_PRINTED: usize = 10;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs these seeds on all processors; returns the reports of the first that fail.
fn run_seeds(seeds: Range<u64>, is_traced: bool) -> (Summary, Vec<String>) {
    let results = Mutex::new((Summary::default(), Vec::new()));
    let next = AtomicU64::new(seeds.start);
    let run = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let trace = if is_traced { Trace::Printed } else { Trace::Off };
            let result = run_seed(seed, None, trace);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.0.add(&result);
            results.1.extend(result.report());
            if results.1.len() >= FAILURES_PRINTED {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        (0..processors).for_each(|_| {
            scope.spawn(run);
        });
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn whatever_fails_nothing_is_lost_and_nothing_is_delivered_too_often_or_too_early() {
    let only_seed = variable("LASTMILE_SEED");
    let first = variable("LASTMILE_FIRST_SEED").unwrap_or(0);
    let many = first..first + variable("LASTMILE_SEEDS").unwrap_or(SEEDS);
    let seeds = only_seed.map_or(many, |seed| seed..seed + 1);
    let (summary, failures) = run_seeds(seeds.clone(), only_seed.is_some());
    // Bypasses the test harness, which shows the output of failed tests only.
    let _ = writeln!(std::io::stdout(), "{summary}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let count = seeds.end - seeds.start;
    // A few seeds of another range may lack a case by chance.
    let least = if seeds.start == 0 { SEEDS } else { SEEDS_OF_ALL_FAULTS };
    if count >= least {
        assert_covers(&summary, count);
    }
}

/// Fails if the seeds had too few cases of a kind to prove anything.
fn assert_covers(summary: &Summary, seeds: u64) {
    let Summary { shared_requests, postponements, late_in_time, abandoned, replies, .. } = summary;
    let SinkCounts { taken, returned, published, chained, sink_messages, store_in_default } =
        summary.sink_counts;
    let per_thousand = [
        (*shared_requests, 500),
        (*postponements, 500),
        (*late_in_time, 50),
        (*abandoned, 500),
        (*replies, 250),
        (taken, 100),
        (returned, 100),
        (published, 100),
        (sink_messages, 100),
        (store_in_default, 100),
    ];
    let enough = per_thousand.iter().all(|(count, least)| count * 1_000 > least * seeds);
    assert!(enough, "too few of these cases to prove anything: {summary}");
    if seeds < SEEDS_OF_ALL_FAULTS {
        return;
    }
    assert!(chained > 5, "too few dead letters of dead letters: {summary}");
    for fault in Fault::ALL {
        assert!(
            summary.faults.contains_key(&fault),
            "{fault:?} never happened: the simulation does not cover it"
        );
    }
}

#[test]
fn a_sabotaged_rule_is_detected_at_once() {
    for (sabotage, complaints) in [
        (Sabotage::LosesAMessage, &["lost", "although one was due"][..]),
        (
            Sabotage::DoublesAMessage,
            &["chains, but the faults explain 1", "although due within", "yet there are more"],
        ),
        (Sabotage::ForgetsAnAttempt, &["attempts are recorded"]),
        (Sabotage::ForgetsAllAttempts, &["attempts in at most 1 chains"]),
        (Sabotage::ForgetsTheWait, &["attempted before it was due", "although due within"]),
        (Sabotage::ForgetsEveryDelay, &["are due"]),
        (
            Sabotage::ForgetsItsAge,
            &["its age does not begin with its publication", "its publication or its history"],
        ),
        (Sabotage::CountsAWait, &["but its waits and the faults explain 1"]),
        (Sabotage::TrustsAPublisher, &["without a received one"]),
        (Sabotage::MisfilesABlob, &["its blob has a key"]),
        (Sabotage::ForgesABlob, &["its history does not add up"]),
    ] {
        // Every fourth world has no faults, so a sabotage cannot be mistaken for a fault.
        let results = (0..400).step_by(4).map(|seed| run_seed(seed, Some(sabotage), Trace::Off));
        let sabotaged: Vec<_> = results.filter(|result| result.sabotaged).take(5).collect();
        assert_eq!(sabotaged.len(), 5, "{sabotage:?} found no opportunity");
        for result in sabotaged {
            let report = result.report().unwrap_or_default();
            let noticed = complaints.iter().any(|complaint| report.contains(complaint));
            assert!(noticed, "{sabotage:?} in seed {} was not detected: {report}", result.seed);
        }
    }
}

/// The maximum number of probes of a dead destination in five hours of load: one every five
/// minutes, and a few at first.
const PROBES_MAX: usize = 80;

#[test]
fn probation_leaves_a_dead_destination_a_probe_in_five_minutes_and_a_last_attempt_each_and_delays_no_other()
 {
    for dead in [Behaviour::Silent, Behaviour::Refuses] {
        let [without, with] = [false, true].map(|probation| load(dead, probation));
        let _ = writeln!(
            std::io::stdout(),
            "{dead:?}: without probation {without:?}, with it {with:?}"
        );
        // Each delivery is attempted once before its time to live ends.
        assert!((EVENTS..EVENTS + PROBES_MAX).contains(&with.requests));
        assert!(with.requests < without.requests && with.invocations < without.invocations);
        assert!(with.slowest_ms <= without.slowest_ms);
        assert_eq!([with.arrived, without.arrived], [2 * EVENTS; 2]);
    }
}

/// Fails if two traces differ, and prints the first lines that do.
fn assert_same_trace(seed: u64, first: &str, second: &str) {
    let lines = first.lines().zip(second.lines());
    let different = lines.enumerate().find(|(_, (first, second))| first != second);
    assert!(first == second, "seed {seed}, first difference (line from 0, both): {different:#?}");
}

/// Runs a seed in another process; returns its trace and the summary that follows.
fn replay(seed: u64, first_line: &str) -> String {
    let replayed = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "whatever_fails_nothing_is_lost_and_nothing_is_delivered_too_often_or_too_early",
        ])
        .arg("--nocapture")
        .env("LASTMILE_SEED", seed.to_string())
        .output()
        .expect("this test runs again");
    let printed = String::from_utf8(replayed.stdout).expect("text");
    let begin = printed.find(first_line).unwrap_or_else(|| panic!("seed {seed}: {printed}"));
    printed[begin..].to_owned()
}

/// The order of a `HashMap` differs between maps and between processes.
#[test]
fn a_seed_that_runs_again_gives_the_same_trace_also_in_another_process() {
    for seed in TRACED {
        let [first, second] = [0; 2].map(|_| run_seed(seed, None, Trace::Kept(RefCell::default())));
        assert_same_trace(seed, &first.trace, &second.trace);
        assert_eq!(first, second);
        let mut summary = Summary::default();
        summary.add(&first);
        let expected = format!("{}{summary}\n", first.trace);
        let printed = replay(seed, first.trace.lines().next().expect("a line"));
        assert_same_trace(seed, &expected, printed.get(..expected.len()).unwrap_or(&printed));
    }
}
