//! Messages that are sent to queues, and records that are received from them.
//!
//! Attributes of our own programs are trusted only on internal queues
//! ([`Record::trusted_attribute`]). [`Message::fits`] checks the limits of SQS.

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

/// Maximum size of a message with its attributes: 1 MiB.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub const MESSAGE_MAX_BYTES: usize = 1_048_576;
/// Maximum size of an event together with all attributes of its message, except the state of
/// retries. The remaining 16 KiB are reserved for that state.
pub const EVENT_MAX_BYTES: usize = MESSAGE_MAX_BYTES - ATTRIBUTE_MAX_BYTES;

/// The SQS queues of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueName {
    /// Published events. Publishers write to this queue, so attributes of our own programs are not
    /// trusted there.
    Events,
    /// Deliveries that wait for an attempt, and messages that no publisher sends:
    /// - parts of large records
    /// - events and dead letters for other topics
    /// - replies and replays
    /// - records whose subscriptions could not be read yet
    Retry,
    /// Due deliveries to slow destinations, so that no other delivery waits behind them.
    Slow,
    /// Records that were received again. Each is processed alone, because it may have crashed a
    /// function.
    Isolation,
    /// Dead letters that are about to be stored.
    DeadLetter,
    /// Dead letters that storage has refused for too long.
    LastResort,
}

impl QueueName {
    /// True if only the functions and operators may send to the queue, so that its attributes are
    /// trusted.
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

/// A message attribute that only our own programs write. Each [`Message`] has exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// The attribute `publication`: the state of a published record.
    Publication(String),
    /// The attribute `delivery`: the state of one delivery.
    Delivery(String),
    /// The attribute `deadletter`: a dead letter, or the result of a replay.
    DeadLetter(String),
}

impl Attribute {
    /// Returns the name of the message attribute.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Publication(_) => PUBLICATION_ATTRIBUTE,
            Self::Delivery(_) => DELIVERY_ATTRIBUTE,
            Self::DeadLetter(_) => DEADLETTER_ATTRIBUTE,
        }
    }

    /// Returns the value of the message attribute.
    #[must_use]
    pub fn value(&self) -> &str {
        let (Self::Publication(value) | Self::Delivery(value) | Self::DeadLetter(value)) = self;
        value
    }
}

/// The message group of a message in an SQS fair queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageGroup {
    /// The group consists of the deliveries of a subscription.
    Subscription(SubscriptionName),
    /// The group that a publisher set. It never has the same id as the group of a subscription, so
    /// that a publisher cannot use up the fair share of a subscription.
    Publisher(Option<String>),
    /// The unchanged group of a message that one of our programs sent.
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

/// A message to send to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The body of the message: the text of its event or events. For the result of a replay, it is
    /// `{}`.
    pub body: Arc<str>,
    /// The value of the `topic` attribute.
    pub topic: Option<TopicName>,
    /// The attribute that only our own programs write, with the state of the message.
    pub attribute: Attribute,
    /// The message group in a fair queue.
    pub group: MessageGroup,
    /// Number of times that the record was received from earlier queues, sent in the attribute
    /// `receives`.
    pub receives: u32,
    /// Number of times that the record was re-enqueued because its attribute could not be parsed,
    /// sent in the attribute `unread`.
    pub unread: u32,
    /// Approximate delay in milliseconds until the message is received. It may be received earlier.
    pub wait_ms: u64,
}

impl Message {
    /// Creates the message with the result of a replayed delivery, for the dead-letter queue.
    #[must_use]
    pub fn of_replay_end(end: &ReplayEnd, wait_ms: u64) -> Self {
        Self {
            // SQS refuses an empty body, and the result does not contain the event.
            body: "{}".into(),
            topic: None,
            attribute: Attribute::DeadLetter(write_replay_end(end)),
            group: MessageGroup::Received(Some(end.replay.job().to_owned())),
            receives: 0,
            unread: 0,
            wait_ms,
        }
    }

    /// Creates a message for a publication that has not been in a queue yet: a part of a record, or
    /// an event that follows from a delivery.
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

