//! Stores the events and steps of this run, newest last, up to fixed limits. Pure.
//!
//! - An event is created from a record that the events queue delivered. If that record was not
//!   seen, the log line of a delivery supplies the event. This applies to replays, and to
//!   deliveries of an earlier run.
//! - A step is a change of a delivery, or of an event without a known delivery.
//! - An attempt in progress is not a step. It is stored separately until it ends.
//!
//! Promises:
//!
//! - The constants below limit memory, whatever is published.
//! - The oldest entries are dropped first, and the number of dropped ones is counted.
//! - All steps of a delivery are added to the same event while the feed stores that event.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use delivery::delivery::{Origin, id_of};
use delivery::subscription::name::SubscriptionName;
use uuid::Uuid;

use crate::operations::line_words::{Kind, LineWords};
use crate::operations::shown_exchange::ShownExchange;

/// The maximum number of events in the feed.
pub(super) const EVENTS_MAX: usize = 500;
/// The maximum number of bytes of all event bodies, requests and responses together.
pub(super) const BODIES_MAX_BYTES: usize = 32 * 1_024 * 1_024;
/// The maximum number of steps in the feed.
pub(super) const STEPS_MAX: usize = 2_000;
/// The maximum number of steps of one event.
pub(super) const EVENT_STEPS_MAX: usize = 500;
/// The maximum number of attempts in progress that are stored; the oldest are dropped first.
const UNDER_WAY_MAX: usize = 2_000;

/// The data of a published event: its topic, its attributes and its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Published {
    /// The id of the SQS message, and the index of the event in it; `None` if the record was not
    /// seen.
    pub(super) origin: Option<Origin>,
    /// The full name `namespace/topic`; `None` if the record names no topic.
    pub(super) topic: Option<String>,
    pub(super) id: String,
    pub(super) event_type: String,
    pub(super) source: String,
    /// The text of the event as published; `None` if the record was not seen.
    pub(super) body: Option<Arc<str>>,
}

/// The event and the delivery that a step belongs to, as named in its log line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) delivery: Option<Uuid>,
    /// The full name of the subscription; empty if the step belongs to no subscription.
    pub(super) subscription: String,
    pub(super) topic: Option<String>,
    /// The id of the SQS message, if the log line contains it.
    pub(super) message: Option<String>,
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) source: String,
}

/// The time and the texts of a step, and the destination of the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepFacts {
    pub(super) at_ms: u64,
    pub(super) words: LineWords,
    pub(super) destination: String,
    /// The time when the next attempt is due, in milliseconds; `None` if no attempt is scheduled.
    pub(super) due_ms: Option<u64>,
}

/// A step of a delivery, or of an event, in the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The number of the step, from 1, without gaps.
    pub(super) number: u64,
    /// The number of the step's event; `None` if the event is unknown.
    pub(super) event: Option<u64>,
    pub(super) subject: Subject,
    pub(super) facts: StepFacts,
}

/// An event in the feed, with its steps.
#[derive(Debug, Clone)]
pub(super) struct Event {
    /// The number of the event, from 1, without gaps.
    pub(super) number: u64,
    pub(super) at_ms: u64,
    pub(super) published: Published,
    pub(super) steps: Vec<Arc<Step>>,
    /// The number of further steps that were not stored because of the limit.
    pub(super) more_steps: usize,
    /// The requests with their responses, by the number of the step.
    pub(super) exchanges: BTreeMap<u64, Arc<ShownExchange>>,
    bytes: usize,
}

/// The stored events, steps and attempts in progress, up to fixed limits.
#[derive(Debug, Default)]
pub(super) struct Feed {
    events: VecDeque<Event>,
    steps: VecDeque<Arc<Step>>,
    last_event: u64,
    /// The number of dropped events that were created from a record. Excludes events that were
    /// created from a log line.
    dropped_published: u64,
    last_step: u64,
    /// The attempts in progress, oldest first. Their numbers are independent of those of `steps`.
    under_way: VecDeque<Arc<Step>>,
    last_under_way: u64,
    bytes: usize,
    /// The number of the event that each delivery belongs to.
    deliveries: HashMap<Uuid, u64>,
}

