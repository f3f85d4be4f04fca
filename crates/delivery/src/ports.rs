//! What the shell promises the flow: a few narrow traits, each with its promise.
//!
//! The flow of the functions is written against these. `adapters` implements them on AWS, HTTP and
//! the machine's clock; the simulation implements them on virtual time with failures on purpose. A
//! contract test runs against every implementation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

use crate::delivery::outcome::Exchange;
use crate::machine::consent::{ConsentKey, Granted};
use crate::request::Request;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::schedule::Jitter;
use crate::subscription::secret::{Keyring, SecretName};
use crate::subscription::sink::{Container, SinkQueue};

/// A whole message, with its attributes: 1 MiB.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub const MESSAGE_MAX_BYTES: usize = 1_048_576;

/// An exchange that had no answer in time and is still open: what becomes of it. Dropping it closes
/// it.
pub type Late = Pin<Box<dyn Future<Output = Exchange> + Send>>;

/// Sends HTTP requests.
///
/// Promise: never fails. Whatever happens is an [`Exchange`], and it ends within the request's
/// timeout.
pub trait SendHttp {
    /// Makes one exchange.
    fn exchange(&self, request: &Request) -> impl Future<Output = Exchange> + Send;

    /// Makes one exchange, and keeps it open when there was no answer in time. Who cannot do that
    /// closes it.
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
    /// Published events, and the parts of large records.
    Events,
    /// Deliveries that wait for their next attempt.
    Retry,
    /// Dead letters on their way to storage.
    DeadLetter,
    /// What storage refused for too long.
    LastResort,
}

/// Which of our attributes a message carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// `delivery`.
    Delivery(String),
    /// `deadletter`.
    DeadLetter(String),
}

/// A message on its way into a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The event, as published.
    pub body: Arc<str>,
    /// The `topic` attribute.
    pub topic: Option<TopicName>,
    /// Our attribute.
    pub attribute: Attribute,
    /// Whose turn it takes in a fair queue.
    pub subscription: SubscriptionName,
    /// Received after about this long, perhaps earlier.
    pub wait_ms: u64,
}

impl Message {
    /// The size that counts against [`MESSAGE_MAX_BYTES`]: body, and name, type and value of each
    /// attribute.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        use crate::wire::{DEADLETTER_ATTRIBUTE, DELIVERY_ATTRIBUTE, TOPIC_ATTRIBUTE};
        const TYPE_BYTES: usize = "String".len();
        let (name, value) = match &self.attribute {
            Attribute::Delivery(value) => (DELIVERY_ATTRIBUTE, value),
            Attribute::DeadLetter(value) => (DEADLETTER_ATTRIBUTE, value),
        };
        let topic = self.topic.as_ref().map_or(0, |topic| {
            TOPIC_ATTRIBUTE.len() + TYPE_BYTES + topic.namespace.len() + 1 + topic.topic.len()
        });
        self.body.len() + name.len() + TYPE_BYTES + value.len() + topic
    }

    /// Whether SQS takes it: the whole within 1 MiB, our attribute within 16 KiB.
    #[must_use]
    pub fn fits(&self) -> bool {
        let (Attribute::Delivery(value) | Attribute::DeadLetter(value)) = &self.attribute;
        value.len() <= crate::wire::ATTRIBUTE_MAX_BYTES && self.size_bytes() <= MESSAGE_MAX_BYTES
    }
}

/// One received message of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its SQS message id.
    pub message: String,
    /// The receipt handle, which changes its visibility or deletes it.
    pub receipt: String,
    /// The name of the queue it came from.
    pub queue: String,
    /// Its body; of a CloudEvent in binary form, its structured form.
    pub body: Arc<str>,
    /// The `topic` attribute, as the publisher wrote it.
    pub topic: Option<String>,
    /// Our `delivery` attribute.
    pub delivery: Option<String>,
    /// Our `deadletter` attribute.
    pub deadletter: Option<String>,
    /// The `traceparent` of the trace that sent it.
    pub traceparent: Option<String>,
    /// SentTimestamp: when it was sent to its first queue.
    pub sent_ms: u64,
    /// When it was first received from this queue.
    pub first_received_ms: u64,
    /// How often it was received, this time included.
    pub receives: u32,
}

/// A message could not be sent; its record has to come again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the queue did not take the message: {0}")]
pub struct QueueError(pub String);

/// Takes messages.
///
/// Promise: what it took is received after about the wait; perhaps early, perhaps twice, but not
/// lost.
pub trait Queue {
    /// Sends a message; `Ok` means the queue has it.
    ///
    /// # Errors
    /// [`QueueError`] when it may not have it.
    fn send(
        &self,
        queue: QueueName,
        message: Message,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;
}

/// Hides a received record for a while, so that a record given back comes again at the right time.
///
/// Promise: best effort. When it fails, the record comes back after the queue's own visibility
/// timeout.
pub trait HideRecord {
    /// Hides the record of this receipt, received from the queue of this name, for so many seconds
    /// from now.
    fn change_visibility(
        &self,
        queue: &str,
        receipt: &str,
        seconds: u32,
    ) -> impl Future<Output = ()> + Send;
}

/// Why a blob was not written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PutError {
    /// Trying again may help.
    #[error("storage did not take the blob: {0}")]
    Refused(String),
    /// The container or queue refuses for good: it does not exist, or we may not write to it.
    #[error("it cannot be written to: {0}")]
    NoSuchContainer(String),
}

