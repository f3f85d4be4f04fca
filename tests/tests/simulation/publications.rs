//! Checks on messages that are re-enqueued as they were received: waiting records, records that
//! move to isolation, and dead letters that storage does not accept yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Hold, Part, Publication};
use delivery::ports::{Message, QueueName};
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::queued::{Carried, Queued};
use super::world::Inner;

/// The waits of a record for the subscriptions, in order. The last one repeats.
const WAITS_MS: [u64; 5] = [5 * MINUTE_MS, 10 * MINUTE_MS, 20 * MINUTE_MS, 40 * MINUTE_MS, HOUR_MS];
/// The longest time between two tries to store a dead letter.
const STORING_EVERY_MS: u64 = 5 * MINUTE_MS;

impl Inner {
    /// Checks that a record that is re-enqueued unread keeps all data from its publisher and from
    /// SQS.
    pub(crate) fn check_publication(
        &mut self,
        queue: QueueName,
        message: &Message,
        publication: &Publication,
    ) {
        if self.publishes_a_reply(publication) {
            return self.check_published_reply(queue, message, publication);
        }
        if let Some(from) = self.published_letter(queue, publication) {
            return self.check_published_letter(from, queue, message, publication);
        }
        if !self.ledger.has_record(&publication.message) {
            return self.record_violation_of(publication, "nobody published it");
        }
        if self.is_new_part(queue, message, publication) {
            return self.check_part(queue, message, publication);
        }
        let received = self.invocation().messages_of(&publication.message);
        let same = received.iter().any(|queued| {
            let expected = match &queued.carried {
                Carried::Publication(before) => (**before).clone(),
                Carried::Nothing
                | Carried::Delivery(_)
                | Carried::DeadLetter(_)
                | Carried::ReplayEnd(_) => Publication {
                    message: queued.message.clone(),
                    published_ms: queued.sent_ms,
                    topic: queued.topic.clone(),
                    group: queued.group.clone(),
                    traceparent: None,
                    hold: Hold::default(),
                    part: None,
                    onward: None,
                },
            };
            queued.body == message.body
                && *publication == Publication { hold: publication.hold, ..expected }
        });
        let counts: Vec<Hold> = received.into_iter().map(Queued::hold).collect();
        if !same {
            return self.record_violation_of(publication, "re-enqueued as another record");
        }
        match queue {
            QueueName::Isolation => {
                if !counts.contains(&publication.hold) {
                    self.record_violation_of(publication, "isolated with another hold");
                }
                self.check_isolated(message);
            }
            QueueName::Retry => self.check_held(message, publication, &counts),
            QueueName::Events | QueueName::Slow | QueueName::DeadLetter | QueueName::LastResort => {
                self.record_violation_of(publication, "re-enqueued in the wrong queue");
            }
        }
    }

    /// True if the publication is a part of a received record, and does not wait.
    fn is_new_part(
        &mut self,
        queue: QueueName,
        message: &Message,
        publication: &Publication,
    ) -> bool {
        let Some(ids) = self.ids_of_part(&message.body, publication) else { return false };
        let received = self.invocation().messages_of(&publication.message);
        let is_of =
            |queued: &Queued| queued.part.as_ref().is_none_or(|part| part.len() > ids.len());
        queue != QueueName::Isolation
            && publication.hold.is_none()
            && received.into_iter().any(is_of)
    }

    /// Checks that a part has the published elements, the data of its record, and fewer deliveries
    /// than the received message.
    fn check_part(&mut self, queue: QueueName, message: &Message, publication: &Publication) {
        let record = self.ledger.record_of(&publication.message);
        let published = &self.ledger.published[record].1;
        let first = publication.part.as_ref().map_or(0, |part| part.first as usize);
        let texts = texts_of(&message.body);
        let is_published = texts.iter().enumerate().all(|(index, text)| {
            published.elements.get(first + index).is_some_and(|element| element.text == *text)
        });
        let ids = self.ids_of_part(&message.body, publication).unwrap_or_default();
        let received = self.invocation().messages_of(&publication.message);
        // A dead letter may be published twice, each time with another text.
        let same = is_published || received.iter().any(|queued| queued.body == message.body);
        let is_less = received.iter().any(|queued| match &queued.part {
            Some(part) => part.is_superset(&ids) && part.len() > ids.len(),
            None => true,
        });
        let says_the_same = received.iter().any(|queued| {
            let group = match &queued.carried {
                Carried::Publication(publication) => &publication.group,
                Carried::Nothing
                | Carried::Delivery(_)
                | Carried::DeadLetter(_)
                | Carried::ReplayEnd(_) => &queued.group,
            };
            (publication.published_ms, &publication.group) == (queued.published_ms(), group)
        });
        if !same || !is_less || texts.is_empty() {
            self.record_violation_of(publication, "divided into other elements");
        }
        let right = says_the_same
            && (message.wait_ms, message.receives, publication.hold) == (0, 0, Hold::default());
        let queue_is_right = matches!(queue, QueueName::Retry);
        if !right || !queue_is_right {
            self.record_violation_of(publication, "a part says something else than its record");
        }
    }