impl Feed {
    /// Adds a published event, unless the same event was already added.
    pub(super) fn publish(&mut self, at_ms: u64, published: Published) {
        let is_known = |event: &Event| {
            published.origin.is_some() && event.published.origin == published.origin
        };
        if self.events.iter().any(is_known) {
            return;
        }
        let bytes = published.body.as_ref().map_or(0, |body| body.len());
        let subject = Subject {
            topic: published.topic.clone(),
            event_id: published.id.clone(),
            event_type: published.event_type.clone(),
            source: published.source.clone(),
            ..Subject::default()
        };
        let number = self.add_event(at_ms, published);
        let words = LineWords {
            outcome: format!("{bytes} bytes"),
            ..LineWords::new(Kind::Event, "published")
        };
        let facts = StepFacts { at_ms, words, destination: String::new(), due_ms: None };
        self.add_step(Some(number), subject, facts, None);
    }

    /// Adds a step to its event. Creates an event if the feed has none for the step's delivery.
    pub(super) fn add(
        &mut self,
        subject: Subject,
        facts: StepFacts,
        exchange: Option<Arc<ShownExchange>>,
    ) {
        let event = self.event_of(&subject, facts.at_ms);
        self.add_step(event, subject, facts, exchange);
    }

    /// Adds an attempt in progress.
    pub(super) fn begin(&mut self, subject: Subject, facts: StepFacts) {
        let event = self.event_of(&subject, facts.at_ms);
        self.last_under_way += 1;
        self.under_way.push_back(Arc::new(Step {
            number: self.last_under_way,
            event,
            subject,
            facts,
        }));
        if self.under_way.len() > UNDER_WAY_MAX {
            self.under_way.pop_front();
        }
    }

    /// Removes the attempt in progress of a delivery, because it has ended.
    pub(super) fn end(&mut self, delivery: Uuid) {
        let is_its = |step: &Arc<Step>| step.subject.delivery == Some(delivery);
        if let Some(at) = self.under_way.iter().position(is_its) {
            self.under_way.remove(at);
        }
    }

