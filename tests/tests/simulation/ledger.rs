//! What really happened, written down by the world and not by the functions.
//!
//! The checks compare the two. Everything is kept by the id of the delivery, which the world works out for itself from
//! subscription, published record and place.

use std::collections::{BTreeMap, BTreeSet};

use delivery::blob::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::delivery::{Delivery, Leg, Origin};
use delivery::event::{Event, Input};
use delivery::outcome::Ending;
use delivery::ports::QueueName;
use delivery::subscription::{SubscriptionName, TopicName};
use uuid::Uuid;

use super::publish::{Published, Sort};
use super::queues::Held;
use super::rules::{Expected, Rules, TOPIC};

/// What a delivery is about.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The number of its subscription; `None` for what nobody can deliver.
    pub(crate) subscription: Option<usize>,
    /// The number of its record.
    pub(crate) record: usize,
    /// Its place in the record.
    pub(crate) index: usize,
    /// How many replies led to it.
    pub(crate) hops: u32,
    /// Where it goes.
    pub(crate) leg: Leg,
}

/// A request that reached an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Its start.
    pub(crate) at_ms: u64,
    /// Its end.
    pub(crate) ended_ms: u64,
    /// What the function was told.
    pub(crate) told: Ending,
    /// What that has to lead to.
    pub(crate) expected: Expected,
    /// The endpoint took the event, whatever the function was told.
    pub(crate) taken: bool,
    /// Start of the first attempt of its chain.
    pub(crate) first_ms: u64,
}

/// What one invocation did for one delivery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Requests made.
    pub(crate) requests: u32,
    /// When the last one ended, and what it has to lead to.
    pub(crate) last: Option<(u64, Expected)>,
    /// Start of the first of them.
    pub(crate) first_ms: Option<u64>,
}

/// One run of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocation {
    /// It is the deadletter function.
    pub(crate) stores: bool,
    /// What it received.
    pub(crate) taken: Vec<(QueueName, Held)>,
    /// The versions of the catalogue it was given.
    pub(crate) versions: Vec<usize>,
    /// What it did, by delivery.
    pub(crate) tallies: BTreeMap<Uuid, Tally>,
    /// The deliveries whose answers carried a reply, and the record that stands for it.
    pub(crate) answered: Vec<(Uuid, usize)>,
    /// Panics that were thrown in it.
    pub(crate) panics: u32,
    /// It is to be dropped at its next rest.
    pub(crate) crashed: bool,
    /// It was given very little time.
    pub(crate) short: bool,
}

impl Invocation {
    /// The received messages that speak for a delivery of this published record.
    pub(crate) fn speaking_for(&self, id: Uuid, origin: &str) -> Vec<&Held> {
        let speaks = |held: &Held| match held.carried.delivery() {
            Some(delivery) => delivery.id == id,
            None => held.message == origin,
        };
        self.taken.iter().map(|(_, held)| held).filter(|held| speaks(held)).collect()
    }
}

/// Everything that happened in one world.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The published records and their message ids.
    pub(crate) published: Vec<(String, Published)>,
    /// Every delivery there may be.
    pub(crate) known: BTreeMap<Uuid, Known>,
    /// Its id, by number of subscription, record and place.
    pub(crate) ids: BTreeMap<(Option<usize>, usize, usize), Uuid>,
    /// The ids that stand for whole records which dispatch never took apart.
    pub(crate) unprocessed: BTreeMap<Uuid, usize>,
    /// The records that stand for replies, by the delivery they answer.
    pub(crate) replies: BTreeMap<Uuid, usize>,
    /// How often a function was told the reply that each of these follows from.
    pub(crate) starts: BTreeMap<Uuid, u32>,
    /// When each delivery was put off, and until when.
    pub(crate) put_offs: BTreeMap<Uuid, Vec<(u64, u64)>>,
    /// Late successes that ended their deliveries, and those that nobody heard.
    pub(crate) late_heard: u64,
    pub(crate) late_unheard: u64,
    /// Requests with more than one event.
    pub(crate) shared_requests: u64,
    /// Requests, by delivery.
    pub(crate) seen: BTreeMap<Uuid, Vec<Seen>>,
    /// Dead letters that left dispatch, by delivery: sent, stored directly, or redriven.
    pub(crate) letters: BTreeMap<Uuid, u32>,
    /// Deliveries that have to come to an end.
    pub(crate) owed: BTreeSet<Uuid>,
    /// Records that were acknowledged.
    pub(crate) acknowledged: BTreeSet<String>,
    /// Records that a queue gave up untouched.
    pub(crate) given_up: BTreeSet<String>,
    /// Faults that may have forked the chain of one delivery.
    pub(crate) forks: BTreeMap<Uuid, u32>,
    /// Faults that may have forked every chain of a record.
    pub(crate) record_forks: BTreeMap<String, u32>,
    /// Blobs that a dead-letter message led to, by message and bucket.
    pub(crate) stored: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// Blobs that dispatch wrote itself.
    pub(crate) stored_directly: BTreeSet<Uuid>,
    /// What broke.
    pub(crate) broken: Vec<String>,
}

