//! A pause of six days whose end falls into an outage of storage: what it set aside is replayed, and nothing is left
//! behind.
//!
//! `lastmile apply`, `lastmile rollback` and a program that puts the topic's object itself end a pause in one way for
//! the functions: a process finds another version of the object when it looks next. So one end stands for all three.
//! The rounds of `lastmile deadletters replay --until-quiet PT12M` are modelled here. What a round sends is decided by
//! the filter, the plan and the states of that command.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::sync::Arc;
use std::task::Waker;

use deadletters::dismissed::Dismissals;
use deadletters::filter::Filter;
use deadletters::ledger::{Ending, KnownEnd, LedgerEntry, ReplayRecord, ReplayState, delivery_id};
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{ReplayPlan, Replayed};
use deadletters::state::{LetterState, LetterStates, WantedState};
use delivery::deadletter::stored::{StoredDeadLetter, read};
use delivery::delivery::reason::Reason;
use delivery::delivery::replay::{StoredReplayEnd, read_ends};
use delivery::ports::QueueName;
use delivery::subscription::sink::Sink;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::time::moment::rfc3339;
use uuid::Uuid;

use super::dead_letter_ends::SinkCounts;
use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::{Fault, SeededRandom};
use super::lifetime::{BEGINNING_MS, Setting};
use super::limits::Limits;
use super::publish::{Published, plain_record};
use super::replayed::is_of_replay;
use super::rules::{OWN_CONTAINER, Rules, TOPIC};
use super::sinks::{FIRST_SINK_TOPIC, SINK_QUEUE};
use super::storage::DEFAULT_CONTAINER;
use super::verdict::verdict;
use super::versions::Versions;
use super::world::{Inner, World};

const SEEDS: u64 = 3;
/// The end of the pause.
const RESUMED_MS: u64 = BEGINNING_MS + 6 * DAY_MS;
/// Storage answers nothing for this long: at the end of the pause, and while its dead letters are replayed.
const OUTAGE_MS: u64 = 40 * SECOND_MS;
/// As `lastmile apply` and `rollback` print it, and the time between two rounds.
const QUIET_MS: u64 = 12 * MINUTE_MS;
const ROUND_EVERY_MS: u64 = 30 * SECOND_MS;
/// The subscriptions that were paused; one more takes dead letters from the topic that is a sink.
const PAUSED: usize = 6;
/// The least number of processes.
const PROCESSES: usize = 12;

/// A subscription for each kind of sink, and one without.
fn rules() -> Vec<Rules> {
    let sinks: [Sink; PAUSED] = [
        Sink::Address("https://d0.example.com/in".parse().expect("an address")),
        Sink::Topic(FIRST_SINK_TOPIC.parse().expect("a topic")),
        Sink::Queue(SINK_QUEUE.parse().expect("a queue")),
        Sink::Container(OWN_CONTAINER.parse().expect("a container")),
        Sink::DefaultContainer,
        Sink::None,
    ];
    let paused = sinks.into_iter().enumerate().map(|(number, sink)| {
        let mut rules = Rules::of_seven_days(number);
        rules.subscription.dead_letter.sink = sink;
        rules.subscription.dead_letter.delay_ms = 5 * MINUTE_MS;
        rules
    });
    paused.chain([Rules::of_topic_and_number(FIRST_SINK_TOPIC, PAUSED)]).collect()
}

/// Four events every two hours, and ten every five seconds around the end of the pause.
fn records() -> Vec<Published> {
    let seldom = (0..75).map(|number| BEGINNING_MS + number * 2 * HOUR_MS);
    let often = (0..48).map(|number| RESUMED_MS - MINUTE_MS + number * 5 * SECOND_MS);
    let seldom = seldom.flat_map(|at_ms| [at_ms; 4]);
    let times = seldom.chain(often.flat_map(|at_ms| [at_ms; 10]));
    times.enumerate().map(|(number, at_ms)| plain_record(number, at_ms)).collect()
}

fn world(seed: u64) -> World {
    let (random, began_ms, rules, records) =
        (SeededRandom::new(4 * seed), BEGINNING_MS, rules(), records());
    let behaviours = vec![Behaviour::Good; rules.len()];
    let mut world = Setting { random, began_ms, rules, behaviours, records }.begin();
    // Not one in which every attempt is made exactly when it is due, but without other faults.
    world.random.quiet = false;
    world.limits = Limits {
        concurrency: PROCESSES,
        pollers: PROCESSES,
        fair: true,
        processes: true,
        skew_ms: SECOND_MS / 2,
        restarts: 1,
        ..Limits::NONE
    };
    world.versions = Versions::paused(TOPIC, RESUMED_MS, RESUMED_MS + OUTAGE_MS, &world.rules);
    world.queues.keep_for(QueueName::Events, DAY_MS);
    World::new(world)
}