    /// The deliveries that a part of a record may lead to. The first part includes the deliveries
    /// without a subscription.
    pub(crate) fn ids_of_part(
        &self,
        body: &str,
        publication: &Publication,
    ) -> Option<Arc<BTreeSet<Uuid>>> {
        let Part { first, names, .. } = publication.part.as_ref()?;
        if !self.ledger.has_record(&publication.message) {
            return None;
        }
        let elements = *first as usize..*first as usize + texts_of(body).len();
        let in_range = |number: Option<usize>| match number {
            None => names.from.is_empty(),
            Some(number) => {
                let name = &self.rules[number].subscription.name.name;
                *name >= names.from && names.before.as_ref().is_none_or(|before| name < before)
            }
        };
        let ids = self.ledger.ids_of(self.ledger.record_of(&publication.message));
        let ids = ids.filter(|(number, index, _)| elements.contains(index) && in_range(*number));
        Some(Arc::new(ids.map(|(.., id)| id).collect()))
    }

    /// Checks that a waiting record counts its waits, and that each wait has the length for its
    /// count.
    fn check_held(&mut self, message: &Message, publication: &Publication, before: &[Hold]) {
        let Hold { count, until_ms, .. } = publication.hold;
        let counted = before.iter().any(|hold| hold.count + 1 == count);
        let left_ms = until_ms.saturating_sub(self.clock_ms());
        let most_ms = WAITS_MS[(count.max(1) as usize - 1).min(WAITS_MS.len() - 1)];
        if !counted || left_ms > most_ms || message.receives > 0 {
            self.record_violation_of(publication, "its waits are not counted");
        }
        let exact = !self.random.quiet || (left_ms, message.wait_ms) == (most_ms, most_ms);
        if message.wait_ms < left_ms || message.wait_ms > most_ms || !exact {
            self.record_violation_of(publication, "held for another time than its count says");
        }
    }

    /// Checks that a record moves to isolation as it is, with the number of all its receives. It
    /// may move only after more receives than planned.
    pub(crate) fn check_isolated(&mut self, message: &Message) {
        let carried = Carried::decode(message);
        let taken = &self.invocations[self.current].taken;
        let moves = |(queue, queued): &&(QueueName, Queued)| {
            let same = match queued.origin() {
                Some(_) => {
                    matches!(
                        &carried,
                        Carried::Publication(publication)
                            if queued.origin() == Some(&publication.message)
                    )
                }
                None => queued.attribute.as_ref() == Some(&message.attribute),
            };
            same && *queue != QueueName::Isolation && queued.body == message.body
        };
        let expected = |(queue, queued): &(QueueName, Queued)| {
            let receives = queued.earlier_receives + queued.receives;
            (queued.receives > queued.planned_receives(*queue)).then_some(receives)
        };
        let expected: Vec<u32> = taken.iter().filter(moves).filter_map(expected).collect();
        if !expected.contains(&message.receives) || message.wait_ms > 0 {
            let violation = format!(
                "{:?} moved to isolation with {} receives, not {expected:?}",
                carried.id(),
                message.receives
            );
            self.ledger.record_violation(violation);
        }
    }

    /// Checks that a dead letter does not change while it waits for its time or for storage.
    pub(crate) fn check_kept_waiting(&mut self, letter: &DeadLetter, wait_ms: u64) {
        let id = letter.delivery.id;
        if self.received_with(letter).is_none() {
            self.record_violation(id, "another dead letter waits than the one that was received");
        }
        let left_ms = letter.not_before_ms.saturating_sub(self.clock_ms());
        if wait_ms < left_ms || wait_ms > STORING_EVERY_MS.max(left_ms + 60_000) {
            self.record_violation(id, "its dead letter waits for the wrong time");
        }
    }

    /// The received message that carries a dead letter, or the redriven message from which the
    /// function created it.
    pub(crate) fn received_with(&self, letter: &DeadLetter) -> Option<Queued> {
        let same = |queued: &Queued| match &queued.carried {
            Carried::DeadLetter(before) => **before == *letter,
            Carried::Nothing
            | Carried::Publication(_)
            | Carried::Delivery(_)
            | Carried::ReplayEnd(_) => {
                *letter.newest_reason() == Reason::ProcessingFailed
                    && Some(letter.decided_ms) == queued.first_received_ms
            }
        };
        self.messages_with(letter.delivery.id).into_iter().find(same)
    }

    fn record_violation_of(&mut self, publication: &Publication, violation: &str) {
        self.ledger.record_violation(format!("record {}: {violation}", publication.message));
    }
}

/// The texts of the elements of a body.
fn texts_of(body: &str) -> Vec<&str> {
    if !body.trim_start().starts_with('[') {
        return vec![body];
    }
    let elements: Vec<&RawValue> = serde_json::from_str(body).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}
