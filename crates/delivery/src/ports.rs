//! Ports: what the functions need from outside, as narrow traits, each with a promise.
//!
//! The functions are written against these. `adapters` implements them on AWS, HTTP and the
//! machine's clock; the simulation implements them on virtual time and injects failures. A contract
//! test runs against every implementation.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

use crate::delivery::outcome::Exchange;
use crate::delivery::replay::ReplayEnd;
use crate::delivery::{Hold, Publication};
use crate::machine::consent::{ConsentKey, Granted};
use crate::request::Request;
use crate::request::token::Token;
use crate::subscription::Destination;
use crate::subscription::auth::identity::WebIdentity;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use crate::subscription::sink::SinkQueue;
use crate::table::HasTable;
use crate::waits::{self, Jitter};
use crate::wire::{
    ATTRIBUTE_MAX_BYTES, DEADLETTER_ATTRIBUTE, DELIVERY_ATTRIBUTE, PUBLICATION_ATTRIBUTE,
    RECEIVES_ATTRIBUTE, TOPIC_ATTRIBUTE, UNREAD_ATTRIBUTE, write_replay_end,
};
use url::Url;

/// A whole message, with its attributes: 1 MiB.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub const MESSAGE_MAX_BYTES: usize = 1_048_576;
/// The largest event, with the attributes of its message. The rest of an SQS message is for the state of its retries.
pub const EVENT_MAX_BYTES: usize = MESSAGE_MAX_BYTES - ATTRIBUTE_MAX_BYTES;

/// The rest of an exchange without an answer in time that is still open. Dropping it closes the
/// connection.
pub type Late = Pin<Box<dyn Future<Output = Exchange> + Send>>;

/// Sends HTTP requests.
///
/// Promise: never fails. Whatever happens is an [`Exchange`], and it ends within the request's
/// timeout.
pub trait SendHttp {
    /// Makes one exchange.
    fn exchange(&self, request: &Request) -> impl Future<Output = Exchange> + Send;

    /// Makes one exchange, and keeps it open when there was no answer in time. The default closes
    /// it.
    fn exchange_or_late(
        &self,
        request: &Request,
    ) -> impl Future<Output = (Exchange, Option<Late>)> + Send
    where
        Self: Sync,
    {
        async { (self.exchange(request).await, None) }
    }
}

/// The queues of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueName {
    /// Published events. Whoever publishes writes to it, so no attribute of ours counts there.
    Events,
    /// What was not attempted yet and had to be re-enqueued: the deliveries of large records,
    /// replies, and records that wait for the subscriptions.
    FanOut,
    /// Deliveries waiting for their next attempt.
    Retry,
    /// Due deliveries to destinations that are slow to answer: nobody else waits behind them.
    Slow,
    /// Records that were received again, each handled alone: one may be what crashed a function.
    Isolation,
    /// Dead letters on their way to storage.
    DeadLetter,
    /// Records that the events queue gave up.
    Unprocessed,
    /// Dead letters that storage refused for too long.
    LastResort,
}

impl QueueName {
    /// Whether only the functions and operators may send to it: what its messages say about a
    /// delivery is true.
    #[must_use]
    pub fn is_internal(self) -> bool {
        match self {
            Self::Events | Self::Unprocessed => false,
            Self::FanOut
            | Self::Retry
            | Self::Slow
            | Self::Isolation
            | Self::DeadLetter
            | Self::LastResort => true,
        }
    }
}

/// Which of our attributes a message carries.
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
    /// How often its record was received before; it travels in the `receives` attribute.
    pub receives: u32,
    /// How often it was re-enqueued because its attribute could not be read; it travels in the
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

    /// Whether SQS accepts it: the whole within 1 MiB, our attribute within 16 KiB.
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
    /// How often it was received from this queue, this time included.
    pub receives: u32,
    /// How often it was received before it moved to this queue: our `receives` attribute.
    pub earlier_receives: u32,
    /// How often it was re-enqueued because its attribute could not be read: our `unread` attribute.
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

    /// Whether a record whose attribute cannot be read need not wait any longer. One that is too large
    /// to be re-enqueued waits hidden, and is received again.
    #[must_use]
    pub fn has_waited_unread(&self, now_ms: u64) -> bool {
        // What publishers wrote was never ours, and no function reads the last resort.
        if self.trusted_attribute().is_none() || self.queue == QueueName::LastResort {
            return true;
        }
        match self.unread_message() {
            Some(_) => waits::has_waited_unread(self.unread),
            None => now_ms.saturating_sub(self.first_received_ms) >= waits::UNREAD_MS,
        }
    }

    /// What travels with its body if it is re-enqueued before it was read.
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
            dead_letters_ms: None,
            onward: None,
        }
    }
}