/// An operator who replays what was set aside of a subscription, until nothing has come for twelve minutes.
struct Operator {
    job: String,
    filter: Filter,
    /// The keys of the dead letters that were read since the command began.
    seen: BTreeSet<String>,
    /// When the last dead letter was sent, and when the last that had not been sent before.
    last_ms: u64,
    last_new_ms: u64,
    jobs: u64,
    is_done: bool,
}

impl Operator {
    fn new(number: usize) -> Self {
        let filter = Filter {
            subscription: Some(format!("s{number}")),
            reasons: vec![Reason::Paused],
            wanted_states: vec![WantedState::Only(LetterState::Open)],
            ..Filter::default()
        };
        Self {
            job: format!("s{number}"),
            filter,
            seen: BTreeSet::new(),
            last_ms: RESUMED_MS,
            last_new_ms: RESUMED_MS,
            jobs: 0,
            is_done: false,
        }
    }

    /// One round. It fails if storage does; then the operator starts the command again.
    fn round(&mut self, world: &mut Inner, states: &Arc<LetterStates>, replays: &mut Replays) {
        if world.storage.refuses(world.now_ms) {
            self.seen.clear();
            (self.last_ms, self.last_new_ms) = (world.now_ms, world.now_ms);
            return;
        }
        let is_first = self.seen.is_empty();
        let filter = Filter { states: Arc::clone(states), ..self.filter.clone() };
        let folder = format!("/{}/", self.job);
        let is_new = |key: &str| key.contains(&folder) && self.seen.insert(key.to_owned());
        let (mut letters, mut ids) = (stored(world, is_new), BTreeSet::new());
        // A delivery that was duplicated may have left two blobs with one id.
        letters.retain(|letter| filter.matches(letter) && ids.insert(letter.id));
        let mut plan = ReplayPlan::default();
        letters.iter().for_each(|letter| plan.add(letter, &ReplayTarget::Subscription));
        if is_first {
            plan.leave_out_older(states);
        }
        if plan.is_empty() {
            self.is_done = world.now_ms - self.last_ms >= QUIET_MS;
            return;
        }
        let is_stuck = plan.are_all_back() && world.now_ms - self.last_new_ms >= QUIET_MS;
        assert!(!is_stuck, "{}: the replays become dead letters again", self.job);
        self.last_ms = world.now_ms;
        self.last_new_ms = if plan.are_all_back() { self.last_new_ms } else { world.now_ms };
        self.jobs += 1;
        let job = format!("{}-{}", self.job, self.jobs);
        let planned = BTreeSet::from_iter(plan.ids());
        for letter in letters.iter().filter(|letter| planned.contains(&letter.id)) {
            replays.send(world, letter, &job);
        }
    }
}

/// The ledgers of all jobs.
#[derive(Default)]
struct Replays(HashMap<Uuid, ReplayRecord>);

impl Replays {
    fn send(&mut self, world: &mut Inner, letter: &StoredDeadLetter, job: &str) {
        let delivery = delivery_id(job, letter.id);
        world.send_replay(letter, job, delivery);
        let (at, state) = (rfc3339(world.now_ms), ReplayState::Sent);
        let entry =
            LedgerEntry { letter: letter.id, delivery, state, at, problem: None, end: None };
        let record = ReplayRecord { job: job.to_owned(), entry, ending: Ending::Recorded };
        self.0.insert(letter.id, record);
    }

    /// The states of all dead letters, with the ends that are recorded now.
    fn states(&mut self, world: &Inner) -> LetterStates {
        for end in ends(world) {
            let record = self.0.get_mut(&end.letter).filter(|record| record.job == end.job);
            let entry = &mut record.expect("the end of a replay that was sent").entry;
            if entry.end.as_ref().is_none_or(|known| end.state < known.state) {
                entry.end = Some(KnownEnd::from(&end));
            }
        }
        let replayed = Replayed { records: self.0.clone(), ..Replayed::default() };
        LetterStates::new(replayed, Dismissals::default(), world.now_ms)
    }
}

/// The dead letters in the default container whose keys are wanted.
fn stored(world: &Inner, mut is_wanted: impl FnMut(&str) -> bool) -> Vec<StoredDeadLetter> {
    let (bucket, prefix) = DEFAULT_CONTAINER.split_once('/').expect("a bucket and a prefix");
    let blobs = world.storage.blobs.iter().filter(|((container, key), _)| {
        container == bucket && !is_of_replay(key) && is_wanted(key)
    });
    blobs.map(|((_, key), bytes)| read(key, prefix, bytes).expect("a dead letter")).collect()
}

