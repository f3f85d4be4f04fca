//! One seed, from an empty world to the verdict, and the summary of many seeds.

use std::fmt;

use delivery::time::duration::{HOUR_MS, MINUTE_MS};

use super::adaptive::Loads;
use super::dead_letter_ends::SinkCounts;
use super::driver::Driver;
use super::endpoints::{Behaviour, Served};
use super::faults::{Counts, Fault, SeededRandom};
use super::ledger::Ledger;
use super::limits::Limits;
use super::probations::Watch;
use super::publish::{self, Published};
use super::queues::Queues;
use super::rules::{Rules, TOPIC};
use super::sabotage::{Sabotage, Saboteur};
use super::shared::SharedTable;
use super::sinks::{self, Route, address};
use super::storage::Storage;
use super::trace::Trace;
use super::verdict::verdict;
use super::versions::Versions;
use super::world::{Inner, World};

/// The start of every world: 2026-11-20, 07:03 UTC.
pub(crate) const BEGINNING_MS: u64 = 1_795_158_180_123;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SeedResult {
    pub(crate) seed: u64,
    /// True if the sabotage found an opportunity.
    pub(crate) sabotaged: bool,
    deliveries: u64,
    attempts: u64,
    shared_requests: u64,
    postponements: u64,
    replies: u64,
    late_in_time: u64,
    late_too_late: u64,
    abandoned: u64,
    invocations: u64,
    letters: u64,
    sink_counts: SinkCounts,
    faults: Counts,
    broken: Vec<String>,
    /// Empty unless the trace was kept.
    pub(crate) trace: String,
}

impl SeedResult {
    /// The broken rules and how to replay them; `None` if no rule was broken.
    pub(crate) fn report(&self) -> Option<String> {
        let Self { seed, broken, .. } = self;
        let replay = "cargo test -p lastmile-tests --test simulation whatever_fails -- --nocapture";
        (!broken.is_empty()).then(|| {
            format!("seed {seed}: {}\n  replay: LASTMILE_SEED={seed} {replay}", broken.join("; "))
        })
    }
}

pub(crate) fn run_seed(seed: u64, sabotage: Option<Sabotage>, trace: Trace) -> SeedResult {
    let world = World::new(create(seed, sabotage, trace));
    Driver::new(world.clone()).run();
    let world = world.lock();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    SeedResult {
        seed,
        sabotaged: world.saboteur.done,
        deliveries: count(world.ledger.must_end.len()),
        attempts: count(world.ledger.seen.values().map(Vec::len).sum()),
        shared_requests: world.ledger.shared_requests,
        postponements: count(world.ledger.postponements.values().map(Vec::len).sum()),
        replies: count(world.ledger.replies.len()),
        late_in_time: world.ledger.late_in_time,
        late_too_late: world.ledger.late_too_late,
        abandoned: world.ledger.abandoned,
        invocations: count(world.invocations.len()),
        letters: count(world.storage.blobs.len()),
        sink_counts: SinkCounts::count(&world),
        faults: world.random.counts.clone(),
        broken: verdict(&world),
        trace: world.trace.text(),
    }
}

/// Creates the world of a seed: subscriptions, endpoints and published records.
fn create(seed: u64, sabotage: Option<Sabotage>, trace: Trace) -> Inner {
    let mut random = SeededRandom::new(seed);
    let began_ms = BEGINNING_MS + random.below(24) * HOUR_MS;
    // Some worlds have more subscriptions than one invocation handles in place.
    let subscriptions = if random.percent(6) { 11 + random.below(6) } else { 1 + random.below(3) };
    let choose = |number| Rules::choose(TOPIC, number, &mut random);
    let mut rules: Vec<Rules> = (0..subscriptions as usize).map(choose).collect();
    delay(&mut rules, seed);
    sinks::add_sink_subscriptions(&mut rules, &mut random);
    let mut behaviours: Vec<_> =
        rules.iter().map(|_| Behaviour::choose(&mut random, began_ms)).collect();
    if sabotage.is_some() {
        // A success would hide an earlier violation.
        behaviours.fill(Behaviour::Always(500));
    }
    let within_ms = random.pick(&[1, 1, 10_000, 30 * MINUTE_MS]);
    let records = if subscriptions > 10 { 1 } else { 1 + random.below(4) as usize };
    // Large events cost memory, so there are few.
    let big = random.below(1_000) < if subscriptions > 10 { 30 } else { 6 };
    let records = (0..records).map(|number| {
        let at_ms = began_ms + random.below(within_ms);
        publish::record(number, at_ms, big && number == 0, &mut random)
    });
    let records = records.collect();
    let saboteur = Saboteur::new(sabotage);
    Inner { saboteur, trace, ..Setting { random, began_ms, rules, behaviours, records }.begin() }
}

