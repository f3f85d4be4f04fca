//! A dead destination under load, with and without probation, beside two healthy ones.

use super::driver::Driver;
use super::endpoints::Behaviour;
use super::faults::SeededRandom;
use super::lifetime::{BEGINNING_MS, Setting};
use super::publish::plain_record;
use super::rules::Rules;
use super::verdict::verdict;
use super::world::World;

/// The number of events: one every twelve seconds for an hour.
pub(crate) const EVENTS: usize = 300;
const EVERY_MS: u64 = 12_000;
/// The numbers of the dead destination and of the healthy ones.
const DEAD: usize = 0;
const WELL: [usize; 2] = [1, 2];

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Load {
    /// Requests at the dead destination.
    pub(crate) requests: usize,
    /// All invocations.
    pub(crate) invocations: usize,
    /// The longest time of a delivery to a healthy destination.
    pub(crate) slowest_ms: u64,
    /// Deliveries to healthy destinations that arrived.
    pub(crate) arrived: usize,
}

/// Runs a load on a destination that never responds or always refuses.
pub(crate) fn load(dead: Behaviour, probation: bool) -> Load {
    let rules = (0..=WELL.len()).map(|number| Rules::of_event_grid(number, probation)).collect();
    let behaviours = vec![dead, Behaviour::Good, Behaviour::Good];
    let records = (0..EVENTS)
        .map(|number| plain_record(number, BEGINNING_MS + EVERY_MS * number as u64))
        .collect();
    // Seed 0 has no faults.
    let setting = Setting {
        random: SeededRandom::new(0),
        began_ms: BEGINNING_MS,
        rules,
        behaviours,
        records,
    };
    let world = World::new(setting.begin());
    Driver::new(world.clone()).run();
    let world = world.lock();
    let broken = verdict(&world);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let ledger = &world.ledger;
    let deliveries = |number| {
        ledger.seen.iter().filter(move |(id, _)| ledger.known[id].subscription == Some(number))
    };
    let others = || WELL.into_iter().flat_map(deliveries);
    let took_ms = others().flat_map(|(id, seen)| {
        let published_ms = ledger.published[ledger.known[id].record].1.at_ms;
        seen.iter().map(move |seen| seen.ended_ms - published_ms)
    });
    Load {
        requests: deliveries(DEAD).map(|(_, seen)| seen.len()).sum(),
        invocations: world.invocations.len(),
        slowest_ms: took_ms.max().unwrap_or_default(),
        arrived: others().filter(|(_, seen)| seen.iter().any(|seen| seen.taken)).count(),
    }
}
