//! Messages that the functions send.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::delivery::Delivery;
use delivery::delivery::reason::Reason;
use delivery::ports::{Message, QueueError, QueueName};
use uuid::Uuid;

use super::faults::Fault;
use super::queued::{Carried, Queued};
use super::queues::delay_ms;
use super::trace::digest;
use super::world::{Inner, Touched};

/// The queue that a message is sent to, and its wait there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    queue: QueueName,
    wait_ms: u64,
}

impl Way {
    pub(crate) fn new(queue: QueueName, message: &Message) -> Self {
        Self { queue, wait_ms: message.wait_ms }
    }
}

impl Inner {
    /// Sends a message to a queue.
    pub(crate) fn send(
        &mut self,
        queue: QueueName,
        message: Message,
        carried: Carried,
    ) -> Result<(), QueueError> {
        self.check_sent(queue, &message, &carried);
        let way = Way::new(queue, &message);
        let fresh = self.starts(way, &carried).cloned();
        if self.random.injects(Fault::SendFailed) {
            self.trace(|| format!("SEND FAILED {}", self.name_of(&carried)));
            self.note_not_taken(way, &carried);
            return Err(QueueError("no".to_owned()));
        }
        if queue == QueueName::Isolation {
            self.random.count(Fault::Isolated);
        }
        let part = match &carried {
            Carried::Publication(publication) => self.ids_of_part(&message.body, publication),
            Carried::Nothing
            | Carried::Delivery(_)
            | Carried::DeadLetter(_)
            | Carried::ReplayEnd(_) => None,
        };
        self.note_sent(queue, &carried, part.clone());
        if let Carried::Publication(publication) = &carried
            && let Some(from) = self.published_letter(queue, publication)
        {
            self.ledger.unsent_letters.remove(&publication.message);
            self.note_published_letter(from, publication.published_ms, &message.body);
        }
        if let Some(delivery) = fresh.filter(|_| !self.invocations[self.current].stores) {
            self.note_fresh(&delivery);
        }
        let is_lost = self.random.injects(Fault::SendAnswerLost);
        if is_lost {
            self.trace(|| format!("SEND ANSWER LOST {}", self.name_of(&carried)));
            self.note_perhaps_twice(way, &carried);
        }
        self.enqueue(queue, message, carried, part);
        if is_lost { Err(QueueError("no answer".to_owned())) } else { Ok(()) }
    }

    /// Records that a queue has a message although its sender got an error. The sender may send it
    /// to another queue as well. If that fails too, its record is redelivered.
    pub(crate) fn note_perhaps_twice(&mut self, way: Way, carried: &Carried) {
        let touched = self.touched_by(way, carried);
        self.fork(&touched);
        if let Carried::Publication(publication) = carried
            && (self.publishes_a_reply(publication)
                || self.published_letter(way.queue, publication).is_some())
        {
            *self.ledger.record_forks.entry(publication.message.clone()).or_default() += 1;
        }
        // A delivery that starts here has no received message of its own.
        let Some(id) = carried.id() else { return };
        let invocation = &self.invocations[self.current];
        if invocation.messages_for(id, self.ledger.origin(id)).is_empty() {
            *self.ledger.forks.entry(id).or_default() += 1;
        }
    }

    /// Records that a queue refused a message. Its record is redelivered, and the message is sent
    /// again.
    pub(crate) fn note_not_taken(&mut self, way: Way, carried: &Carried) {
        let stores = self.invocation().stores;
        self.ledger.costs.excuse(carried, stores);
        self.fork(&self.touched_by(way, carried));
    }

    /// The content that a fault in sending this message touches. For a delivery that starts here,
    /// this is the delivery that it follows from.
    pub(crate) fn touched_by(&self, way: Way, carried: &Carried) -> Touched {
        if let Carried::Publication(publication) = carried
            && let Some(from) = self.published_letter(way.queue, publication)
        {
            return Touched::single(from);
        }
        let fresh = self.starts(way, carried);
        let known = fresh.and_then(|delivery| self.ledger.known.get(&delivery.id));
        known
            .and_then(|known| known.from)
            .map_or_else(|| Touched::from_carried(carried), Touched::single)
    }

