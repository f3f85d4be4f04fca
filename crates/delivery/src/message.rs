//! Messages of the queues: what is sent, and the records that are received.
//!
//! An attribute of ours counts only on internal queues. [`Message::fits`] checks the limits of SQS.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::deadletter::UNPROCESSED;
use crate::delivery::replay::ReplayEnd;
use crate::delivery::{Delivery, Hold, Publication};
use crate::event::{Event, Input};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::time::duration::HOUR_MS;
use crate::waits;
use crate::wire::{
    ATTRIBUTE_MAX_BYTES, DEADLETTER_ATTRIBUTE, DELIVERY_ATTRIBUTE, PUBLICATION_ATTRIBUTE,
    RECEIVES_ATTRIBUTE, TOPIC_ATTRIBUTE, UNREAD_ATTRIBUTE, subscription_in, write_publication,
    write_replay_end,
};

/// A whole message, with its attributes: 1 MiB.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub const MESSAGE_MAX_BYTES: usize = 1_048_576;
/// The largest event, with the attributes of its message. The rest of an SQS message is for the state of its retries.
pub const EVENT_MAX_BYTES: usize = MESSAGE_MAX_BYTES - ATTRIBUTE_MAX_BYTES;

/// The queues of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueName {
    /// Published events. Whoever publishes writes to it, so no attribute of ours counts there.
    Events,
    /// Deliveries that wait for an attempt, and what was not published by others: parts of large records, events and dead letters for other
    /// topics, replies, replays, and records that wait for the subscriptions.
    Retry,
    /// Due deliveries to destinations that are slow to answer: nobody else waits behind them.
    Slow,
    /// Records that were received again, each handled alone: one may be what crashed a function.
    Isolation,
    /// Dead letters on their way to storage.
    DeadLetter,
    /// Dead letters that storage refused for too long.
    LastResort,
}

impl QueueName {
    /// True if only the functions and operators may send to it: what its messages say about a
    /// delivery is true.
    #[must_use]
    pub fn is_internal(self) -> bool {
        match self {
            Self::Events => false,
            Self::Retry | Self::Slow | Self::Isolation | Self::DeadLetter | Self::LastResort => {
                true
            }
        }
    }
}

/// The attribute of ours that a message carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// `publication`.
    Publication(String),
    /// `delivery`.
    Delivery(String),
    /// `deadletter`.
    DeadLetter(String),
}

impl Attribute {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Publication(_) => PUBLICATION_ATTRIBUTE,
            Self::Delivery(_) => DELIVERY_ATTRIBUTE,
            Self::DeadLetter(_) => DEADLETTER_ATTRIBUTE,
        }
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> &str {
        let (Self::Publication(value) | Self::Delivery(value) | Self::DeadLetter(value)) = self;
        value
    }
}

/// The group of a message in a fair queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageGroup {
    /// That of a subscription.
    Subscription(SubscriptionName),
    /// That of a publisher, who must not take a subscription's.
    Publisher(Option<String>),
    /// As one of our own messages had it.
    Received(Option<String>),
}

impl fmt::Display for MessageGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription(name) => name.fmt(f),
            Self::Publisher(group) | Self::Received(group) => {
                f.write_str(group.as_deref().unwrap_or_default())
            }
        }
    }
}

/// A message to be sent to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The event, as published.
    pub body: Arc<str>,
    /// The `topic` attribute.
    pub topic: Option<TopicName>,
    /// Our attribute.
    pub attribute: Attribute,
    /// Its message group in a fair queue.
    pub group: MessageGroup,
    /// Number of earlier receives of its record; it travels in the `receives` attribute.
    pub receives: u32,
    /// Number of times it was re-enqueued because its attribute could not be read; it travels in the
    /// `unread` attribute.
    pub unread: u32,
    /// It is received after about this long, perhaps earlier.
    pub wait_ms: u64,
}

impl Message {
    /// The end of a replayed delivery, for the dead-letter queue.
    #[must_use]
    pub fn of_replay_end(end: &ReplayEnd, wait_ms: u64) -> Self {
        Self {
            // A queue takes no empty body, and its event is not needed any more.
            body: "{}".into(),
            topic: None,
            attribute: Attribute::DeadLetter(write_replay_end(end)),
            group: MessageGroup::Received(Some(end.replay.job().to_owned())),
            receives: 0,
            unread: 0,
            wait_ms,
        }
    }

    /// A publication that was not received yet: a part of a record, or an event that a delivery led to.
    #[must_use]
    pub fn of_publication(publication: Publication, body: Arc<str>) -> Self {
        Self {
            body,
            topic: publication.topic.as_deref().and_then(|topic| topic.parse().ok()),
            attribute: Attribute::Publication(write_publication(&publication)),
            group: MessageGroup::Publisher(publication.group),
            receives: 0,
            unread: 0,
            wait_ms: 0,
        }
    }