/// Gives the subscriptions of some worlds a delay. The delay has separate random numbers, so the
/// other worlds do not change.
fn delay(rules: &mut [Rules], seed: u64) {
    if seed % 5 == 2 {
        let mut random = SeededRandom::new(seed);
        for rule in rules {
            rule.subscription.delay_ms = random.pick(&[0, 500, 20 * MINUTE_MS, 3 * HOUR_MS]);
        }
    }
}

/// The start of a world.
pub(crate) struct Setting {
    pub(crate) random: SeededRandom,
    pub(crate) began_ms: u64,
    pub(crate) rules: Vec<Rules>,
    pub(crate) behaviours: Vec<Behaviour>,
    pub(crate) records: Vec<Published>,
}

impl Setting {
    /// Creates the world. Everything else is drawn from the random numbers.
    pub(crate) fn begin(self) -> Inner {
        let Self { mut random, began_ms, rules, behaviours, records } = self;
        let limits = Limits::choose(&mut random);
        let versions = Versions::choose(&rules, &mut random, began_ms);
        let storage = Storage::choose(&mut random, began_ms);
        let ledger = Ledger::new(records, &rules);
        let sink_behaviours =
            rules.iter().map(|_| Behaviour::choose(&mut random, began_ms)).collect();
        let mut queues = Queues::default();
        ledger.published.iter().for_each(|(message, published)| queues.publish(message, published));
        let mut break_always = |in_a_thousand| !random.quiet && random.below(1_000) < in_a_thousand;
        let crashing_record = break_always(12).then_some(0);
        let storage_panics = break_always(1);
        Inner {
            now_ms: began_ms,
            began_ms,
            queues,
            storage,
            versions,
            watches: vec![Watch::default(); address(rules.len(), Route::Event)],
            loads: Loads::default(),
            served: Served::default(),
            shared: SharedTable::default(),
            rules,
            behaviours,
            sink_behaviours,
            ledger,
            saboteur: Saboteur::default(),
            limits,
            processes: Vec::new(),
            throttled_ms: 0..0,
            refuses_until_ms: None,
            no_retries_until_ms: None,
            timers: Vec::new(),
            invocations: Vec::new(),
            current: 0,
            polling: false,
            crashing_record,
            storage_panics,
            trace: Trace::Off,
            random,
        }
    }
}

/// The sum of many seeds.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    seeds: u64,
    deliveries: u64,
    attempts: u64,
    /// Requests with more than one event.
    pub(crate) shared_requests: u64,
    /// Postponements of deliveries, for any reason.
    pub(crate) postponements: u64,
    /// Responses that carried a reply.
    pub(crate) replies: u64,
    /// Late successes that ended their deliveries.
    pub(crate) late_in_time: u64,
    late_too_late: u64,
    pub(crate) abandoned: u64,
    invocations: u64,
    letters: u64,
    /// Dead letters that went elsewhere than to a container.
    pub(crate) sink_counts: SinkCounts,
    /// Faults by kind.
    pub(crate) faults: Counts,
}

impl Summary {
    /// Adds the result of one seed.
    pub(crate) fn add(&mut self, result: &SeedResult) {
        self.seeds += 1;
        self.deliveries += result.deliveries;
        self.attempts += result.attempts;
        self.shared_requests += result.shared_requests;
        self.postponements += result.postponements;
        self.replies += result.replies;
        self.late_in_time += result.late_in_time;
        self.late_too_late += result.late_too_late;
        self.abandoned += result.abandoned;
        self.invocations += result.invocations;
        self.letters += result.letters;
        self.sink_counts = self.sink_counts.and(result.sink_counts);
        for (fault, count) in &result.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, deliveries, attempts, invocations, letters, .. } = self;
        write!(
            f,
            "simulation: {seeds} seeds, {deliveries} deliveries, {attempts} attempts, {letters} dead letters, "
        )?;
        write!(
            f,
            "{} requests with several events, {} postponements, ",
            self.shared_requests, self.postponements
        )?;
        write!(f, "{} replies, ", self.replies)?;
        write!(
            f,
            "{} late successes in time and {} too late, {} abandoned, ",
            self.late_in_time, self.late_too_late, self.abandoned
        )?;
        write!(f, "{:?}, {invocations} invocations; faults:", self.sink_counts)?;
        let count = |fault: &Fault| self.faults.get(fault).copied().unwrap_or(0);
        Fault::ALL.iter().try_for_each(|fault| write!(f, " {fault:?} {}", count(fault)))
    }
}
