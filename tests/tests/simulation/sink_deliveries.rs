//! Checks on dead letters that are sent to a sink, and on those that are returned from one.

use std::sync::Arc;

use delivery::delivery::reason::Reason;
use delivery::delivery::{Batching, DeadLetter, Delivery, DeliveryTarget, Publication};
use delivery::ports::{Message, PutError, QueueName};
use delivery::subscription::sink::{Sink, SinkQueue};
use serde_json::Value;
use uuid::Uuid;

use super::ledger::Fresh;
use super::publish::published_letter_text;
use super::queued::{Carried, Queued};
use super::sinks::{Route, properties, record_of_letter, sink_delivery_of};
use super::trace::digest;
use super::world::Inner;

impl Inner {
    /// True if a message with this wait starts a delivery that sends a dead letter to an address.
    pub(crate) fn is_fresh(&self, delivery: &Delivery, wait_ms: u64) -> bool {
        let known = self.ledger.known.get(&delivery.id);
        let known = known.filter(|known| known.route == Route::Sink);
        let Some(from) = known.and_then(|known| known.from) else { return false };
        let goes_on =
            self.bases(delivery.id).iter().any(|base| base.published_ms == delivery.published_ms);
        // The message of this delivery and the one that it follows from may be received together,
        // and both may be due in the same millisecond. This is then a start, or looks like one.
        let is_due = delivery.due_ms <= self.clock_ms();
        // A delivery that gave up its turn or is paused was received before. A start has no hold,
        // and does not wait although it is due.
        let looks_new = delivery.attempts == 0
            && !delivery.abandoned
            && delivery.hold.is_none()
            && wait_ms == 0
            && delivery.due_ms == delivery.published_ms
            && is_due;
        (!goes_on || looks_new) && !self.bases(from).is_empty()
    }

    /// The chain that a dead letter ends: that of the sink delivery if the sink returned it, else
    /// that of the delivery itself.
    pub(crate) fn chain_of(&self, id: Uuid) -> Uuid {
        let sink_delivery = sink_delivery_of(id);
        if self.bases(sink_delivery).is_empty() || !self.bases(id).is_empty() {
            id
        } else {
            sink_delivery
        }
    }

    /// The delivery whose dead letter a message publishes on a topic. A publication that moves to
    /// isolation or has waited was published before, even if its delivery is in the same batch.
    pub(crate) fn published_letter(
        &self,
        queue: QueueName,
        publication: &Publication,
    ) -> Option<Uuid> {
        if queue == QueueName::Isolation || !publication.hold.is_none() {
            return None;
        }
        let tells = |id: &Uuid| record_of_letter(*id) == publication.message;
        let held = self.invocations[self.current].taken.iter().map(|(_, held)| held);
        let of_message = |held: &Queued| match held.carried.id() {
            Some(id) => vec![id],
            None => {
                let message = held.origin().filter(|message| self.ledger.has_record(message));
                let record = message.map(|message| self.ledger.record_of(message));
                record.map_or(Vec::new(), |record| {
                    self.ledger.ids_of(record).map(|(.., id)| id).collect()
                })
            }
        };
        held.flat_map(of_message).find(tells)
    }

    /// Checks that a dead letter is published on a topic with all its data, and not too early.
    pub(crate) fn check_published_letter(
        &mut self,
        from: Uuid,
        queue: QueueName,
        message: &Message,
        publication: &Publication,
    ) {
        let next = self.ledger.after.get(&from).and_then(|next| next.first()).copied();
        let expected =
            next.map(|next| &self.ledger.known[&next]).map(|known| (known.hops, known.via.clone()));
        let onward = publication.onward.as_ref();
        let right = onward.map(|onward| (onward.hops, onward.via.clone())) == expected
            && message.receives == 0
            && matches!(queue, QueueName::Retry);
        if !right {
            self.record_violation(from, "its dead letter is published with another origin");
        }
        if self.clock_ms().saturating_add(message.wait_ms) < publication.published_ms {
            self.record_violation(from, "published with less than the rest of its wait");
        }
        self.check_due(from, publication.published_ms);
        self.check_letter_text(from, &message.body);
        let topic = publication.topic.clone().unwrap_or_default();
        self.ledger.add_letter(from, published_letter_text(&topic, &message.body));
    }

