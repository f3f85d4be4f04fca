//! One seed, from an empty world to the verdict, and the summary of many seeds.

use std::fmt;

use delivery::time::duration::{HOUR_MS, MINUTE_MS};

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::fate::Sunk;
use super::faults::{Counts, Fault, JitterSource};
use super::ledger::Ledger;
use super::probations::Watch;
use super::publish::{self, Published};
use super::queues::Queues;
use super::rules::{Rules, TOPIC};
use super::sabotage::{Sabotage, Saboteur};
use super::sinks;
use super::storage::Storage;
use super::verdict::verdict;
use super::versions::Versions;
use super::world::{Inner, World};

/// The start of every world: 2026-11-20, 07:03 UTC.
pub(crate) const BEGINNING_MS: u64 = 1_795_158_180_123;

/// The result of one seed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Its seed.
    pub(crate) seed: u64,
    /// The rule that was to be sabotaged was broken.
    pub(crate) sabotaged: bool,
    deliveries: u64,
    attempts: u64,
    shared_requests: u64,
    put_offs: u64,
    replies: u64,
    late_heard: u64,
    late_unheard: u64,
    invocations: u64,
    letters: u64,
    sunk: Sunk,
    faults: Counts,
    broken: Vec<String>,
}

impl Life {
    /// The broken rules and how to replay them; `None` if there are none.
    pub(crate) fn report(&self) -> Option<String> {
        let Self { seed, broken, .. } = self;
        let replay =
            "cargo test -p lastmile-tests --test simulation nothing_is_lost -- --nocapture";
        (!broken.is_empty()).then(|| {
            format!("seed {seed}: {}\n  replay: LASTMILE_SEED={seed} {replay}", broken.join("; "))
        })
    }
}

/// Runs one seed.
pub(crate) fn live(seed: u64, sabotage: Option<Sabotage>, trace: bool) -> Life {
    let world = World::new(create(seed, sabotage, trace));
    Driver::new(world.clone()).run();
    let world = world.lock();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Life {
        seed,
        sabotaged: world.saboteur.done,
        deliveries: count(world.ledger.owed.len()),
        attempts: count(world.ledger.seen.values().map(Vec::len).sum()),
        shared_requests: world.ledger.shared_requests,
        put_offs: count(world.ledger.put_offs.values().map(Vec::len).sum()),
        replies: count(world.ledger.replies.len()),
        late_heard: world.ledger.late_heard,
        late_unheard: world.ledger.late_unheard,
        invocations: count(world.invocations.len()),
        letters: count(world.storage.blobs.len()),
        sunk: Sunk::of(&world),
        faults: world.dice.counts.clone(),
        broken: verdict(&world),
    }
}

/// A world at its start: subscriptions, endpoints and published records.
fn create(seed: u64, sabotage: Option<Sabotage>, trace: bool) -> Inner {
    let mut dice = JitterSource::new(seed);
    let began_ms = BEGINNING_MS + dice.below(24) * HOUR_MS;
    // Sometimes more subscriptions than one invocation handles in place.
    let subscriptions = if dice.percent(6) { 11 + dice.below(6) } else { 1 + dice.below(3) };
    let choose = |number| Rules::choose(TOPIC, number, &mut dice);
    let mut rules: Vec<Rules> = (0..subscriptions as usize).map(choose).collect();
    sinks::beyond(&mut rules, &mut dice);
    let mut behaviours: Vec<_> =
        rules.iter().map(|_| Behaviour::choose(&mut dice, began_ms)).collect();
    if sabotage.is_some() {
        // A success would hide what was broken before it.
        behaviours.fill(Behaviour::Always(500));
    }
    let within_ms = dice.one_of(&[1, 1, 10_000, 30 * MINUTE_MS]);
    let records = if subscriptions > 10 { 1 } else { 1 + dice.below(4) as usize };
    // Large events cost memory, so there are few.
    let big = dice.below(1_000) < if subscriptions > 10 { 30 } else { 6 };
    let records = (0..records).map(|number| {
        let at_ms = began_ms + dice.below(within_ms);
        publish::record(number, at_ms, big && number == 0, &mut dice)
    });
    let records = records.collect();
    let saboteur = Saboteur { plan: sabotage, ..Saboteur::default() };
    Inner { saboteur, trace, ..Setting { dice, began_ms, rules, behaviours, records }.begin() }
}

/// The start of a world.
pub(crate) struct Setting {
    pub(crate) dice: JitterSource,
    pub(crate) began_ms: u64,
    pub(crate) rules: Vec<Rules>,
    pub(crate) behaviours: Vec<Behaviour>,
    pub(crate) records: Vec<Published>,
}

impl Setting {
    /// The world at its start; everything else is drawn from the random numbers.
    pub(crate) fn begin(self) -> Inner {
        let Self { mut dice, began_ms, rules, behaviours, records } = self;
        let versions = Versions::choose(&rules, &mut dice, began_ms);
        let storage = Storage::choose(&mut dice, began_ms);
        let ledger = Ledger::new(records, &rules);
        let sink_behaviours =
            rules.iter().map(|_| Behaviour::choose(&mut dice, began_ms)).collect();
        let mut queues = Queues::default();
        ledger.published.iter().for_each(|(message, published)| queues.publish(message, published));
        let mut break_always = |in_a_thousand| !dice.quiet && dice.below(1_000) < in_a_thousand;
        let poisonous = break_always(12).then_some(0);
        let storage_is_poisonous = break_always(1);
        Inner {
            now_ms: began_ms,
            began_ms,
            queues,
            storage,
            versions,
            watches: vec![Watch::default(); rules.len()],
            rules,
            behaviours,
            sink_behaviours,
            ledger,
            saboteur: Saboteur::default(),
            timers: Vec::new(),
            invocations: Vec::new(),
            current: 0,
            poisonous,
            storage_is_poisonous,
            trace: false,
            dice,
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
    /// How often a delivery was postponed because its destination was on probation.
    pub(crate) put_offs: u64,
    /// Responses that carried a reply.
    pub(crate) replies: u64,
    /// Late successes that ended their deliveries.
    pub(crate) late_heard: u64,
    late_unheard: u64,
    invocations: u64,
    letters: u64,
    /// Dead letters that went elsewhere than to a container.
    pub(crate) sunk: Sunk,
    /// Faults by kind.
    pub(crate) faults: Counts,
}

impl Summary {
    /// Adds the result of one seed.
    pub(crate) fn add(&mut self, life: &Life) {
        self.seeds += 1;
        self.deliveries += life.deliveries;
        self.attempts += life.attempts;
        self.shared_requests += life.shared_requests;
        self.put_offs += life.put_offs;
        self.replies += life.replies;
        self.late_heard += life.late_heard;
        self.late_unheard += life.late_unheard;
        self.invocations += life.invocations;
        self.letters += life.letters;
        self.sunk = self.sunk.and(life.sunk);
        for (fault, count) in &life.faults {
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
            "{} requests with several events, {} put-offs, ",
            self.shared_requests, self.put_offs
        )?;
        write!(f, "{} replies, ", self.replies)?;
        write!(
            f,
            "{} late successes and {} that came too late, ",
            self.late_heard, self.late_unheard
        )?;
        write!(f, "{:?}, {invocations} invocations; faults:", self.sunk)?;
        let count = |fault: &Fault| self.faults.get(fault).copied().unwrap_or(0);
        Fault::ALL.iter().try_for_each(|fault| write!(f, " {fault:?} {}", count(fault)))
    }
}
