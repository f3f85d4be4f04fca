//! The true history of a world, recorded by the world and not by the functions.
//!
//! The checks compare this history with the reports of the functions. The history is kept by the id
//! of each delivery, which the world computes from subscription, published record and element
//! index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::delivery::outcome::TransportResult;
use delivery::delivery::{Delivery, Origin, Part};
use delivery::event::{Event, Input};
use delivery::subscription::name::{NAMELESS, SubscriptionName, TopicName};
use uuid::Uuid;

use super::costs::Costs;
use super::publish::{ElementKind, Published, mark};
use super::queued::{Carried, Queued};
use super::rules::{Expected, Rules, TOPIC, of_topic};
use super::sinks::{Route, after, record_of_letter};

/// The identity of a delivery.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The number of the subscription; `None` for an undeliverable element.
    pub(crate) subscription: Option<usize>,
    /// The number of the published record.
    pub(crate) record: usize,
    /// The index of the element in the record.
    pub(crate) index: usize,
    /// The number of replies that led to this delivery.
    pub(crate) hops: u32,
    pub(crate) route: Route,
    /// The delivery whose dead letter this one sends or follows from.
    pub(crate) from: Option<Uuid>,
    /// The topics that earlier dead letters of the chain came from.
    pub(crate) via: Vec<TopicName>,
    /// True if every dead letter on the way had a CloudEvents format.
    pub(crate) is_bare: bool,
}

impl Known {
    /// Returns the delivery of a published event to a subscription.
    pub(crate) fn new(subscription: Option<usize>, record: usize, index: usize) -> Self {
        Self {
            subscription,
            record,
            index,
            hops: 0,
            route: Route::Event,
            from: None,
            via: Vec::new(),
            is_bare: true,
        }
    }
}

/// A delivery that follows from a dead letter, as it started.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    /// The publication time that the delivery reports.
    pub(crate) published_ms: u64,
    /// The text of the event.
    pub(crate) text: Arc<str>,
}

/// A request that reached an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The number of the request; all events of a batch share it.
    pub(crate) request: u64,
    /// Start of the request.
    pub(crate) at_ms: u64,
    pub(crate) ended_ms: u64,
    /// The result that the function got.
    pub(crate) result_seen: TransportResult,
    /// The step that must follow.
    pub(crate) expected: Expected,
    /// True if the endpoint accepted the event, whatever result the function got.
    pub(crate) taken: bool,
    /// Start of the first attempt of the chain.
    pub(crate) first_ms: u64,
}