    /// The delivery that starts with a message. No delivery starts in isolation or in the slow
    /// queue, however new it looks. A dead letter starts a delivery only if the event was too large
    /// to be sent.
    fn starts<'a>(&self, way: Way, carried: &'a Carried) -> Option<&'a Delivery> {
        let was_received = match carried {
            Carried::DeadLetter(letter) => letter.reason != Reason::EventTooLargeToResend,
            Carried::Nothing
            | Carried::Publication(_)
            | Carried::Delivery(_)
            | Carried::ReplayEnd(_) => {
                matches!(way.queue, QueueName::Isolation | QueueName::Slow)
            }
        };
        let delivery = carried.delivery().filter(|_| !was_received);
        delivery.filter(|delivery| self.is_fresh(delivery, way.wait_ms))
    }

    /// Records that a message is now in a queue.
    fn note_sent(
        &mut self,
        queue: QueueName,
        carried: &Carried,
        part: Option<Arc<BTreeSet<Uuid>>>,
    ) {
        let stores = self.invocation().stores;
        match carried {
            Carried::Nothing | Carried::ReplayEnd(_) => {}
            Carried::Publication(publication) => {
                self.invocation().forwarded.push((publication.message.clone(), part));
            }
            // A dead letter that continues to wait is not another one.
            Carried::DeadLetter(letter) if queue == QueueName::DeadLetter && !stores => {
                // A dead letter that returns from a sink ends the chain of its sink delivery.
                let returned = carried.id().filter(|_| letter.returned.is_some());
                let chain = returned.unwrap_or_else(|| self.chain_of(letter.delivery.id));
                *self.ledger.letters.entry(chain).or_default() += 1;
                self.ledger.must_end.insert(chain);
            }
            Carried::Delivery(_) | Carried::DeadLetter(_) => {
                self.ledger.must_end.extend(carried.id());
            }
        }
    }

    /// Puts a message into a queue.
    pub(crate) fn enqueue(
        &mut self,
        queue: QueueName,
        message: Message,
        carried: Carried,
        part: Option<Arc<BTreeSet<Uuid>>>,
    ) {
        let seconds_ms = delay_ms(message.wait_ms);
        let mut visible_ms = self.now_ms + seconds_ms;
        if seconds_ms > 0 && self.random.injects(Fault::DeliveredEarly) {
            visible_ms = self.now_ms + self.random.below(seconds_ms);
            self.count_early(&carried);
        } else if self.random.injects(Fault::DeliveredLate) {
            visible_ms += self.random.below(4_000_000);
        }
        let copy = self.queues.number();
        let name = format!("n{copy}");
        let fair = self.limits.fair;
        let group = Some(message.group.to_string()).filter(|group| fair && !group.is_empty());
        let mut queued = Queued {
            copy,
            letter_of: self.letter_of(&carried).unwrap_or_else(|| name.clone()),
            message: name,
            body: message.body,
            topic: message.topic.map(|topic| topic.to_string()),
            attribute: Some(message.attribute),
            carried,
            part,
            group,
            sent_ms: self.now_ms,
            first_received_ms: None,
            receives: 0,
            excused: 0,
            earlier_receives: message.receives,
            unread: message.unread,
            visible_ms,
            receipt: String::new(),
        };
        self.trace(|| {
            let (name, wait_ms) = (self.name_of(&queued.carried), visible_ms - self.now_ms);
            let digest = digest(format!("{queued:?}"));
            format!(
                "sends {name} {queue:?} as {}, visible in {wait_ms} ms: {digest}",
                queued.message
            )
        });
        if self.saboteur.tampers(queue, &mut queued) {
            self.queues.put(queue, queued);
        }
        for (queue, queued) in std::mem::take(&mut self.saboteur.copies) {
            let copy = self.queues.number();
            self.queues.put(queue, Queued { copy, ..queued });
        }
    }

    /// The message that first carried a dead letter which the running invocation received.
    fn letter_of(&self, carried: &Carried) -> Option<String> {
        let invocation = &self.invocations[self.current];
        let Carried::DeadLetter(letter) = carried else { return None };
        let received = invocation.stores.then(|| self.received_with(letter)).flatten();
        received.map(|queued| queued.letter_of)
    }

    /// A readable name for the content of a message.
    fn name_of(&self, carried: &Carried) -> String {
        match (carried.id(), carried) {
            (Some(id), _) => self.ledger.name(id),
            (None, Carried::Publication(publication)) => format!("record {}", publication.message),
            (
                None,
                Carried::Nothing
                | Carried::Delivery(_)
                | Carried::DeadLetter(_)
                | Carried::ReplayEnd(_),
            ) => "nothing".to_owned(),
        }
    }
}
