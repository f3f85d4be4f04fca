//! Responses that carry an event: the deliveries that follow from them, computed a second time.
//!
//! An endpoint that receives an event twice sends the same reply both times. Each reply is recorded
//! in the ledger as a record of its own that no publisher sent.

use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::delivery::{DELIVERY_NAMESPACE, Delivery};
use delivery::subscription::ReplyTo;
use delivery::subscription::name::SubscriptionName;
use uuid::Uuid;

use super::ledger::Known;
use super::publish::plain_record;
use super::queued::Queued;
use super::rules::{TOPIC, of_topic};
use super::sinks::Route;
use super::world::Inner;

/// The longest chain of replies.
pub(crate) const HOPS_MAX: u32 = 10;

/// The id of the delivery that follows from the response to a delivery, for this subscription.
fn id_of(answered: Uuid, to: &SubscriptionName) -> Uuid {
    Uuid::new_v5(&DELIVERY_NAMESPACE, format!("{answered}\nreply\n{to}").as_bytes())
}

impl Inner {
    /// The response to the request of one delivery; with a reply if its subscription wants replies
    /// and the random numbers choose one.
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

    /// The record that stands for the reply to a delivery.
    fn reply(&mut self, number: usize, answered: Uuid, at_ms: u64) -> usize {
        if let Some(record) = self.ledger.replies.get(&answered) {
            let published = &mut self.ledger.published[*record].1;
            published.at_ms = published.at_ms.min(at_ms);
            return *record;
        }
        let record = self.ledger.published.len();
        let hops = self.ledger.known[&answered].hops + 1;
        let to: Vec<(usize, Route)> = match &self.rules[number].subscription.reply {
            Some(ReplyTo::Topic(_)) => {
                of_topic(&self.rules, TOPIC).map(|number| (number, Route::Event)).collect()
            }
            Some(ReplyTo::Address(_)) => vec![(number, Route::Reply)],
            None => Vec::new(),
        };
        for (number, route) in to {
            let id = id_of(answered, &self.rules[number].subscription.name);
            self.ledger.ids.insert((record, Some(number), 0), id);
            self.ledger.know(
                &self.rules,
                id,
                Known { hops, route, ..Known::new(Some(number), record, 0) },
            );
        }
        let message = format!("reply-{record}");
        self.ledger.acknowledged.insert(message.clone());
        self.ledger.published.push((message, plain_record(record, at_ms)));
        self.ledger.replies.insert(answered, record);
        record
    }

    /// Whether this invocation received the reply that a delivery follows from.
    pub(crate) fn is_told(&self, id: Uuid) -> bool {
        let record = self.ledger.known.get(&id).map(|known| known.record);
        self.invocations[self.current].answered.iter().any(|(_, of)| Some(*of) == record)
    }

    /// A delivery that follows from a reply starts with fresh state.
    pub(crate) fn check_fresh_reply(&mut self, delivery: &Delivery) {
        let known = &self.ledger.known[&delivery.id];
        let routing = (known.hops, known.route);
        let fresh = (delivery.attempts, delivery.history.newest()) == (0, None);
        if !fresh
            || delivery.due_ms != delivery.published_ms
            || delivery.replies_left.is_none()
            || (delivery.hops, Route::of(&delivery.target)) != routing
        {
            self.record_violation(delivery.id, "a reply does not start with fresh state");
        }
    }

    /// A message is done; if this invocation received replies to its deliveries, those have to be
    /// delivered from now on.
    pub(crate) fn note_replies_owed(&mut self, held: &Queued) {
        if self.invocation().panics > 0 {
            // Its attempt may have been counted as aborted.
            return;
        }
        let versions = self.invocation().versions.clone();
        for (answered, record) in self.invocation().answered.clone() {
            let carries_it = match held.carried.delivery() {
                Some(delivery) => delivery.id == answered,
                None => held.holds(answered, self.ledger.origin(answered)),
            };
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