/// Writes blobs.
///
/// Promise: the same key twice is one blob, and the first wins; both calls are `Ok`.
pub trait PutBlob {
    /// Writes a JSON blob, if there is none of this key. The container's prefix is already part of
    /// the key.
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

/// Writes dead letters into queues of others.
///
/// Promise: what it took is in the queue; perhaps twice, but not lost.
pub trait PutMessage {
    /// Sends a JSON text to the queue, with the id of its dead letter beside it, so that repeats
    /// can be told.
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

/// A blob that a listing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobName {
    /// Its key, the container's prefix included.
    pub key: String,
    /// Its size.
    pub bytes: u64,
}

/// A blob could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("storage could not be read: {0}")]
pub struct ReadError(pub String);

/// Reads blobs.
///
/// Promise: a listing shows every blob that was written before it began, in the order of the keys'
/// bytes.
pub trait ReadBlobs {
    /// The blobs of a container whose keys begin with its prefix.
    ///
    /// # Errors
    /// [`ReadError`] when storage refuses.
    fn list(
        &self,
        container: &Container,
    ) -> impl Future<Output = Result<Vec<BlobName>, ReadError>> + Send;

    /// A blob's bytes; `None` when there is none.
    ///
    /// # Errors
    /// [`ReadError`] when storage refuses.
    fn get(
        &self,
        bucket: &str,
        key: &str,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, ReadError>> + Send;
}

/// Knows the subscriptions.
///
/// Promise: the last good catalogue. A broken newer one is reported and does not replace it.
pub trait SubscriptionSource {
    /// The catalogue, or why there is none; looks at its source now and then.
    ///
    /// # Errors
    /// What is wrong with the only catalogue there is, for people.
    fn current(&self) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// The newest catalogue, after looking at the source again now; at most once a second.
    ///
    /// # Errors
    /// When the source cannot be read or its newest version is broken: nobody can say then that a
    /// name is missing.
    fn reread(&self) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;
}

/// A secret could not be had; whose it is stands in the text, and what it is does not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret {name} cannot be had: {problem}")]
pub struct SecretError {
    /// Its name.
    pub name: SecretName,
    /// Why.
    pub problem: String,
}

/// Looks up secrets.
///
/// Promise: every name that was asked for is in the keyring, with a value that was right a few
/// minutes ago; no value is ever logged.
pub trait Secrets {
    /// The secrets of these names.
    ///
    /// # Errors
    /// [`SecretError`] for the first that cannot be had.
    fn keyring(
        &self,
        names: &[&SecretName],
    ) -> impl Future<Output = Result<Keyring, SecretError>> + Send;
}

/// Consents could not be read or kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the consent {key} cannot be looked up or kept: {problem}")]
pub struct ConsentError {
    /// Where it is, or should be.
    pub key: String,
    /// Why.
    pub problem: String,
}

/// Remembers which destinations want events.
///
/// Promise: a consent that was kept is found, by whoever kept it at once, by everybody else within
/// half a minute, until somebody removes it. Nobody is ever said to have consented, or not to have,
/// while that cannot be looked up.
pub trait Consents {
    /// The consent of this name, if there is one.
    ///
    /// # Errors
    /// [`ConsentError`] when nobody can say.
    fn consent(
        &self,
        key: &ConsentKey,
    ) -> impl Future<Output = Result<Option<Granted>, ConsentError>> + Send;

    /// Keeps a consent; the newest one of a name counts.
    ///
    /// # Errors
    /// [`ConsentError`] when others may not find it. Here it is found all the same, for as long as
    /// this process lives.
    fn keep_consent(
        &self,
        key: &ConsentKey,
        granted: &Granted,
    ) -> impl Future<Output = Result<(), ConsentError>> + Send;
}

/// Tells the time and waits.
///
/// Promise: milliseconds since 1970-01-01 UTC; a sleep is never cut short.
pub trait Clock {
    /// Now.
    fn now_ms(&self) -> u64;

    /// Waits so long.
    fn sleep(&self, wait_ms: u64) -> impl Future<Output = ()> + Send;
}

/// Rolls the dice for jitter.
pub trait JitterSource {
    /// One roll.
    fn next_jitter(&self) -> Jitter;
}

/// All that the deadletter function needs from outside.
pub trait StoragePorts: Queue + HideRecord + PutBlob + PutMessage + Clock + Send + Sync {}

impl<T> StoragePorts for T where T: Queue + HideRecord + PutBlob + PutMessage + Clock + Send + Sync {}

/// All that the dispatch function needs from outside.
pub trait DispatchPorts:
    StoragePorts + SendHttp + SubscriptionSource + Secrets + Consents + JitterSource
{
}

impl<T> DispatchPorts for T where
    T: StoragePorts + SendHttp + SubscriptionSource + Secrets + Consents + JitterSource
{
}
