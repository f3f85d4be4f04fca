//! A message in a queue, and what it carries.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::delivery::replay::ReplayEnd;
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget, Hold, Publication};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Message, QueueName, Record};
use delivery::waits::DELAY_MAX_MS;
use delivery::wire::{
    is_replay_end, read_dead_letter, read_delivery, read_publication, read_replay_end,
};
use uuid::Uuid;

use super::sinks::sink_delivery_of;

/// What a message carries, as it was sent.
#[derive(Debug, Clone)]
pub(crate) enum Carried {
    /// Nothing: it comes from a publisher.
    Nothing,
    /// A published record that was re-enqueued before it was read.
    Publication(Arc<Publication>),
    /// A delivery in progress.
    Delivery(Arc<Delivery>),
    /// A dead letter.
    DeadLetter(Arc<DeadLetter>),
    /// The end of a replayed delivery.
    ReplayEnd(Arc<ReplayEnd>),
}

impl Carried {
    /// What a message carries, decoded as the next function will decode it.
    pub(crate) fn of(message: &Message) -> Self {
        const READABLE: &str = "a written attribute can be read";
        match &message.attribute {
            Attribute::Publication(value) => {
                Self::Publication(Arc::new(read_publication(value).expect(READABLE)))
            }
            Attribute::Delivery(value) => {
                let event = Event::recall(&message.body, Input::Auto);
                Self::Delivery(Arc::new(read_delivery(value, event).expect(READABLE)))
            }
            Attribute::DeadLetter(value) if is_replay_end(value) => {
                Self::ReplayEnd(Arc::new(read_replay_end(value).expect(READABLE)))
            }
            Attribute::DeadLetter(value) => {
                Self::DeadLetter(Arc::new(read_dead_letter(value, &message.body).expect(READABLE)))
            }
        }
    }

    /// The delivery that it carries.
    pub(crate) fn delivery(&self) -> Option<&Delivery> {
        match self {
            Self::Nothing | Self::Publication(_) | Self::ReplayEnd(_) => None,
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
            Self::Nothing
            | Self::Publication(_)
            | Self::Delivery(_)
            | Self::DeadLetter(_)
            | Self::ReplayEnd(_) => self.delivery().map(|delivery| delivery.id),
        }
    }
}

/// A message in a queue.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    /// The number of this copy of the message; a message that is delivered twice has two copies.
    pub(crate) copy: u64,
    /// Its id.
    pub(crate) message: String,
    /// The message that first carried the dead letter that it carries; else its own id.
    pub(crate) letter_of: String,
    /// Its body.
    pub(crate) body: Arc<str>,
    /// The `topic` attribute.
    pub(crate) topic: Option<String>,
    /// Our attribute, as the function reads it.
    pub(crate) attribute: Option<Attribute>,
    /// Our attribute, as it was sent.
    pub(crate) carried: Carried,
    /// The deliveries that a part of a record may lead to; `None` if it is no part.
    pub(crate) part: Option<Arc<BTreeSet<Uuid>>>,
    /// Its message group.
    pub(crate) group: Option<String>,
    /// SentTimestamp.
    pub(crate) sent_ms: u64,
    /// The time of the first receive from this queue.
    pub(crate) first_received_ms: Option<u64>,
    /// How often it was received from this queue.
    pub(crate) receives: u32,
    /// How many of its receives are explained by what failed.
    pub(crate) excused: u32,
    /// The `receives` attribute.
    pub(crate) earlier_receives: u32,
    /// The `unread` attribute.
    pub(crate) unread: u32,
    /// When it becomes visible.
    pub(crate) visible_ms: u64,
    /// The receipt of its last receive.
    pub(crate) receipt: String,
}

impl Queued {
    /// The message id of the published record that it is as a whole.
    pub(crate) fn origin(&self) -> Option<&str> {
        match &self.carried {
            Carried::Nothing => Some(&self.message),
            Carried::Publication(publication) => Some(&publication.message),
            Carried::Delivery(_) | Carried::DeadLetter(_) | Carried::ReplayEnd(_) => None,
        }
    }

    /// Whether it is a published record, or a part of it, with this delivery.
    pub(crate) fn holds(&self, id: Uuid, origin: &str) -> bool {
        self.origin() == Some(origin) && self.part.as_ref().is_none_or(|part| part.contains(&id))
    }

    /// When what it carries was published.
    pub(crate) fn published_ms(&self) -> u64 {
        match &self.carried {
            Carried::Nothing => self.sent_ms,
            Carried::Publication(publication) => publication.published_ms,
            Carried::Delivery(delivery) => delivery.published_ms,
            Carried::DeadLetter(letter) => letter.delivery.published_ms,
            Carried::ReplayEnd(end) => end.at_ms,
        }
    }

    /// How it was held before it was received.
    pub(crate) fn hold(&self) -> Hold {
        match &self.carried {
            Carried::Publication(publication) => publication.hold,
            Carried::Delivery(delivery) => delivery.hold,
            Carried::Nothing | Carried::DeadLetter(_) | Carried::ReplayEnd(_) => Hold::default(),
        }
    }

    /// How often it is received if nothing fails: a hold longer than one delay costs one more.
    pub(crate) fn planned_receives(&self, queue: QueueName) -> u32 {
        1 + u32::from(queue.is_internal() && self.hold().until_ms > self.sent_ms + DELAY_MAX_MS)
    }

    /// Its message group, empty if it has none.
    pub(crate) fn group_key(&self) -> &str {
        self.group.as_deref().unwrap_or_default()
    }

    /// The record as Lambda passes it to the function.
    pub(crate) fn record(&self, queue: QueueName) -> Record {
        Record {
            message: self.message.clone(),
            receipt: self.receipt.clone(),
            queue,
            body: Arc::clone(&self.body),
            topic: self.topic.clone(),
            attribute: self.attribute.clone(),
            group: self.group.clone(),
            traceparent: None,
            sent_ms: self.sent_ms,
            first_received_ms: self.first_received_ms.unwrap_or(self.sent_ms),
            receives: self.receives,
            earlier_receives: self.earlier_receives,
            unread: self.unread,
        }
    }
}