/// The history of one world.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The published records and their message ids.
    pub(crate) published: Vec<(String, Published)>,
    /// Every possible delivery.
    pub(crate) known: BTreeMap<Uuid, Known>,
    /// Ids of deliveries, by number of the record, number of the subscription and element index.
    pub(crate) ids: BTreeMap<(usize, Option<usize>, usize), Uuid>,
    /// The numbers of the published records, by message id.
    records: BTreeMap<String, usize>,
    /// Ids that stand for whole records that dispatch never decoded, with the numbers of the
    /// records.
    pub(crate) unprocessed: BTreeMap<Uuid, usize>,
    /// Records of replies, by the delivery that was answered.
    pub(crate) replies: BTreeMap<Uuid, usize>,
    /// Records that publish dead letters on a topic, by the deliveries that they lead to.
    records_of_letters: BTreeMap<Uuid, usize>,
    /// Deliveries without a subscription that may end the record of a dead letter.
    ends_of_letters: BTreeSet<Uuid>,
    /// Deliveries of replies that were refused because too many deliveries follow from one event.
    pub(crate) refused_replies: BTreeSet<Uuid>,
    /// Messages of replies that must be published on a topic.
    pub(crate) owed: BTreeSet<String>,
    /// Records of dead letters for topics that no queue has accepted yet. Such a dead letter may
    /// never follow, because the next attempt of its delivery may succeed.
    pub(crate) unsent_letters: BTreeSet<String>,
    /// The number of times that a function received the reply that each delivery follows from.
    pub(crate) starts: BTreeMap<Uuid, u32>,
    /// Postponements of each delivery: the time of the decision, and the new due time.
    pub(crate) postponements: BTreeMap<Uuid, Vec<(u64, u64)>>,
    /// Late successes that ended their deliveries, and late successes that no function waited for.
    pub(crate) late_in_time: u64,
    pub(crate) late_too_late: u64,
    /// Abandoned requests, all requests, and events that were accepted in abandoned requests.
    pub(crate) abandoned: u64,
    requests: u64,
    pub(crate) taken_too_late: u64,
    /// Requests with more than one event.
    pub(crate) shared_requests: u64,
    /// Requests, by delivery.
    pub(crate) seen: BTreeMap<Uuid, Vec<Seen>>,
    /// Dead letters that dispatch sent or stored itself, or that a queue redrove, by delivery.
    pub(crate) letters: BTreeMap<Uuid, u32>,
    /// Deliveries that must end.
    pub(crate) must_end: BTreeSet<Uuid>,
    /// Deliveries of a divided record that must end or wait in a part of the record.
    pub(crate) divided: BTreeSet<Uuid>,
    /// Message ids of acknowledged records.
    pub(crate) acknowledged: BTreeSet<String>,
    /// Records that a queue redrove before a function handled them.
    pub(crate) redriven_records: BTreeSet<String>,
    /// Faults that may have duplicated the chain of one delivery.
    pub(crate) forks: BTreeMap<Uuid, u32>,
    /// Faults that may have duplicated every chain of a record.
    pub(crate) record_forks: BTreeMap<String, u32>,
    /// Blobs written for each dead letter, by the message that first carried it and the bucket.
    pub(crate) stored: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// Deliveries that may follow from the dead letter of each delivery, and the ones that started.
    pub(crate) after: BTreeMap<Uuid, Vec<Uuid>>,
    pub(crate) fresh: BTreeMap<Uuid, Vec<Fresh>>,
    /// The replays of dead letters, each with the delivery whose event it sends again.
    pub(crate) replays: BTreeMap<Uuid, Uuid>,
    /// Ids of `unprocessed` whose messages expired after 14 days. Storage always refused them, and
    /// no queue could accept them.
    pub(crate) expired: BTreeSet<Uuid>,
    /// The most receives of one message in one queue.
    pub(crate) most_receives: u32,
    pub(crate) costs: Costs,
    /// One line for each violation of a rule.
    pub(crate) broken: Vec<String>,
}

impl Ledger {
    /// Creates a ledger with every delivery that these records may lead to.
    pub(crate) fn new(published: Vec<Published>, rules: &[Rules]) -> Self {
        let mut ledger = Self::default();
        for (record, published) in published.into_iter().enumerate() {
            let message = format!("m{record}");
            let topic: TopicName = published.topic.unwrap_or(TOPIC).parse().expect("a topic");
            for (index, element) in published.elements.iter().enumerate() {
                let origin = Origin { message: message.clone(), index: index as u32 };
                let mut know = |subscription: Option<usize>, name: SubscriptionName| {
                    let id = id_of(name, origin.clone());
                    ledger.ids.insert((record, subscription, index), id);
                    ledger.know(rules, id, Known::new(subscription, record, index));
                };
                let place =
                    |name: &str| SubscriptionName { topic: topic.clone(), name: name.to_owned() };
                if element.kind == ElementKind::Malformed {
                    know(None, place(MALFORMED));
                } else if published.is_known() {
                    of_topic(rules, published.topic.unwrap_or(TOPIC))
                        .for_each(|at| know(Some(at), rules[at].subscription.name.clone()));
                } else {
                    know(None, place(UNKNOWN_TOPIC));
                }
            }
            let nameless = TopicName::nameless();
            let topic = published.topic.map_or(nameless, TopicName::published);
            let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
            ledger
                .unprocessed
                .insert(id_of(name, Origin { message: message.clone(), index: 0 }), record);
            ledger.add_record(message, published);
        }
        ledger
    }

    /// Adds a record that a delivery led to.
    pub(crate) fn add_record(&mut self, message: String, published: Published) {
        self.records.insert(message.clone(), self.published.len());
        self.published.push((message, published));
    }

