//! Checks at the end: nothing is lost, nothing is multiplied, and every dead letter reports the
//! truth.

use std::collections::{BTreeMap, BTreeSet};

use delivery::ports::QueueName;
use delivery::subscription::sink::Sink;
use dispatch::{IN_PLACE_BELOW_MS, IN_PLACE_WAITS};
use uuid::Uuid;

use super::blobs::{Blob, guid_path, mismatch, read_blobs};
use super::costs::too_expensive;
use super::dead_letter_ends::{end_agrees, misplaced, sink_delivery_agrees};
use super::losses::lost;
use super::replay::{DeliveryRecord, replay};
use super::replies::HOPS_MAX;
use super::sinks::{Route, address, sink_delivery_of};
use super::world::Inner;

/// Everything that is wrong with a world at its end.
pub(crate) fn verdict(world: &Inner) -> Vec<String> {
    let mut broken = world.ledger.broken.clone();
    let blobs = read_blobs(world, &mut broken);
    broken.extend(lost(world, &blobs));
    broken.extend(multiplied(world, &blobs));
    broken.extend(too_expensive(world));
    for (id, blob) in blobs.iter().flat_map(|(id, blobs)| blobs.iter().map(move |blob| (*id, blob)))
    {
        let problems = [mismatch(world, id, blob), misplaced(world, id, blob)];
        broken.extend(
            problems
                .into_iter()
                .flatten()
                .map(|problem| format!("{}: {problem}", world.ledger.name(id))),
        );
    }
    if world.random.quiet {
        broken.extend(inexact(world, &blobs));
    }
    let mut result_seen = BTreeSet::new();
    broken.retain(|violation| result_seen.insert(violation.clone()));
    broken
}

/// Deliveries with more chains than the faults explain, and with more blobs than chains.
fn multiplied(world: &Inner, blobs: &BTreeMap<Uuid, Vec<Blob>>) -> Vec<String> {
    let ledger = &world.ledger;
    let mut broken = Vec::new();
    let mut waiting: BTreeMap<Uuid, u32> = BTreeMap::new();
    let queues = [QueueName::Retry, QueueName::Slow, QueueName::Isolation];
    let carried = queues.into_iter().flat_map(|queue| world.queues.all(queue));
    carried
        .filter_map(|held| held.carried.id())
        .for_each(|id| *waiting.entry(id).or_default() += 1);
    for id in ledger.known.keys() {
        let allowed = ledger.chains_allowed(*id);
        let chains = ledger.ends(*id) + waiting.get(id).copied().unwrap_or(0);
        if chains > allowed {
            broken.push(format!(
                "{}: {chains} chains, but the faults explain {allowed}",
                ledger.name(*id)
            ));
        }
        let number = ledger.known[id].subscription;
        let most = number.map_or(0, |number| world.rules[number].subscription.retry.max_attempts);
        let attempts = ledger.seen.get(id).map_or(0, Vec::len) as u32;
        // One more retry alone, after a refused batch.
        let most = most
            + u32::from(
                number.is_some_and(|number| world.rules[number].subscription.batch.is_some()),
            );
        if attempts > most * allowed {
            broken.push(format!(
                "{}: {attempts} attempts in at most {allowed} chains",
                ledger.name(*id)
            ));
        }
        let letters = [*id, sink_delivery_of(*id)]
            .iter()
            .filter_map(|id| ledger.letters.get(id))
            .sum::<u32>();
        let keys: BTreeSet<&str> =
            blobs.get(id).into_iter().flatten().map(|blob| guid_path(&blob.key)).collect();
        if keys.len() as u32 > letters {
            broken.push(format!(
                "{}: {} blobs of {letters} dead letters",
                ledger.name(*id),
                keys.len()
            ));
        }
    }
    broken
}

/// True if a refused reply made no attempt, and its dead letter is in the place that its subscription
/// names.
fn ends_its_chain(world: &Inner, id: Uuid, number: usize, blobs: &[Blob]) -> bool {
    let dropped = world.rules[number].subscription.dead_letter.sink == Sink::None;
    let in_queue = world.storage.sink_messages.contains_key(&id);
    let is_in_place = match blobs {
        [] => dropped || in_queue,
        [blob] => !dropped && blob.reason() == "ReplyLoop",
        _ => false,
    };
    is_in_place && !world.ledger.seen.contains_key(&id)
}

/// In a world without faults every delivery makes exactly the attempts that its policy and its
/// endpoint lead to.
fn inexact(world: &Inner, blobs: &BTreeMap<Uuid, Vec<Blob>>) -> Vec<String> {
    let ledger = &world.ledger;
    let mut broken = Vec::new();
    for id in &ledger.must_end {
        let Some(known) = ledger.known.get(id) else { continue };
        // A sink delivery leaves nothing but the dead letter that it carried.
        let kept_as = known.from.filter(|_| known.route == Route::Sink).unwrap_or(*id);
        let blobs: &[Blob] = blobs.get(&kept_as).map_or(&[], Vec::as_slice);
        let problem = match known.subscription {
            None => (blobs.len() != 1).then(|| format!("{} blobs instead of one", blobs.len())),
            // The chain of replies reached its limit, or used up the budget of its event.
            Some(number)
                if known.hops > HOPS_MAX
                    || (ledger.refused_replies.contains(id)
                        && world.may_exceed_budget(number, known.hops)) =>
            {
                let is_right = ends_its_chain(world, *id, number, blobs);
                (!is_right).then(|| "not ended as the end of a chain".to_owned())
            }
            Some(number) => {
                let seen = ledger.seen.get(id).map_or(&[][..], Vec::as_slice);
                let rules = &world.rules[number];
                let postponements = ledger.postponements.get(id).map_or(&[][..], Vec::as_slice);
                let published = &ledger.published[known.record].1;
                let began = ledger.fresh.get(id).and_then(|fresh| fresh.first());
                let published_ms = began.map_or(published.at_ms, |fresh| fresh.published_ms);
                let waits_for_late = world
                    .rules
                    .iter()
                    .any(|rules| rules.subscription.destination.late_window_ms > 0);
                // It may have waited for its turn in place, and once more in the slow lane.
                let address = address(number, known.route);
                let destination = &rules.subscription.destination;
                let for_turn_ms =
                    match (world.loads.is_pressed(address), destination.late_window_ms) {
                        (true, 0) => 2 * destination.slow_after_ms,
                        // An attempt with a window for a late response is not abandoned. It keeps its room for its whole timeout.
                        (true, _) => {
                            2 * destination.slow_after_ms.max(destination.response_timeout_ms)
                        }
                        (false, _) => 0,
                    };
                // A rest below a second is waited in place. So is a deferral below a second, which
                // sends no message.
                let was_deferred =
                    destination.probation && world.watches[address].may_have_been_on_probation();
                let in_place_ms = match world.loads.was_to_be_left_alone(address) || was_deferred {
                    true => IN_PLACE_BELOW_MS * u64::from(IN_PLACE_WAITS),
                    false => 0,
                };
                let turn_ms = for_turn_ms + in_place_ms;
                replay(DeliveryRecord {
                    rules,
                    seen,
                    postponements,
                    published_ms,
                    delayed_ms: world.delayed_ms(*id),
                    route: known.route,
                    big: published.big,
                    waits_for_late,
                    turn_ms,
                })
                .and_then(|end| match known.route {
                    Route::Sink => sink_delivery_agrees(end, seen, blobs),
                    Route::Event | Route::Reply => end_agrees(world, *id, end, blobs),
                })
                .err()
            }
        };
        broken.extend(problem.map(|problem| format!("{}: {problem}", ledger.name(*id))));
    }
    broken
}
