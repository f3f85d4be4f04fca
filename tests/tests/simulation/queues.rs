//! Queues that behave like SQS: delays, visibility, receive counts, redrive, retention.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget};
use delivery::ports::{Attribute, QueueName, Record};
use delivery::time::duration::{DAY_MS, SECOND_MS};
use uuid::Uuid;

use super::publish::Published;
use super::sinks::sink_delivery_of;

/// The queues that functions read, in polling order.
pub(crate) const READ: [QueueName; 3] =
    [QueueName::Events, QueueName::Retry, QueueName::DeadLetter];
/// The visibility timeout of a received message.
pub(crate) const VISIBILITY_MS: u64 = 720 * SECOND_MS;
/// The retention period of a message.
const RETENTION_MS: u64 = 14 * DAY_MS;
/// The longest delay of a message.
pub(crate) const DELAY_MAX_MS: u64 = 900 * SECOND_MS;

/// What a message carries, as it was sent.
#[derive(Debug, Clone)]
pub(crate) enum Carried {
    /// Nothing: it comes from a publisher.
    Nothing,
    /// A delivery in progress.
    Delivery(Arc<Delivery>),
    /// A dead letter.
    DeadLetter(Arc<DeadLetter>),
}

impl Carried {
    /// The delivery that it carries.
    pub(crate) fn delivery(&self) -> Option<&Delivery> {
        match self {
            Self::Nothing => None,
            Self::Delivery(delivery) => Some(delivery),
            Self::DeadLetter(letter) => Some(&letter.delivery),
        }
    }

    /// The delivery that a blob would belong to; for a sink delivery that is the one whose dead
    /// letter it carries.
    pub(crate) fn kept(&self) -> Option<&Delivery> {
        match self.delivery() {
            Some(Delivery { target: DeliveryTarget::Sink(letter), .. }) => Some(&letter.delivery),
            delivery => delivery,
        }
    }

    /// The chain that it belongs to: that of the sink delivery if a dead letter was returned from
    /// its sink.
    pub(crate) fn id(&self) -> Option<Uuid> {
        match self {
            Self::DeadLetter(letter) if letter.returned.is_some() => {
                Some(sink_delivery_of(letter.delivery.id))
            }
            Self::Nothing | Self::Delivery(_) | Self::DeadLetter(_) => {
                self.delivery().map(|delivery| delivery.id)
            }
        }
    }
}

/// A message in a queue.
#[derive(Debug, Clone)]
pub(crate) struct HoldReason {
    /// The number of this copy of the message; a message that is delivered twice has two copies.
    pub(crate) copy: u64,
    /// Its id.
    pub(crate) message: String,
    /// Its body.
    pub(crate) body: Arc<str>,
    /// The `topic` attribute.
    pub(crate) topic: Option<String>,
    /// Our attribute, as the function reads it.
    pub(crate) attribute: Option<Attribute>,
    /// Our attribute, as it was sent.
    pub(crate) carried: Carried,
    /// SentTimestamp.
    pub(crate) sent_ms: u64,
    /// The time of the first receive from this queue.
    pub(crate) first_received_ms: Option<u64>,
    /// How often it was received.
    pub(crate) receives: u32,
    /// When it becomes visible.
    pub(crate) visible_ms: u64,
    /// The receipt of its last receive.
    pub(crate) receipt: String,
}

impl HoldReason {
    /// The record as Lambda passes it to the function.
    pub(crate) fn record(&self, queue: QueueName) -> Record {
        let (delivery, deadletter) = match &self.attribute {
            None => (None, None),
            Some(Attribute::Delivery(value)) => (Some(value.clone()), None),
            Some(Attribute::DeadLetter(value)) => (None, Some(value.clone())),
        };
        Record {
            message: self.message.clone(),
            receipt: self.receipt.clone(),
            queue: label(queue).to_owned(),
            body: Arc::clone(&self.body),
            topic: self.topic.clone(),
            delivery,
            deadletter,
            traceparent: None,
            sent_ms: self.sent_ms,
            first_received_ms: self.first_received_ms.unwrap_or(self.sent_ms),
            receives: self.receives,
        }
    }
}