impl Ledger {
    /// A ledger that knows every delivery these records may lead to.
    pub(crate) fn new(published: Vec<Published>, rules: &[Rules]) -> Self {
        let mut ledger = Self::default();
        for (record, published) in published.into_iter().enumerate() {
            let message = format!("m{record}");
            let topic: TopicName = published.topic.unwrap_or(TOPIC).parse().expect("a topic");
            for (index, element) in published.elements.iter().enumerate() {
                let origin = Origin { message: message.clone(), index: index as u32 };
                let mut know = |subscription: Option<usize>, name: SubscriptionName| {
                    let id = id_of(name, origin.clone());
                    ledger.ids.insert((subscription, record, index), id);
                    ledger.known.insert(id, Known { subscription, record, index, hops: 0, leg: Leg::Event });
                };
                let place = |name: &str| SubscriptionName { topic: topic.clone(), name: name.to_owned() };
                if element.sort == Sort::Malformed {
                    know(None, place(MALFORMED));
                } else if published.is_known() {
                    rules.iter().enumerate().for_each(|(at, rules)| know(Some(at), rules.subscription.name.clone()));
                } else {
                    know(None, place(UNKNOWN_TOPIC));
                }
            }
            let nameless = delivery::blob::nameless_topic();
            let topic = published.topic.and_then(|topic| topic.parse().ok()).unwrap_or(nameless);
            let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
            ledger.unprocessed.insert(id_of(name, Origin { message: message.clone(), index: 0 }), record);
            ledger.published.push((message, published));
        }
        ledger
    }

    /// The text of the event of a delivery, as published.
    pub(crate) fn text(&self, id: Uuid) -> &str {
        let known = &self.known[&id];
        &self.published[known.record].1.elements[known.index].text
    }

    /// Writes down that a rule was broken.
    pub(crate) fn broke(&mut self, what: String) {
        self.broken.push(what);
    }

    /// A fault befell this message: what it carries may be handled once more.
    pub(crate) fn fork(&mut self, held: &Held) {
        match held.carried.delivery() {
            Some(delivery) => *self.forks.entry(delivery.id).or_default() += 1,
            None => *self.record_forks.entry(held.message.clone()).or_default() += 1,
        }
    }

    /// How many chains the faults allow for a delivery.
    pub(crate) fn chains_allowed(&self, id: Uuid) -> u32 {
        let of_record = self.known.get(&id).and_then(|known| self.record_forks.get(&self.published[known.record].0));
        self.starts.get(&id).copied().unwrap_or(1)
            + self.forks.get(&id).copied().unwrap_or(0)
            + of_record.copied().unwrap_or(0)
    }

    /// How many chains of a delivery came to an end that can be seen from outside.
    pub(crate) fn ends(&self, id: Uuid) -> u32 {
        let taken = self.seen.get(&id).map_or(0, |seen| seen.iter().filter(|seen| seen.taken).count());
        u32::try_from(taken).unwrap_or(u32::MAX) + self.letters.get(&id).copied().unwrap_or(0)
    }

    /// A name for a delivery that a person can follow.
    pub(crate) fn name(&self, id: Uuid) -> String {
        match (self.known.get(&id), self.unprocessed.get(&id)) {
            (Some(Known { subscription: Some(number), record, index, .. }), _) => {
                format!("ev-{record}-{index} for s{number}")
            }
            (Some(Known { subscription: None, record, index, .. }), _) => format!("ev-{record}-{index} for nobody"),
            (None, Some(record)) => format!("record {record}, unprocessed"),
            (None, None) => format!("{id}, which nobody knows"),
        }
    }
}

fn id_of(subscription: SubscriptionName, origin: Origin) -> Uuid {
    Delivery::new(Event::recall(&"".into(), Input::Opaque), subscription, origin, 0).id
}