/// A message could not be sent; its record has to be redelivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the queue did not take the message: {0}")]
pub struct QueueError(pub String);

/// Sends messages to the deployment's queues.
///
/// Promise: an accepted message is received after about the wait; perhaps early, perhaps twice, but
/// not lost.
pub trait Queue {
    /// Sends a message; `Ok` means the queue has it.
    ///
    /// # Errors
    /// [`QueueError`] when it is not certain that the queue has it.
    fn send(
        &self,
        queue: QueueName,
        message: Message,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;
}

/// Why published events are not in the events queue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishingError {
    /// The queue takes no such message.
    #[error("the events queue did not accept the message: {0}")]
    Refused(String),
    /// It may take it later, or has it already.
    #[error("the events queue cannot be reached: {0}")]
    Unavailable(String),
}

/// Publishes events, as any publisher does.
///
/// Promise: an accepted message is in the events queue; perhaps twice, but not lost.
pub trait PublishEvents {
    /// Sends a message with the events of a topic; returns its id.
    ///
    /// # Errors
    /// [`PublishingError`] when it is not certain that the queue has it.
    fn publish(
        &self,
        topic: &TopicName,
        body: &str,
    ) -> impl Future<Output = Result<String, PublishingError>> + Send;
}

/// Changes the visibility of a received record, so that a record returned to the queue is
/// redelivered at the right time.
///
/// Promise: best effort. When it fails, the record is redelivered after the queue's own visibility
/// timeout.
pub trait ChangeVisibility {
    /// Hides the record with this receipt, received from this queue, for this many seconds from
    /// now.
    fn change_visibility(
        &self,
        queue: QueueName,
        receipt: &str,
        seconds: u32,
    ) -> impl Future<Output = ()> + Send;
}

/// Why a blob was not written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PutError {
    /// A retry may succeed.
    #[error("storage did not take the blob: {0}")]
    Unavailable(String),
    /// Repeating will not help: it does not exist, we may not write to it, or it cannot hold this.
    #[error("it cannot be written to: {0}")]
    Permanent(String),
}

/// Writes blobs.
///
/// Promise: the same key twice is one blob, and the first wins; both calls are `Ok`.
pub trait PutBlob {
    /// Writes a JSON blob, unless the key exists. The container's prefix is already part of the
    /// key.
    ///
    /// # Errors
    /// [`PutError`] when it is not certain that the blob is there.
    fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<(), PutError>> + Send;
}

/// Writes dead letters into queues outside the deployment.
///
/// Promise: an accepted message is in the queue; perhaps twice, but not lost.
pub trait PutMessage {
    /// Sends a JSON text to the queue, with the id of its dead letter as an attribute, so that
    /// duplicates can be recognised.
    ///
    /// # Errors
    /// [`PutError`] when it is not certain that the queue has it.
    fn put_message(
        &self,
        queue: &SinkQueue,
        id: Uuid,
        json: &str,
    ) -> impl Future<Output = Result<(), PutError>> + Send;
}

/// Provides the subscriptions.
///
/// Promise: the last valid catalogue, also one from before this process started where versions are
/// kept. An invalid newer one is reported and does not replace it.
pub trait SubscriptionSource {
    /// The catalogue; reads its source again from time to time.
    ///
    /// # Errors
    /// What is wrong, for people, when no valid catalogue was ever read.
    fn current(&self) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// Reads these topics, and adds what was found of each to what is known. A source that is read whole has them already.
    fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> impl Future<Output = Arc<Catalogue>> + Send {
        // Nothing is missing, whichever they are.
        let _ = topics;
        ready(known)
    }

    /// Reads these topics and the settings again, and adds them to what is known.
    ///
    /// # Errors
    /// When the source cannot be read or its newest version is invalid: then it is unknown whether
    /// a name is missing.
    fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// Takes note of the news: these topics were changed, and when that was told. They are requested again before they are
    /// used. A source that is read whole finds out by itself.
    fn were_changed(&self, _topics: &BTreeMap<TopicName, u64>) {}
}