    /// Returns the attempts in progress, oldest first.
    pub(super) fn under_way(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Arc<Step>> + ExactSizeIterator {
        self.under_way.iter()
    }

    /// Returns the steps whose number is greater than `number`, oldest first.
    pub(super) fn steps_after(&self, number: u64) -> impl DoubleEndedIterator<Item = &Arc<Step>> {
        let skipped = self.steps.partition_point(|step| step.number <= number);
        self.steps.iter().skip(skipped)
    }

    /// Returns the number of the newest step.
    pub(super) fn last_step(&self) -> u64 {
        self.last_step
    }

    /// Returns the number of dropped steps, and the number of dropped events that were created from
    /// a record.
    pub(super) fn dropped(&self) -> (u64, u64) {
        (self.last_step - self.steps.len() as u64, self.dropped_published)
    }

    /// Returns the event with this number; `None` if it was dropped.
    pub(super) fn event(&self, number: u64) -> Option<&Event> {
        let at = self.events.binary_search_by_key(&number, |event| event.number).ok()?;
        self.events.get(at)
    }

    /// Returns true if the delivery of this step has no later step.
    pub(super) fn is_newest(&self, step: &Step) -> bool {
        let Some(event) = step.event.and_then(|number| self.event(number)) else { return true };
        let same = |other: &&Arc<Step>| other.subject.delivery == step.subject.delivery;
        if step.subject.delivery.is_some() && self.under_way.iter().any(|other| same(&other)) {
            return false;
        }
        event.steps.iter().rev().find(same).is_none_or(|newest| newest.number <= step.number)
    }

    fn event_of(&mut self, subject: &Subject, at_ms: u64) -> Option<u64> {
        let known = subject.delivery.and_then(|delivery| self.deliveries.get(&delivery).copied());
        let known = known.or_else(|| self.find(subject));
        let event = match (known, subject.delivery) {
            (Some(event), _) => event,
            (None, None) => return None,
            (None, Some(_)) => self.add_event(at_ms, self.as_far_as_known(subject)),
        };
        if let Some(delivery) = subject.delivery {
            self.deliveries.insert(delivery, event);
        }
        Some(event)
    }

    /// Finds the event that a step belongs to. The id of a delivery is derived from the SQS message
    /// of its event. A step without a delivery contains the ids of its message and its event. If no
    /// message matches, for example after a replay, finds the newest event with the same id, source
    /// and topic.
    fn find(&self, subject: &Subject) -> Option<u64> {
        let newest = || self.events.iter().rev();
        let name = subject.subscription.parse::<SubscriptionName>().ok();
        let is_made_of = |event: &&Event| match (&name, subject.delivery, &event.published.origin) {
            (Some(name), Some(delivery), Some(origin)) => id_of(name, origin) == delivery,
            (None, None, Some(origin)) => {
                subject.message.as_ref() == Some(&origin.message)
                    && event.published.id == subject.event_id
            }
            _ => false,
        };
        let says_the_same = |event: &&Event| {
            let published = &event.published;
            !subject.event_id.is_empty()
                && (published.topic.is_none() || published.topic == subject.topic)
                && (&published.id, &published.source) == (&subject.event_id, &subject.source)
        };
        let found = newest().find(is_made_of).or_else(|| newest().find(says_the_same));
        found.map(|event| event.number)
    }

    fn as_far_as_known(&self, subject: &Subject) -> Published {
        Published {
            origin: None,
            topic: subject.topic.clone(),
            id: subject.event_id.clone(),
            event_type: subject.event_type.clone(),
            source: subject.source.clone(),
            body: None,
        }
    }

    fn add_event(&mut self, at_ms: u64, published: Published) -> u64 {
        self.last_event += 1;
        let bytes = published.body.as_ref().map_or(0, |body| body.len());
        self.bytes += bytes;
        self.events.push_back(Event {
            number: self.last_event,
            at_ms,
            published,
            steps: Vec::new(),
            more_steps: 0,
            exchanges: BTreeMap::new(),
            bytes,
        });
        self.drop_oldest();
        self.last_event
    }

    fn add_step(
        &mut self,
        event: Option<u64>,
        subject: Subject,
        facts: StepFacts,
        exchange: Option<Arc<ShownExchange>>,
    ) {
        self.last_step += 1;
        let step = Arc::new(Step { number: self.last_step, event, subject, facts });
        self.steps.push_back(Arc::clone(&step));
        if self.steps.len() > STEPS_MAX {
            self.steps.pop_front();
        }
        let at = event
            .and_then(|number| self.events.binary_search_by_key(&number, |kept| kept.number).ok());
        let Some(event) = at.and_then(|at| self.events.get_mut(at)) else { return };
        if event.steps.len() >= EVENT_STEPS_MAX {
            event.more_steps += 1;
            return;
        }
        if let Some(exchange) = exchange {
            let bytes = exchange.bytes();
            event.exchanges.insert(step.number, exchange);
            event.bytes += bytes;
            self.bytes += bytes;
        }
        event.steps.push(step);
        self.drop_oldest();
    }

    /// Drops the oldest events until the limits are met. Always keeps the newest event.
    fn drop_oldest(&mut self) {
        while self.events.len() > EVENTS_MAX
            || (self.bytes > BODIES_MAX_BYTES && self.events.len() > 1)
        {
            let Some(dropped) = self.events.pop_front() else { return };
            self.bytes -= dropped.bytes;
            // A later step of this event creates a new event without an origin. Count only events
            // with an origin, so that the new event is not counted again when it is dropped.
            self.dropped_published += u64::from(dropped.published.origin.is_some());
            self.deliveries.retain(|_, event| *event != dropped.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(message: &str, id: &str, bytes: usize) -> Published {
        Published {
            origin: Some(Origin { message: message.to_owned(), index: 0 }),
            topic: Some("shop/orders".to_owned()),
            id: id.to_owned(),
            event_type: "order.created".to_owned(),
            source: "s".to_owned(),
            body: Some("x".repeat(bytes).into()),
        }
    }

    fn subject(message: &str, id: &str) -> Subject {
        let name: SubscriptionName = "shop/orders/billing".parse().unwrap();
        let origin = Origin { message: message.to_owned(), index: 0 };
        Subject {
            delivery: Some(id_of(&name, &origin)),
            subscription: name.to_string(),
            topic: Some("shop/orders".to_owned()),
            event_id: id.to_owned(),
            source: "s".to_owned(),
            ..Subject::default()
        }
    }

    fn facts(at_ms: u64, kind: Kind, name: &str) -> StepFacts {
        let words = LineWords::new(kind, name);
        StepFacts { at_ms, words, destination: String::new(), due_ms: None }
    }

    fn attempt(at_ms: u64) -> StepFacts {
        facts(at_ms, Kind::Failed, "attempt 1")
    }

    #[test]
    fn a_step_belongs_to_the_event_that_its_delivery_was_made_of_even_where_ids_repeat() {
        let mut feed = Feed::default();
        feed.publish(1, published("m1", "7", 1));
        feed.publish(2, published("m2", "7", 1));
        feed.publish(3, published("m1", "7", 1));
        feed.add(subject("m1", "7"), attempt(4), None);
        feed.add(subject("m2", "7"), attempt(5), None);
        let steps: Vec<_> = feed.steps_after(0).map(|step| (step.number, step.event)).collect();
        assert_eq!(steps, [(1, Some(1)), (2, Some(2)), (3, Some(1)), (4, Some(2))]);
        assert_eq!(feed.event(1).unwrap().steps.len(), 2);
        let newest: Vec<bool> = feed.steps_after(2).map(|step| feed.is_newest(step)).collect();
        assert_eq!(newest, [true, true]);
        feed.add(subject("m1", "7"), attempt(6), None);
        let newest: Vec<bool> = feed.steps_after(2).map(|step| feed.is_newest(step)).collect();
        assert_eq!(newest, [false, true, true]);
    }

    #[test]
    fn an_attempt_is_under_way_until_it_ends_and_then_nothing_waits_for_the_next_one() {
        let mut feed = Feed::default();
        feed.publish(1, published("m1", "7", 1));
        feed.add(subject("m1", "7"), attempt(2), None);
        let first = Arc::clone(feed.steps_after(1).next().unwrap());
        assert!(feed.is_newest(&first));
        feed.begin(subject("m1", "7"), facts(3, Kind::UnderWay, "attempt 2"));
        feed.begin(subject("m2", "8"), facts(4, Kind::UnderWay, "attempt 1"));
        assert!(!feed.is_newest(&first), "its wait is over");
        let under_way: Vec<_> = feed.under_way().map(|step| (step.number, step.event)).collect();
        assert_eq!(under_way, [(1, Some(1)), (2, Some(2))]);
        let delivery = subject("m1", "7").delivery.unwrap();
        feed.end(delivery);
        feed.end(delivery);
        assert_eq!(feed.under_way().map(|step| step.number).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_delivery_whose_record_was_not_seen_makes_an_event_and_what_has_none_does_not() {
        let mut feed = Feed::default();
        feed.add(subject("m1", "7"), attempt(1), None);
        feed.add(subject("m1", "7"), attempt(2), None);
        feed.add(Subject::default(), facts(3, Kind::Note, "function.started"), None);
        let steps: Vec<_> = feed.steps_after(0).map(|step| step.event).collect();
        assert_eq!(steps, [Some(1), Some(1), None]);
        assert_eq!(feed.event(1).unwrap().published.body, None);
    }

    #[test]
    fn an_unmatched_event_is_found_by_its_message() {
        let mut feed = Feed::default();
        feed.publish(1, published("m1", "7", 1));
        feed.publish(2, published("m2", "7", 1));
        let subject = Subject { delivery: None, subscription: String::new(), ..subject("m1", "7") };
        let subject = Subject { message: Some("m1".to_owned()), ..subject };
        feed.add(subject, facts(3, Kind::End, "unmatched"), None);
        assert_eq!(feed.steps_after(2).next().unwrap().event, Some(1));
    }

    #[test]
    fn the_oldest_is_dropped_and_counted() {
        let mut feed = Feed::default();
        for number in 0..EVENTS_MAX + 3 {
            feed.publish(1, published(&format!("m{number}"), &number.to_string(), 1));
        }
        assert_eq!(feed.dropped(), (0, 3));
        assert!(feed.event(3).is_none() && feed.event(4).is_some());
        for at_ms in 0..STEPS_MAX as u64 {
            feed.add(subject("m9", "9"), attempt(at_ms), None);
        }
        assert_eq!(feed.steps_after(0).count(), STEPS_MAX);
        assert_eq!(feed.dropped().0, EVENTS_MAX as u64 + 3);
        let event = feed.event(10).unwrap();
        assert_eq!(
            (event.steps.len(), event.more_steps),
            (EVENT_STEPS_MAX, STEPS_MAX + 1 - EVENT_STEPS_MAX)
        );
    }

    #[test]
    fn large_bodies_drop_events_sooner() {
        let mut feed = Feed::default();
        for number in 0..40 {
            feed.publish(1, published(&format!("m{number}"), "7", 1_000_000));
        }
        let kept = feed.events.len();
        assert!((30..=34).contains(&kept), "{kept}");
        assert!(feed.bytes <= BODIES_MAX_BYTES);
    }
}
