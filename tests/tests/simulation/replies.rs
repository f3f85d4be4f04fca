//! Responses that carry an event: the deliveries that follow from them, computed a second time.
//!
//! An endpoint that receives an event twice sends the same reply both times. The ledger has a
//! separate record for each reply, although no publisher sent it. A reply to a topic is published
//! there in one message, which is then handled like any other record.

use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::delivery::{Delivery, DeliveryTarget, Origin, Publication};
use delivery::ports::{Message, QueueName};
use delivery::subscription::ReplyTo;
use dispatch::REQUESTS_IN_PLACE;
use uuid::Uuid;

use super::ledger::{Known, id_of};
use super::publish::plain_record;
use super::queued::Queued;
use super::rules::{MAX_REPLIES, TOPIC, of_topic};
use super::sinks::Route;
use super::world::Inner;

/// The longest chain of replies.
pub(crate) const HOPS_MAX: u32 = 10;

impl Inner {
    /// The response to the request of one delivery. It carries a reply if the subscription accepts
    /// replies and the random numbers choose one.
    pub(crate) fn answer(&mut self, number: usize, id: Uuid, exchange: Exchange) -> Exchange {
        let wanted = self.rules[number].subscription.reply.is_some()
            && self.ledger.known[&id].route == Route::Event;
        let TransportResult::Answered { status: 200, retry_after, .. } = &exchange.result else {
            return exchange;
        };
        if !wanted || self.random.percent(25) {
            return exchange;
        }
        let record = self.reply(number, id, exchange.ended_ms());
        self.invocation().answered.push((id, record));
        let replies: Vec<Uuid> = self.ledger.ids_of(record).map(|(.., id)| id).collect();
        for reply in replies {
            *self.ledger.starts.entry(reply).or_default() += 1;
        }
        let body = self.ledger.published[record].1.body.clone().into_bytes();
        let result =
            TransportResult::Answered { status: 200, retry_after: retry_after.clone(), body };
        let content_type = Some("application/cloudevents+json".to_owned());
        let content = Some(Content { content_type, whole: true, ..Content::default() });
        Exchange { content, ..Exchange::new(result, exchange.started_ms, exchange.duration_ms) }
    }

    /// The number of the record for the reply to a delivery. The first call creates the record.
    fn reply(&mut self, number: usize, answered: Uuid, at_ms: u64) -> usize {
        if let Some(record) = self.ledger.replies.get(&answered) {
            let published = &mut self.ledger.published[*record].1;
            published.at_ms = published.at_ms.min(at_ms);
            return *record;
        }
        let record = self.ledger.published.len();
        let hops = self.ledger.known[&answered].hops + 1;
        let published = plain_record(record, at_ms);
        let message = Uuid::new_v5(&answered, published.body.as_bytes()).to_string();
        let is_published = self.is_published(number) && hops <= HOPS_MAX;
        let to: Vec<(usize, Route)> = match is_published {
            true => of_topic(&self.rules, TOPIC).map(|number| (number, Route::Event)).collect(),
            // The reply goes to its address, or becomes a dead letter.
            false => vec![(number, Route::Reply)],
        };
        for (number, route) in to {
            let origin = Origin { message: message.clone(), index: 0 };
            let id = id_of(self.rules[number].subscription.name.clone(), origin);
            self.ledger.ids.insert((record, Some(number), 0), id);
            self.ledger.know(
                &self.rules,
                id,
                Known { hops, route, ..Known::new(Some(number), record, 0) },
            );
        }
        if !is_published {
            self.ledger.acknowledged.insert(message.clone());
        }
        self.ledger.add_record(message, published);
        self.ledger.replies.insert(answered, record);
        record
    }

    /// True if replies of a subscription go to a topic.
    fn is_published(&self, number: usize) -> bool {
        matches!(self.rules[number].subscription.reply, Some(ReplyTo::Topic(_)))
    }

    /// True if a message publishes a reply that this invocation received.
    pub(crate) fn publishes_a_reply(&self, publication: &Publication) -> bool {
        let answered = &self.invocations[self.current].answered;
        answered.iter().any(|(_, reply)| self.ledger.published[*reply].0 == publication.message)
    }