    /// Checks the start of a delivery that sends a dead letter to an address. The delivery has
    /// fresh state, carries the whole dead letter, and is not sent too early.
    pub(crate) fn check_fresh(&mut self, delivery: &Delivery, message: &Message) {
        let id = delivery.id;
        let known = self.ledger.known[&id].clone();
        let from = known.from.expect("it follows from a dead letter");
        let batching = delivery.batching.known();
        let new = (delivery.attempts, delivery.history.newest(), batching);
        if new != (0, None, Some(Batching::Allowed)) || delivery.published_ms != delivery.due_ms {
            self.record_violation(
                id,
                "a delivery from a dead letter does not start with fresh state",
            );
        }
        if (delivery.hops, Route::new(&delivery.target), &delivery.via)
            != (known.hops, known.route, &known.via)
        {
            self.record_violation(id, "its origin or its target is wrong");
        }
        if self.clock_ms().saturating_add(message.wait_ms) < delivery.due_ms {
            self.record_violation(id, "sent to its sink with less than the rest of its wait");
        }
        if !self.takes(&known) {
            self.record_violation(id, "published to a subscription whose filter does not match");
        }
        self.check_due(from, delivery.due_ms);
        match &delivery.target {
            DeliveryTarget::Sink(letter) => {
                self.check_state(&letter.delivery);
                self.check_reason(letter);
                if letter.delivery.id != from
                    || letter.returned.is_some()
                    || letter.sink_error.is_some()
                {
                    self.record_violation(id, "the dead letter for its sink is another one");
                }
            }
            DeliveryTarget::Destination | DeliveryTarget::Reply => {
                self.check_letter_text(from, &message.body);
            }
        }
    }

    /// Checks that a dead letter goes to its sink when its delay has passed, or now if that is
    /// later.
    fn check_due(&mut self, from: Uuid, due_ms: u64) {
        let number = self.ledger.known.get(&from).and_then(|known| known.subscription);
        let Some(number) = number else { return };
        let delay_ms = self.rules[number].subscription.dead_letter.delay_ms;
        let invocation = &self.invocations[self.current];
        let messages = invocation.messages_for(from, self.ledger.origin(from));
        let ([held], 0) = (&messages[..], invocation.panics) else { return };
        let before_ms = held
            .carried
            .delivery()
            .and_then(|delivery| delivery.history.newest_attempt())
            .map(|entry| entry.at_ms);
        let last_ms =
            invocation.tallies.get(&from).and_then(|tally| tally.last_at_ms).or(before_ms);
        let least_ms = last_ms.map_or(0, |at_ms| at_ms + delay_ms);
        if due_ms < least_ms || due_ms > least_ms.max(self.clock_ms()) {
            let violation = format!("due at its sink at {due_ms}, not at {least_ms} or now");
            self.record_violation(from, &violation);
        }
    }

    /// Checks a dead letter as a reader outside sees it: its id, its reason, and the event.
    fn check_letter_text(&mut self, id: Uuid, text: &str) {
        let result_seen = properties(&serde_json::from_str(text).unwrap_or(Value::Null));
        let mark = self.ledger.mark(id);
        let reason: Result<Reason, _> =
            result_seen["deadletterreasoncode"].as_str().unwrap_or_default().parse();
        if result_seen["deadletterid"] != id.to_string() || !text.contains(&mark) || reason.is_err()
        {
            self.record_violation(id, &format!("its sink gets another dead letter: {text}"));
        }
        let requests = self.ledger.seen.get(&id).map_or(0, Vec::len) as u64;
        let faults = self.ledger.chains_allowed(id) > 1;
        if !faults && result_seen["deliveryattempts"].as_u64() != Some(requests) {
            self.record_violation(id, "its dead letter reports other attempts than were made");
        }
    }

    /// Checks the body of a request to a sink's address.
    pub(crate) fn check_sink_request(&mut self, sink_delivery: Uuid, body: &str) {
        let from = self.ledger.known[&sink_delivery].from.expect("it follows from a dead letter");
        self.check_letter_text(from, body);
        let invocation = &self.invocations[self.current];
        let messages = invocation.messages_for(sink_delivery, "").into_iter();
        let mut letters = messages.filter_map(carried_letter);
        let result_seen = properties(&serde_json::from_str(body).unwrap_or(Value::Null));
        let reason = &result_seen["deadletterreasoncode"];
        if !letters.any(|letter| *reason == letter.reason.to_string()) {
            self.record_violation(sink_delivery, "its sink gets another reason");
        }
    }