fn ends(world: &Inner) -> Vec<StoredReplayEnd> {
    let blobs = world.storage.blobs.iter().filter(|((_, key), _)| is_of_replay(key));
    blobs.flat_map(|(_, bytes)| read_ends(bytes)).collect()
}

/// Runs the functions until this time, also if nothing happens then.
fn run_until(driver: &mut Driver, world: &World, at_ms: u64) {
    world.with(|world| world.timers.push((at_ms, Waker::noop().clone())));
    driver.run_while(|world| world.now_ms < at_ms);
}

/// Runs the functions and the operators, who begin when the pause ends.
fn run(world: &World) -> Replays {
    let (mut driver, mut replays) = (Driver::new(world.clone()), Replays::default());
    run_until(&mut driver, world, RESUMED_MS);
    world.with(|world| world.storage.refuse_until(RESUMED_MS + OUTAGE_MS));
    let mut operators: Vec<Operator> = (0..PAUSED).map(Operator::new).collect();
    let mut at_ms = RESUMED_MS;
    while operators.iter().any(|operator| !operator.is_done) {
        assert!(at_ms < RESUMED_MS + 2 * HOUR_MS, "dead letters still come");
        run_until(&mut driver, world, at_ms);
        world.with(|world| {
            let goes_on = operators.iter_mut().filter(|operator| !operator.is_done);
            let states = Arc::new(replays.states(world));
            goes_on.for_each(|operator| operator.round(world, &states, &mut replays));
        });
        // The first replays are sent between the two.
        if at_ms == RESUMED_MS + 2 * ROUND_EVERY_MS {
            run_until(&mut driver, world, at_ms + 5 * SECOND_MS);
            world.with(|world| world.storage.refuse_until(world.now_ms + OUTAGE_MS));
        }
        at_ms += ROUND_EVERY_MS;
    }
    driver.run();
    replays
}

/// The numbers of the subscriptions that took each event, by the number of its record.
fn taken(world: &Inner) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut taken: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (id, _) in
        world.ledger.seen.iter().filter(|(_, seen)| seen.iter().any(|request| request.taken))
    {
        let first = &world.ledger.known[world.ledger.replays.get(id).unwrap_or(id)];
        taken.entry(first.record).or_default().extend(first.subscription);
    }
    taken
}

/// Counts that show that a world was hard.
#[derive(Debug, Default)]
struct Covered {
    delivered: u64,
    dead_again: u64,
    refused: u64,
    processes: usize,
}

/// Runs a world, and checks that each event was delivered, and that no dead letter is open.
fn check(seed: u64) -> Covered {
    let world = world(seed);
    let mut replays = run(&world);
    let world = world.lock();
    let broken = verdict(&world);
    assert!(broken.is_empty(), "seed {seed}: {}", broken.join("\n"));
    let ids = stored(&world, |_| true).into_iter().map(|letter| letter.id);
    let counts: BTreeMap<LetterState, u64> =
        replays.states(&world).counts(ids).into_iter().collect();
    let is_ended = |state| matches!(state, LetterState::Delivered | LetterState::DeadAgain);
    assert!(counts.keys().copied().all(is_ended), "seed {seed}: {counts:?}");
    let all = (0..records().len()).map(|record| (record, (0..PAUSED).collect()));
    assert_eq!(taken(&world), all.collect(), "seed {seed}");
    // An address, a topic, a queue, another container.
    assert_eq!(SinkCounts::count(&world), SinkCounts::default(), "seed {seed}");
    let own = OWN_CONTAINER.split('/').next().unwrap_or_default();
    assert!(world.storage.blobs.keys().all(|(bucket, _)| bucket != own), "seed {seed}");
    let count = |state| counts.get(&state).copied().unwrap_or(0);
    Covered {
        delivered: count(LetterState::Delivered),
        dead_again: count(LetterState::DeadAgain),
        refused: world.random.counts.get(&Fault::StorageRefused).copied().unwrap_or(0),
        processes: world.processes.len(),
    }
}

#[test]
fn what_is_set_aside_in_a_pause_of_six_days_is_delivered_by_replays_and_nothing_is_left_open() {
    let covered: Vec<Covered> = (0..SEEDS).map(check).collect();
    let _ = writeln!(std::io::stdout(), "a pause of six days: {covered:?}");
    let is_hard = |counts: &Covered| {
        counts.delivered > 2_000 && counts.refused > 100 && counts.processes >= PROCESSES
    };
    assert!(covered.iter().all(is_hard), "{covered:?}");
    let is_any_back = covered.iter().any(|counts| counts.dead_again > 0);
    assert!(is_any_back, "no replay was set aside again: {covered:?}");
}