/// The name at the end of a queue's ARN.
pub(crate) fn label(queue: QueueName) -> &'static str {
    match queue {
        QueueName::Events => "events",
        QueueName::Retry => "retry",
        QueueName::DeadLetter => "dead-letter",
        QueueName::LastResort => "last-resort",
    }
}

/// The redrive target of a queue, and its maximum receive count.
fn redrive(queue: QueueName) -> (QueueName, u32) {
    match queue {
        QueueName::Events | QueueName::Retry => (QueueName::DeadLetter, 100),
        QueueName::DeadLetter | QueueName::LastResort => (QueueName::LastResort, 1_000),
    }
}

/// All four queues.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    held: BTreeMap<&'static str, Vec<HoldReason>>,
    copies: u64,
}

/// The result of polling a queue.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The batch.
    pub(crate) batch: Vec<HoldReason>,
    /// Messages that were moved to the redrive target instead.
    pub(crate) redriven: Vec<HoldReason>,
}

impl Queues {
    /// A new unique number.
    pub(crate) fn number(&mut self) -> u64 {
        self.copies += 1;
        self.copies
    }

    /// Puts a record into the events queue.
    pub(crate) fn publish(&mut self, message: &str, published: &Published) {
        let held = HoldReason {
            copy: self.number(),
            message: message.to_owned(),
            body: published.body.as_str().into(),
            topic: published.topic.map(ToOwned::to_owned),
            attribute: None,
            carried: Carried::Nothing,
            sent_ms: published.at_ms,
            first_received_ms: None,
            receives: 0,
            visible_ms: published.at_ms,
            receipt: String::new(),
        };
        self.put(QueueName::Events, held);
    }

    /// Puts a message into a queue.
    pub(crate) fn put(&mut self, queue: QueueName, held: HoldReason) {
        self.held.entry(label(queue)).or_default().push(held);
    }

    /// All messages of a queue.
    pub(crate) fn all(&self, queue: QueueName) -> impl Iterator<Item = &HoldReason> {
        self.held.get(label(queue)).into_iter().flatten()
    }

    /// The earliest time at which a message can be received from the queues that functions read.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        READ.iter().flat_map(|queue| self.all(*queue)).map(|held| held.visible_ms).min()
    }

    /// Receives up to this many messages from a queue.
    pub(crate) fn receive(&mut self, queue: QueueName, most: usize, now_ms: u64) -> Received {
        let (next, limit) = redrive(queue);
        let mut received = Received::default();
        // Copies and receipts share one counter, so a receipt is never reused.
        let mut receipts = self.copies;
        for held in self.held.entry(label(queue)).or_default() {
            if held.visible_ms > now_ms || received.batch.len() >= most {
                continue;
            }
            if held.receives >= limit {
                received.redriven.push(held.clone());
                continue;
            }
            receipts += 1;
            held.receives += 1;
            held.first_received_ms.get_or_insert(now_ms);
            held.visible_ms = now_ms + VISIBILITY_MS;
            held.receipt = format!("r{receipts}");
            received.batch.push(held.clone());
        }
        self.copies = receipts;
        for held in &received.redriven {
            self.delete(queue, held.copy);
            self.put(
                next,
                HoldReason {
                    receives: 0,
                    first_received_ms: None,
                    visible_ms: now_ms,
                    ..held.clone()
                },
            );
        }
        received
    }

    /// Deletes a copy of a message.
    pub(crate) fn delete(&mut self, queue: QueueName, copy: u64) {
        self.held.entry(label(queue)).or_default().retain(|held| held.copy != copy);
    }

    /// Changes when a received message becomes visible.
    pub(crate) fn change_visibility(&mut self, name: &str, receipt: &str, until_ms: u64) -> bool {
        let found = self
            .held
            .get_mut(name)
            .and_then(|held| held.iter_mut().find(|held| held.receipt == receipt));
        found.map(|held| held.visible_ms = until_ms).is_some()
    }

    /// Deletes messages past their retention, except in the last-resort queue, which is for people
    /// to read.
    pub(crate) fn delete_expired(&mut self, now_ms: u64) {
        for queue in READ {
            self.held
                .entry(label(queue))
                .or_default()
                .retain(|held| held.sent_ms + RETENTION_MS > now_ms);
        }
    }
}