    /// Checks that a dead letter that its sink refused is the one that was sent there, and reports
    /// the failure.
    pub(crate) fn check_returned(&mut self, letter: &DeadLetter) {
        let (id, sink_delivery) = (letter.delivery.id, sink_delivery_of(letter.delivery.id));
        let Some(returned) = &letter.returned else { return };
        let Some(known) = self.ledger.known.get(&sink_delivery) else {
            return self
                .record_violation(id, "returned from a sink that it was never to be sent to");
        };
        let number = known.subscription.expect("a sink delivery has a subscription");
        let bases = self.bases(sink_delivery);
        if bases.is_empty()
            && (returned.reason != Reason::EventTooLargeToResend || returned.attempts != 0)
        {
            self.record_violation(id, "returned from a sink without a request");
        }
        let [base] = &bases[..] else { return };
        let invocation = &self.invocations[self.current];
        let least = base.attempts
            + invocation.tallies.get(&sink_delivery).map_or(0, |tally| tally.requests);
        let counted = (least..=least + invocation.panics).contains(&returned.attempts);
        let (decided_ms, not_before_ms) = (letter.decided_ms, letter.not_before_ms);
        let first = invocation.messages_for(sink_delivery, "").into_iter().find_map(carried_letter);
        let kept = first.is_some_and(|first| {
            let (decided_ms, not_before_ms, event) =
                (first.decided_ms, first.not_before_ms, &letter.delivery.event);
            let delivery =
                Delivery { event: first.delivery.event.clone(), ..letter.delivery.clone() };
            event.text() == first.delivery.event.text()
                && *first
                    == DeadLetter {
                        delivery,
                        returned: None,
                        decided_ms,
                        not_before_ms,
                        ..letter.clone()
                    }
        });
        let published_ms = base.published_ms;
        if !counted {
            self.record_violation(
                sink_delivery,
                &format!("{} attempts are recorded, {least} were made", returned.attempts),
            );
        }
        if !kept || decided_ms != not_before_ms {
            self.record_violation(
                sink_delivery,
                "the returned dead letter is not the one that was sent",
            );
        }
        self.check_limits(
            sink_delivery,
            number,
            &returned.reason,
            returned.attempts,
            decided_ms.saturating_sub(published_ms),
        );
    }

    /// Records that a dead letter was published on a topic, for each delivery that it leads to.
    pub(crate) fn note_published_letter(&mut self, from: Uuid, published_ms: u64, text: &Arc<str>) {
        for next in self.ledger.after.get(&from).cloned().unwrap_or_default() {
            if !self.takes(&self.ledger.known[&next]) {
                continue;
            }
            let fresh = Fresh { published_ms, text: Arc::clone(text) };
            self.ledger.fresh.entry(next).or_default().push(fresh);
        }
    }

    /// Records that a delivery that sends a dead letter to an address was sent.
    pub(crate) fn note_fresh(&mut self, delivery: &Delivery) {
        let Delivery { published_ms, event, .. } = delivery;
        let fresh = Fresh { published_ms: *published_ms, text: event.text().clone() };
        self.ledger.fresh.entry(delivery.id).or_default().push(fresh);
    }

    /// Sends a dead letter to an external queue.
    pub(crate) fn send_to_sink(
        &mut self,
        queue: &SinkQueue,
        id: Uuid,
        json: &str,
    ) -> Result<(), PutError> {
        let number = self.ledger.known.get(&id).and_then(|known| known.subscription);
        let wanted = number.map(|number| &self.rules[number].subscription.dead_letter.sink);
        if wanted != Some(&Sink::Queue(queue.clone())) {
            self.record_violation(
                id,
                "a dead letter for a queue that its subscription does not name",
            );
            return Ok(());
        }
        self.check_letter_text(id, json);
        if self.invocation().stores {
            self.check_stored_copy(id, &queue.to_string(), "", json.as_bytes());
        }
        let (there, answer) = self.storage.send_to_sink(&mut self.random, self.now_ms, id, json);
        self.trace(|| {
            let (name, digest) = (self.ledger.name(id), digest(json));
            format!("sends {name} to {queue}: {answer:?}: {digest}")
        });
        if !self.invocation().stores {
            self.note_stored_directly(id, &queue.to_string(), there, &answer);
        }
        answer
    }
}

/// The dead letter that a message carries to a sink's address.
fn carried_letter(held: &Queued) -> Option<&DeadLetter> {
    match &held.carried {
        Carried::Delivery(delivery) => match &delivery.target {
            DeliveryTarget::Sink(letter) => Some(letter),
            DeliveryTarget::Destination | DeliveryTarget::Reply => None,
        },
        Carried::DeadLetter(_)
        | Carried::Publication(_)
        | Carried::Nothing
        | Carried::ReplayEnd(_) => None,
    }
}