    /// True if a record with this message id was published.
    pub(crate) fn has_record(&self, message: &str) -> bool {
        self.records.contains_key(message)
    }

    /// The number of a published record.
    pub(crate) fn record_of(&self, message: &str) -> usize {
        self.records[message]
    }

    /// The deliveries of a record, each with the number of its subscription and its index.
    pub(crate) fn ids_of(
        &self,
        record: usize,
    ) -> impl Iterator<Item = (Option<usize>, usize, Uuid)> {
        let ids = self.ids.range((record, None, 0)..(record + 1, None, 0));
        ids.map(|((_, subscription, index), id)| (*subscription, *index, *id))
    }

    /// Records a delivery, and all deliveries that may follow from its dead letter.
    pub(crate) fn know(&mut self, rules: &[Rules], id: Uuid, known: Known) {
        for (next, next_known) in after(rules, id, &known) {
            self.after.entry(id).or_default().push(next);
            self.know(rules, next, next_known);
        }
        self.known.insert(id, known);
    }

    /// The texts of the event of a delivery: as published, or as each dead letter that started it.
    pub(crate) fn texts(&self, id: Uuid) -> Vec<&str> {
        let known = &self.known[&id];
        match known.from {
            Some(_) => {
                self.fresh.get(&id).into_iter().flatten().map(|fresh| fresh.text.as_ref()).collect()
            }
            None => vec![&self.published[known.record].1.elements[known.index].text],
        }
    }

    /// The publication time of an event; `None` unless a publisher sent it.
    pub(crate) fn published_ms(&self, id: Uuid) -> Option<u64> {
        let known = self.known.get(&id).filter(|known| known.from.is_none() && known.hops == 0)?;
        Some(self.published[known.record].1.at_ms)
    }

    /// The mark of the event at the start of the chain.
    pub(crate) fn mark(&self, id: Uuid) -> String {
        self.known.get(&id).map_or("?".to_owned(), |known| mark(known.record, known.index))
    }

    /// The message id of the published record that a delivery comes from or stands for. Empty if
    /// the delivery sends a dead letter to an address.
    pub(crate) fn origin(&self, id: Uuid) -> &str {
        let root = self.known.get(&id).filter(|known| known.from.is_none());
        let record = root.map(|known| known.record).or(self.unprocessed.get(&id).copied());
        let record = record.or(self.records_of_letters.get(&id).copied());
        record.map_or("", |record| &self.published[record].0)
    }

    /// Adds the record of a dead letter that is published on a topic. A second publication adds
    /// nothing.
    pub(crate) fn add_letter(&mut self, from: Uuid, published: Published) {
        let message = record_of_letter(from);
        if self.records.contains_key(&message) {
            return;
        }
        self.unsent_letters.insert(message.clone());
        let record = self.published.len();
        let topic = published.topic.map_or_else(TopicName::nameless, TopicName::published);
        self.add_record(message.clone(), published);
        // If no subscription matches when the record is received, or the topic has none any more,
        // one of these deliveries is its end.
        for name in [NAMELESS, UNKNOWN_TOPIC] {
            let nobody = SubscriptionName { topic: topic.clone(), name: name.to_owned() };
            let id = id_of(nobody, Origin { message: message.clone(), index: 0 });
            self.known.insert(id, Known::new(None, record, 0));
            self.ends_of_letters.insert(id);
        }
        for id in self.after.get(&from).cloned().unwrap_or_default() {
            self.ids.insert((record, self.known[&id].subscription, 0), id);
            self.records_of_letters.insert(id, record);
        }
    }

    /// True if the delivery ends the record of a dead letter that no subscription accepts.
    pub(crate) fn ends_letter(&self, id: Uuid) -> bool {
        self.ends_of_letters.contains(&id)
    }