    /// The size that counts against [`MESSAGE_MAX_BYTES`]: body, and name, type and value of each
    /// attribute.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let attributes = self.attributes();
        let sizes =
            attributes.iter().map(|(name, value)| name.len() + "String".len() + value.len());
        self.body.len() + sizes.sum::<usize>()
    }

    /// Its attributes, each a name and a text.
    #[must_use]
    pub fn attributes(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let mut attributes = vec![(self.attribute.name(), self.attribute.value().into())];
        if let Some(topic) = &self.topic {
            attributes.push((TOPIC_ATTRIBUTE, topic.to_string().into()));
        }
        if self.receives > 0 {
            attributes.push((RECEIVES_ATTRIBUTE, self.receives.to_string().into()));
        }
        if self.unread > 0 {
            attributes.push((UNREAD_ATTRIBUTE, self.unread.to_string().into()));
        }
        attributes
    }

    /// True if SQS accepts it: the whole within 1 MiB, our attribute within 16 KiB.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.attribute.value().len() <= ATTRIBUTE_MAX_BYTES
            && self.size_bytes() <= MESSAGE_MAX_BYTES
    }
}

/// One received message of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its SQS message id.
    pub message: String,
    /// The receipt handle, which changes its visibility or deletes it.
    pub receipt: String,
    /// The queue it came from.
    pub queue: QueueName,
    /// Its body; of a CloudEvent in binary mode, its structured form.
    pub body: Arc<str>,
    /// The `topic` attribute, as the publisher wrote it.
    pub topic: Option<String>,
    /// The attribute with one of our names. Whether it is ours depends on the queue:
    /// [`Self::trusted_attribute`].
    pub attribute: Option<Attribute>,
    /// Its message group.
    pub group: Option<String>,
    /// The `traceparent` of the trace that sent it.
    pub traceparent: Option<String>,
    /// SentTimestamp: when it was sent to its first queue.
    pub sent_ms: u64,
    /// When it was first received from this queue.
    pub first_received_ms: u64,
    /// Number of receives from this queue, with this one.
    pub receives: u32,
    /// Number of receives before it moved to this queue: our `receives` attribute.
    pub earlier_receives: u32,
    /// Number of times it was re-enqueued because its attribute could not be read: our `unread` attribute.
    pub unread: u32,
}

impl Record {
    /// Our attribute; none on a queue that others may send to.
    #[must_use]
    pub fn trusted_attribute(&self) -> Option<&Attribute> {
        self.attribute.as_ref().filter(|_| self.queue.is_internal())
    }

    /// The record as a message that waits until a program can read its attribute, which is not changed;
    /// `None` if it is too large to carry the count of its waits.
    #[must_use]
    pub fn unread_message(&self) -> Option<Message> {
        let message = Message {
            body: Arc::clone(&self.body),
            topic: self.topic.as_deref().and_then(|topic| topic.parse().ok()),
            attribute: self.trusted_attribute()?.clone(),
            group: MessageGroup::Received(self.group.clone()),
            receives: 0,
            unread: self.unread.saturating_add(1),
            wait_ms: waits::unread_ms(self.unread),
        };
        message.fits().then_some(message)
    }

    /// True if a record whose attribute cannot be read need not wait any longer.
    #[must_use]
    pub fn has_waited_unread(&self, now_ms: u64) -> bool {
        // What publishers wrote was never ours, and no function reads the last resort.
        let is_ours = self.trusted_attribute().is_some() && self.queue != QueueName::LastResort;
        !is_ours || self.unread_for_ms(now_ms) >= waits::UNREAD_MS
    }

    /// True after an hour. Only records of a newer version wait for so long: an operator has to be told.
    #[must_use]
    pub fn waits_long_unread(&self, now_ms: u64) -> bool {
        self.unread_for_ms(now_ms) >= HOUR_MS
    }

    /// The time for which the record has waited because its attribute cannot be read. One that is too large to be re-enqueued waits hidden,
    /// and is received again.
    fn unread_for_ms(&self, now_ms: u64) -> u64 {
        match self.unread_message() {
            Some(_) => waits::unread_for_ms(self.unread),
            None => now_ms.saturating_sub(self.first_received_ms),
        }
    }

    /// A delivery that stands for all of a record whose attribute cannot be read. It has the name of its subscription, if the
    /// attribute still shows that; else [`UNPROCESSED`] of this topic.
    #[must_use]
    pub fn unprocessed(&self, topic: TopicName) -> Delivery {
        let attribute = self.trusted_attribute().map(Attribute::value);
        let name = attribute.and_then(subscription_in);
        let name = name.unwrap_or_else(|| SubscriptionName { topic, name: UNPROCESSED.to_owned() });
        self.as_publication().delivery(0, Event::recall(&self.body, Input::Auto), name)
    }

    /// The state that travels with its body if it is re-enqueued before it was read.
    #[must_use]
    pub fn as_publication(&self) -> Publication {
        Publication {
            message: self.message.clone(),
            published_ms: self.sent_ms,
            topic: self.topic.clone(),
            group: self.group.clone(),
            traceparent: self.traceparent.clone(),
            hold: Hold::default(),
            part: None,
            onward: None,
        }
    }
}
