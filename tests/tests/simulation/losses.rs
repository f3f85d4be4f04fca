//! Finds lost deliveries, which neither ended nor wait anywhere for their end.
//!
//! A delivery whose dead letter went to an address or a topic ends with the deliveries that follow,
//! which are checked in turn.

use std::collections::{BTreeMap, BTreeSet};

use delivery::ports::QueueName;
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::subscription::sink::Sink;
use uuid::Uuid;

use super::blobs::Blob;
use super::driver::LIFETIME_MS;
use super::limits::SKEW_MAX_MS;
use super::queues::{ALL, READ};
use super::replies::HOPS_MAX;
use super::rules::Expected;
use super::sinks::{Route, sink_delivery_of};
use super::world::Inner;

/// Returns a complaint for each delivery and each record without an end.
pub(crate) fn lost(world: &Inner, blobs: &BTreeMap<Uuid, Vec<Blob>>) -> Vec<String> {
    let ledger = &world.ledger;
    let carried = |queue| world.queues.all(queue).filter_map(|held| held.carried.id());
    let waiting: BTreeSet<Uuid> = READ.into_iter().flat_map(carried).collect();
    let kept: BTreeSet<Uuid> =
        carried(QueueName::LastResort).chain(waiting.iter().copied()).collect();
    let ends = EndCheck { world, blobs, kept };
    let whole = |queue| world.queues.all(queue).filter_map(|held| held.origin());
    let records: BTreeSet<&str> = ALL.into_iter().flat_map(whole).collect();
    let mut broken = Vec::new();
    // Expired messages do not count: SQS keeps a message for at most 14 days
    // (`docs/operate/rescue.md`).
    for id in ledger.must_end.difference(&ledger.expired) {
        let record = ledger.unprocessed.get(id).map(|record| ledger.published[*record].0.as_str());
        if !ends.has(*id) && !record.is_some_and(|record| records.contains(record)) {
            broken.push(format!("{}: lost", ledger.name(*id)));
        }
    }
    for id in ledger.divided.difference(&ledger.must_end) {
        let origin = ledger.origin(*id);
        let waits = |queue| world.queues.all(queue).any(|held| held.holds(*id, origin));
        let given_up = ledger.redriven_records.contains(origin);
        if !ends.has(*id) && !given_up && !ALL.into_iter().any(waits) {
            broken.push(format!("{}: lost with its part", ledger.name(*id)));
        }
    }
    let replies: BTreeMap<usize, Uuid> =
        ledger.replies.iter().map(|(answered, record)| (*record, *answered)).collect();
    for (record, (message, _)) in ledger.published.iter().enumerate() {
        let handled =
            ledger.acknowledged.contains(message) || ledger.redriven_records.contains(message);
        let answered = replies.get(&record);
        let is_not_owed = answered.is_some_and(|delivery| {
            !ledger.owed.contains(message) || may_be_refused_and_dropped(world, *delivery)
        });
        let handled = handled || is_not_owed || ledger.unsent_letters.contains(message);
        if !handled && !records.contains(message.as_str()) {
            broken.push(format!("the record {message} was lost"));
        }
    }
    let over = world.now_ms + LIFETIME_MS / 20 >= world.began_ms + LIFETIME_MS;
    // Messages in the last-resort queue wait for a person.
    let records_wait = READ.into_iter().flat_map(whole).next().is_some();
    if (!waiting.is_empty() || records_wait) && !over {
        broken.push("something still waits although there is time".to_owned());
    }
    broken
}

/// The places where a delivery may be.
struct EndCheck<'a> {
    world: &'a Inner,
    blobs: &'a BTreeMap<Uuid, Vec<Blob>>,
    /// Chains that wait in one of our queues.
    kept: BTreeSet<Uuid>,
}

impl EndCheck<'_> {
    /// True if a delivery ended or is still in flight.
    fn has(&self, id: Uuid) -> bool {
        let ledger = &self.world.ledger;
        let known = ledger.known.get(&id);
        let taken = ledger.seen.get(&id).is_some_and(|seen| seen.iter().any(|seen| seen.taken));
        if taken || self.kept.contains(&id) {
            return true;
        }
        match known.and_then(|known| known.from.filter(|_| known.route == Route::Sink)) {
            Some(from) => self.was_returned(from),
            None => {
                let sink_messages = self.world.storage.sink_messages.contains_key(&id);
                let stored =
                    self.blobs.contains_key(&id) || self.kept.contains(&sink_delivery_of(id));
                stored || sink_messages || self.continued(id) || may_be_dropped(self.world, id)
            }
        }
    }

    /// True if the dead letter of this delivery was stored after an address refused it. If it was
    /// also stored for another reason, the first blob remains.
    fn was_returned(&self, from: Uuid) -> bool {
        let plain = self.world.ledger.letters.get(&from).is_some_and(|letters| *letters > 0);
        self.blobs
            .get(&from)
            .into_iter()
            .flatten()
            .any(|blob| plain || blob.properties.get("sink").is_some())
    }

    /// True if some delivery followed from this dead letter, and all that must follow started.
    fn continued(&self, id: Uuid) -> bool {
        let ledger = &self.world.ledger;
        let began = |next: &&Uuid| {
            ledger.started_count(**next) > 0
                || self.blobs.contains_key(*next)
                || self.kept.contains(*next)
        };
        let has_to = |next: &&Uuid| {
            let known = &ledger.known[*next];
            let stays =
                known.subscription.is_some_and(|number| self.world.versions.always_have(number));
            stays && self.world.takes(known)
        };
        let next = ledger.after.get(&id).map_or(&[][..], Vec::as_slice);
        next.iter().any(|next| began(&next)) && next.iter().filter(has_to).all(|next| began(&next))
    }
}

/// True if the reply to this delivery may have been refused, and its dead letter dropped.
fn may_be_refused_and_dropped(world: &Inner, answered: Uuid) -> bool {
    let known = &world.ledger.known[&answered];
    let number = known.subscription.filter(|_| known.hops > 0);
    number.is_some_and(|number| world.rules[number].subscription.dead_letter.sink == Sink::None)
}

/// True if `deadLetter: none` explains why a delivery left nothing behind.
fn may_be_dropped(world: &Inner, id: Uuid) -> bool {
    let Some(known) = world.ledger.known.get(&id) else { return false };
    let Some(number) = known.subscription else { return false };
    let rules = &world.rules[number];
    if rules.subscription.dead_letter.sink != Sink::None {
        return false;
    }
    // The chain of replies reached its limit.
    if known.hops > HOPS_MAX {
        return true;
    }
    let published = &world.ledger.published[known.record].1;
    let seen = world.ledger.seen.get(&id).map_or(&[][..], Vec::as_slice);
    let attempts = seen.len() as u32 + world.ledger.chains_allowed(id) - 1;
    let own_ms = rules.subscription.retry.time_to_live_ms;
    let limit_ms = own_ms.map_or(u64::MAX, |own_ms| own_ms + world.delayed_ms(id));
    let limit_ms = limit_ms.min(LIFETIME_MAX_MS);
    seen.iter().any(|seen| rules.expected(&seen.result_seen) == Expected::Final)
        || attempts >= world.versions.fewest_attempts(number)
        || world.now_ms + SKEW_MAX_MS - published.at_ms >= limit_ms
        || published.big
}
