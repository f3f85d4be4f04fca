//! A message in a queue, and its content.

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

/// The content of a message, as it was sent.
#[derive(Debug, Clone)]
pub(crate) enum Carried {
    /// Nothing, because the message comes from a publisher.
    Nothing,
    /// A published record that was re-enqueued before it was read.
    Publication(Arc<Publication>),
    /// A delivery in progress.
    Delivery(Arc<Delivery>),
    DeadLetter(Arc<DeadLetter>),
    /// The end of a replayed delivery.
    ReplayEnd(Arc<ReplayEnd>),
}

impl Carried {
    /// Decodes the content of a message as the next function will.
    pub(crate) fn decode(message: &Message) -> Self {
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

    /// The delivery in progress, or the delivery of the dead letter.
    pub(crate) fn delivery(&self) -> Option<&Delivery> {
        match self {
            Self::Nothing | Self::Publication(_) | Self::ReplayEnd(_) => None,
            Self::Delivery(delivery) => Some(delivery),
            Self::DeadLetter(letter) => Some(&letter.delivery),
        }
    }

    /// The delivery that a blob would belong to. For a sink delivery, this is the delivery whose
    /// dead letter it sends.
    pub(crate) fn kept(&self) -> Option<&Delivery> {
        match self.delivery() {
            Some(Delivery { target: DeliveryTarget::Sink(letter), .. }) => Some(&letter.delivery),
            delivery => delivery,
        }
    }

    /// The id of the chain of the message. A dead letter that its sink returned belongs to the
    /// chain of the sink delivery.
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
    /// The message id.
    pub(crate) message: String,
    /// The id of the message that first carried this dead letter. For other messages, their own id.
    pub(crate) letter_of: String,
    pub(crate) body: Arc<str>,
    /// The `topic` attribute.
    pub(crate) topic: Option<String>,
    /// Our attribute, as the function reads it.
    pub(crate) attribute: Option<Attribute>,
    /// Our attribute, as it was sent.
    pub(crate) carried: Carried,
    /// The deliveries that a part of a record may lead to; `None` unless the message is a part.
    pub(crate) part: Option<Arc<BTreeSet<Uuid>>>,
    /// The message group of SQS.
    pub(crate) group: Option<String>,
    /// `SentTimestamp` of SQS.
    pub(crate) sent_ms: u64,
    /// The time of the first receive from this queue.
    pub(crate) first_received_ms: Option<u64>,
    /// The number of receives from this queue.
    pub(crate) receives: u32,
    /// The number of receives that earlier failures explain.
    pub(crate) excused: u32,
    /// The `receives` attribute.
    pub(crate) earlier_receives: u32,
    /// The `unread` attribute.
    pub(crate) unread: u32,
    /// The time at which the message becomes visible.
    pub(crate) visible_ms: u64,
    /// The receipt of the last receive.
    pub(crate) receipt: String,
}

impl Queued {
    /// The id of the published record, if the message carries a record or a part of one.
    pub(crate) fn origin(&self) -> Option<&str> {
        match &self.carried {
            Carried::Nothing => Some(&self.message),
            Carried::Publication(publication) => Some(&publication.message),
            Carried::Delivery(_) | Carried::DeadLetter(_) | Carried::ReplayEnd(_) => None,
        }
    }

    /// True if the message is this published record, or a part of it with this delivery.
    pub(crate) fn holds(&self, id: Uuid, origin: &str) -> bool {
        self.origin() == Some(origin) && self.part.as_ref().is_none_or(|part| part.contains(&id))
    }

    /// The publication time of the content.
    pub(crate) fn published_ms(&self) -> u64 {
        match &self.carried {
            Carried::Nothing => self.sent_ms,
            Carried::Publication(publication) => publication.published_ms,
            Carried::Delivery(delivery) => delivery.published_ms,
            Carried::DeadLetter(letter) => letter.delivery.published_ms,
            Carried::ReplayEnd(end) => end.at_ms,
        }
    }

    /// The hold of the record or delivery, as it was sent.
    pub(crate) fn hold(&self) -> Hold {
        match &self.carried {
            Carried::Publication(publication) => publication.hold,
            Carried::Delivery(delivery) => delivery.hold,
            Carried::Nothing | Carried::DeadLetter(_) | Carried::ReplayEnd(_) => Hold::default(),
        }
    }

    /// The number of receives if nothing fails. A hold longer than one delay needs one more.
    pub(crate) fn planned_receives(&self, queue: QueueName) -> u32 {
        1 + u32::from(queue.is_internal() && self.hold().until_ms > self.sent_ms + DELAY_MAX_MS)
    }

    /// The message group; empty if there is none.
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