    /// Checks that a reply to a topic is published with its own text and its number of hops.
    pub(crate) fn check_published_reply(
        &mut self,
        queue: QueueName,
        message: &Message,
        publication: &Publication,
    ) {
        let record = self.ledger.record_of(&publication.message);
        let text = &self.ledger.published[record].1.body;
        let hops = self.ledger.ids_of(record).map(|(.., id)| self.ledger.known[&id].hops).max();
        let onward = publication.onward.as_ref();
        let is_whole = *message.body == **text && publication.topic.as_deref() == Some(TOPIC);
        let is_new = (message.wait_ms, message.receives) == (0, 0) && publication.hold.is_none();
        if !is_whole
            || !is_new
            || onward.map(|onward| onward.hops) != hops
            || !matches!(queue, QueueName::Retry)
        {
            let violation = format!("record {}: a reply is published wrongly", publication.message);
            self.ledger.record_violation(violation);
        }
    }

    /// True if a reply was refused because too many deliveries follow from its event. The reply is
    /// then a dead letter of the subscription whose subscriber sent it. Replies of the first
    /// generation are always allowed.
    pub(crate) fn is_refused_reply(&self, delivery: &Delivery) -> bool {
        let has_others = self.ledger.known.get(&delivery.id).is_some_and(|known| known.hops > 1);
        delivery.target == DeliveryTarget::Reply && delivery.attempts == 0 && has_others
    }

    /// True if a reply with this number of hops may exceed the budget of its event, in a world
    /// without faults. Computes the least budget that its delivery can have: every subscription
    /// of the topic shares the budget, and each reply divides the rest among all deliveries. A
    /// record that is divided shares it equally among its parts, even if one of them is small.
    pub(crate) fn may_exceed_budget(&self, number: usize, hops: u32) -> bool {
        let all = of_topic(&self.rules, TOPIC).count();
        let parts = all.div_ceil(REQUESTS_IN_PLACE);
        let (all, shares) = (all as u32, (parts * all.min(REQUESTS_IN_PLACE)) as u32);
        let mut left = MAX_REPLIES / all;
        // Direct replies to the event do not count. Each further one takes its deliveries.
        for hop in 1..hops {
            let taken = if hop > 1 { all } else { 0 };
            left = left.saturating_sub(taken) / shares;
        }
        left < if self.is_published(number) { all } else { 1 }
    }

    /// True if this invocation received the reply that a delivery follows from.
    pub(crate) fn is_told(&self, id: Uuid) -> bool {
        let record = self.ledger.known.get(&id).map(|known| known.record);
        self.invocations[self.current].answered.iter().any(|(_, reply)| Some(*reply) == record)
    }

    /// Checks that a delivery that follows from a reply starts with fresh state.
    pub(crate) fn check_fresh_reply(&mut self, delivery: &Delivery) {
        let known = &self.ledger.known[&delivery.id];
        let routing = (known.hops, known.route);
        let fresh = (delivery.attempts, delivery.history.newest()) == (0, None);
        if !fresh
            || delivery.due_ms != delivery.published_ms
            || delivery.replies_left.is_none()
            || ((delivery.hops, Route::new(&delivery.target)) != routing
                && !self.is_refused_reply(delivery))
        {
            self.record_violation(delivery.id, "a reply does not start with fresh state");
        }
    }

    /// Records that a message is done. If this invocation received replies to its deliveries, those
    /// replies must now be delivered.
    pub(crate) fn note_replies_owed(&mut self, held: &Queued) {
        if self.invocation().panics > 0 {
            // The attempt may have been counted as aborted.
            return;
        }
        let versions = self.invocation().versions.clone();
        for (answered, record) in self.invocation().answered.clone() {
            let carries_it = match held.carried.delivery() {
                Some(delivery) => delivery.id == answered,
                None => held.holds(answered, self.ledger.origin(answered)),
            };
            let has_topic = self.ledger.known[&answered].subscription;
            if has_topic.is_some_and(|number| self.is_published(number)) {
                let message = self.ledger.published[record].0.clone();
                self.ledger.owed.extend(carries_it.then_some(message));
                if self
                    .ledger
                    .ids_of(record)
                    .all(|(.., id)| self.ledger.known[&id].hops <= HOPS_MAX)
                {
                    continue;
                }
            }
            let ids = self.ledger.ids_of(record).filter(|_| carries_it);
            let there = ids.filter(|(number, _, id)| {
                let facts =
                    number.map_or(Vec::new(), |number| self.versions.facts(&versions, number));
                self.ledger.known[id].route == Route::Reply || facts.iter().all(Option::is_some)
            });
            let must_end: Vec<Uuid> = there.map(|(.., id)| id).collect();
            self.ledger.must_end.extend(must_end);
        }
    }
}