    /// The id that stands for a record, or for a part of one, as a whole.
    pub(crate) fn whole_id(&self, held: &Queued) -> Option<Uuid> {
        let message = held.origin().filter(|message| self.has_record(message))?;
        let part = match &held.carried {
            Carried::Publication(publication) => publication.part.as_ref().zip(Some(publication)),
            Carried::Nothing
            | Carried::Delivery(_)
            | Carried::DeadLetter(_)
            | Carried::ReplayEnd(_) => None,
        };
        let published = self.published[self.record_of(message)].1.topic;
        let topic = part.map_or(published, |(_, publication)| publication.topic.as_deref());
        let topic = topic.map_or_else(TopicName::nameless, TopicName::published);
        let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
        let index = part.map_or(0, |(part, _)| part.first);
        let whole = id_of(name, Origin { message: message.to_owned(), index });
        let Some((Part { names, .. }, _)) = part else { return Some(whole) };
        let before = names.before.as_deref().unwrap_or_default();
        let part = format!("{}\n{before}\n{}", names.from, held.body);
        Some(Uuid::new_v5(&whole, part.as_bytes()))
    }

    /// Returns the id of a record that a queue redrove, and records it as unprocessed.
    pub(crate) fn unprocessed_of(&mut self, held: &Queued) -> Option<Uuid> {
        let id = self.whole_id(held)?;
        let record = self.record_of(held.origin()?);
        self.unprocessed.insert(id, record);
        Some(id)
    }

    /// Records a violation of a rule.
    pub(crate) fn record_violation(&mut self, violation: String) {
        self.broken.push(violation);
    }

    /// Records that a fault touched this message, so that its content may be handled twice.
    pub(crate) fn fork(&mut self, held: &Queued) {
        match (held.carried.id(), held.origin()) {
            (Some(id), _) => *self.forks.entry(id).or_default() += 1,
            (None, Some(record)) => {
                *self.record_forks.entry(record.to_owned()).or_default() += 1;
            }
            (None, None) => {}
        }
    }

    /// Returns the number for the next request.
    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    pub(crate) fn newest_request(&self) -> u64 {
        self.requests
    }

    /// The number of chains that the faults allow for a delivery.
    pub(crate) fn chains_allowed(&self, id: Uuid) -> u32 {
        let of_record = self.record_forks.get(self.origin(id));
        let follow_ups = self.known.get(&id).is_some_and(|known| known.from.is_some());
        let starts = self.starts.get(&id).copied().unwrap_or(u32::from(!follow_ups));
        starts
            + self.started_count(id)
            + self.forks.get(&id).copied().unwrap_or(0)
            + of_record.copied().unwrap_or(0)
    }

    /// The number of chains of a delivery that ended visibly.
    pub(crate) fn ends(&self, id: Uuid) -> u32 {
        let taken =
            self.seen.get(&id).map_or(0, |seen| seen.iter().filter(|seen| seen.taken).count());
        let followed = self
            .after
            .get(&id)
            .into_iter()
            .flatten()
            .map(|next| self.started_count(*next))
            .max()
            .unwrap_or(0);
        u32::try_from(taken).unwrap_or(u32::MAX)
            + self.letters.get(&id).copied().unwrap_or(0)
            + followed
    }

    /// The number of starts of a delivery that follows from a dead letter.
    pub(crate) fn started_count(&self, id: Uuid) -> u32 {
        self.fresh.get(&id).map_or(0, |fresh| fresh.len() as u32)
    }

    /// A readable name for a delivery.
    pub(crate) fn name(&self, id: Uuid) -> String {
        match (self.known.get(&id), self.unprocessed.get(&id)) {
            (Some(Known { subscription: Some(number), record, index, route, from, .. }), _) => {
                let origin = from
                    .map_or(String::new(), |from| format!(", dead letter of {}", self.name(from)));
                let to = if *route == Route::Sink { "d" } else { "s" };
                format!("ev-{record}-{index} for {to}{number}{origin}")
            }
            (Some(Known { subscription: None, record, index, .. }), _) => {
                format!("ev-{record}-{index} for no subscription")
            }
            (None, Some(record)) => format!("record {record}, unprocessed"),
            (None, None) => format!("{id}, unknown"),
        }
    }
}

pub(crate) fn id_of(subscription: SubscriptionName, origin: Origin) -> Uuid {
    Delivery::new(Event::recall(&"".into(), Input::Opaque), subscription, origin, 0).id
}