/// A secret could not be read; the text has its name, never its value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret {name} cannot be read: {problem}")]
pub struct SecretError {
    /// Its name.
    pub name: SecretName,
    /// Why.
    pub problem: String,
}

/// Looks up secrets.
///
/// Promise: every requested name is in the keyring, with a value that was current a few minutes
/// ago; no value is ever logged.
pub trait Secrets {
    /// The secrets of these names, for a request to this address.
    ///
    /// # Errors
    /// [`SecretError`] for the first that cannot be read.
    fn keyring(
        &self,
        names: &[&SecretName],
        to: &Url,
    ) -> impl Future<Output = Result<Keyring, SecretError>> + Send;
}

/// A consent could not be read or stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the consent {key} cannot be read or stored: {problem}")]
pub struct ConsentError {
    /// Its key.
    pub key: String,
    /// Why.
    pub problem: String,
}

/// Stores which destinations consented.
///
/// Promise: a stored consent is found by this process at once, by others within half a minute,
/// until it is removed. While consents cannot be read, the result is an error, never "none".
pub trait Consents {
    /// The consent with this key, if there is one.
    ///
    /// # Errors
    /// [`ConsentError`] when it cannot be read.
    fn consent(
        &self,
        key: &ConsentKey,
    ) -> impl Future<Output = Result<Option<Granted>, ConsentError>> + Send;

    /// Stores a consent; the newest one of a key counts.
    ///
    /// # Errors
    /// [`ConsentError`] when other processes may not find it. This process still finds it.
    fn keep_consent(
        &self,
        key: &ConsentKey,
        granted: &Granted,
    ) -> impl Future<Output = Result<(), ConsentError>> + Send;
}

/// Shows other services of AWS who this deployment is.
///
/// Promise: asks anew with each call, so whoever calls keeps what it gets. No error quotes a credential.
pub trait AwsIdentity {
    /// Whether requests to this destination may show it; a function's may, as its template allows.
    ///
    /// # Errors
    /// Why not, for people.
    fn may_show(&self, _to: &Destination) -> Result<(), String> {
        Ok(())
    }

    /// Credentials that requests to destinations are signed with, and until when they are used.
    ///
    /// # Errors
    /// Why there are none, for people.
    fn signing_credentials(
        &self,
    ) -> impl Future<Output = Result<Token<AwsCredentials>, String>> + Send;

    /// A token in which AWS says who is calling, and until when it is used.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn web_identity_token(
        &self,
        of: &WebIdentity,
    ) -> impl Future<Output = Result<Token, String>> + Send;
}

/// Reads the time and sleeps.
///
/// Promise: milliseconds since 1970-01-01 UTC; a sleep is never too short.
pub trait Clock {
    /// Now.
    fn now_ms(&self) -> u64;

    /// Waits this long.
    fn sleep(&self, wait_ms: u64) -> impl Future<Output = ()> + Send;
}

/// Provides randomness for jitter.
pub trait JitterSource {
    /// The next random value.
    fn next_jitter(&self) -> Jitter;
}

/// Looks up the keys that publishers show.
///
/// Promise: values that were current a few minutes ago; none is ever logged. That one cannot be read says nothing
/// about the others.
pub trait PublisherKeys {
    /// The key of each name, in their order, or why it cannot be read.
    fn publisher_keys(
        &self,
        names: &[SecretName],
    ) -> impl Future<Output = Vec<Result<Secret, SecretError>>> + Send;
}

/// Everything that the ingress function needs from outside.
pub trait IngressPorts: PublishEvents + PublisherKeys + Clock + Send + Sync {}

impl<T> IngressPorts for T where T: PublishEvents + PublisherKeys + Clock + Send + Sync {}

/// Everything that the deadletter function needs from outside.
pub trait StoragePorts:
    Queue + ChangeVisibility + PutBlob + PutMessage + Clock + Send + Sync
{
}

impl<T> StoragePorts for T where
    T: Queue + ChangeVisibility + PutBlob + PutMessage + Clock + Send + Sync
{
}

/// Everything that the dispatch function needs from outside.
pub trait DispatchPorts:
    StoragePorts
    + SendHttp
    + SubscriptionSource
    + Secrets
    + AwsIdentity
    + Consents
    + HasTable
    + JitterSource
{
}

impl<T> DispatchPorts for T where
    T: StoragePorts
        + SendHttp
        + SubscriptionSource
        + Secrets
        + AwsIdentity
        + Consents
        + HasTable
        + JitterSource
{
}