    /// Returns the size in bytes that counts against [`MESSAGE_MAX_BYTES`]: the body, and the name,
    /// type and value of each attribute.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let attributes = self.attributes();
        let sizes =
            attributes.iter().map(|(name, value)| name.len() + "String".len() + value.len());
        self.body.len() + sizes.sum::<usize>()
    }

    /// Returns all message attributes as pairs of name and value.
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

    /// True if SQS accepts the message. The limits are 1 MiB in total, and 16 KiB for the attribute
    /// of our programs.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.attribute.value().len() <= ATTRIBUTE_MAX_BYTES
            && self.size_bytes() <= MESSAGE_MAX_BYTES
    }
}

/// A message that was received from a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Message id that SQS assigned.
    pub message: String,
    /// Receipt handle, with which the visibility timeout is changed or the message is deleted.
    pub receipt: String,
    /// Queue from which the record was received.
    pub queue: QueueName,
    /// The body of the message. For a CloudEvent in binary mode, it is the structured form.
    pub body: Arc<str>,
    /// The value of the attribute `topic`, as the publisher wrote it.
    pub topic: Option<String>,
    /// The attribute `publication`, `delivery` or `deadletter`, if the message has one. Use
    /// [`Self::trusted_attribute`], because a publisher may have forged it.
    pub attribute: Option<Attribute>,
    /// Message group in a fair queue; `None` if the sender set none.
    pub group: Option<String>,
    /// The trace of the sender (W3C `traceparent`).
    pub traceparent: Option<String>,
    /// Time at which the message was sent to its first queue (SentTimestamp), in milliseconds since
    /// 1970.
    pub sent_ms: u64,
    /// Time of the first receive from this queue, in milliseconds since 1970.
    pub first_received_ms: u64,
    /// Number of receives from this queue, including this one.
    pub receives: u32,
    /// Number of receives from earlier queues, as the attribute `receives` states it.
    pub earlier_receives: u32,
    /// Number of times that the record was re-enqueued because its attribute could not be parsed,
    /// as the attribute `unread` states it.
    pub unread: u32,
}

impl Record {
    /// Returns the attribute that our programs set on a message. Returns `None` on a queue to which
    /// publishers may send, because they could set it too.
    #[must_use]
    pub fn trusted_attribute(&self) -> Option<&Attribute> {
        self.attribute.as_ref().filter(|_| self.queue.is_internal())
    }

    /// Creates the message that re-enqueues the record because its attribute cannot be parsed yet.
    /// Returns `None` if the attribute is not trusted, or if the record is too large for the
    /// additional counter.
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

    /// True if a record with an unreadable attribute is now handled as unprocessed, after a wait of
    /// [`waits::UNREAD_MS`]. A record whose attribute is not trusted does not wait.
    #[must_use]
    pub fn has_waited_unread(&self, now_ms: u64) -> bool {
        // Attributes on publishers' queues are never ours, and no function reads the last-resort
        // queue.
        let is_ours = self.trusted_attribute().is_some() && self.queue != QueueName::LastResort;
        !is_ours || self.unread_for_ms(now_ms) >= waits::UNREAD_MS
    }

    /// True if the record has waited for an hour. Only a record that a newer version wrote waits
    /// that long. An operator must then be notified.
    #[must_use]
    pub fn waits_long_unread(&self, now_ms: u64) -> bool {
        self.unread_for_ms(now_ms) >= HOUR_MS
    }

    /// Returns the time in milliseconds that the record has waited for a program that can parse its
    /// attribute. A record that is too large to be re-enqueued stays in its queue, and is received
    /// repeatedly.
    fn unread_for_ms(&self, now_ms: u64) -> u64 {
        match self.unread_message() {
            Some(_) => waits::unread_for_ms(self.unread),
            None => now_ms.saturating_sub(self.first_received_ms),
        }
    }

    /// Creates one delivery for the whole of an unreadable record. If its attribute names a
    /// subscription, the delivery belongs to that subscription, otherwise to [`UNPROCESSED`] of
    /// `topic`.
    #[must_use]
    pub fn unprocessed(&self, topic: TopicName) -> Delivery {
        let attribute = self.trusted_attribute().map(Attribute::value);
        let name = attribute.and_then(subscription_in);
        let name = name.unwrap_or_else(|| SubscriptionName { topic, name: UNPROCESSED.to_owned() });
        self.as_publication().delivery(0, Event::recall(&self.body, Input::Auto), name)
    }

    /// Creates the state of publication from the metadata of the record. If the record is
    /// re-enqueued before its deliveries are created, the new message contains this state.
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
