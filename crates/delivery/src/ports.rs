//! Ports: what the functions need from outside, as narrow traits, each with a promise.
//!
//! The functions are written against these. `adapters` implements them on AWS, HTTP and the
//! machine's clock; the simulation implements them on virtual time and injects failures. A contract
//! test runs against every implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use url::Url;
use uuid::Uuid;

use crate::delivery::outcome::Exchange;
use crate::machine::consent::{ConsentKey, Granted};
pub use crate::message::{
    Attribute, EVENT_MAX_BYTES, MESSAGE_MAX_BYTES, Message, MessageGroup, QueueName, Record,
};
use crate::request::Request;
use crate::request::token::Token;
use crate::subscription::Destination;
use crate::subscription::auth::identity::WebIdentity;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::TopicName;
use crate::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use crate::subscription::sink::SinkQueue;
use crate::table::Table;
use crate::waits::Jitter;

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

/// A message could not be sent; its record has to be redelivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the queue did not take the message: {0}")]
pub struct QueueError(pub String);

/// Sends messages to the deployment's queues, and hides records that return to them.
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

    /// Hides the record with this receipt, received from this queue, for this many seconds from
    /// now. Best effort: if it fails, the record is redelivered after the queue's own visibility timeout.
    fn change_visibility(
        &self,
        queue: QueueName,
        receipt: &str,
        seconds: u32,
    ) -> impl Future<Output = ()> + Send;
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
    /// key. A container of the deployment has rules that expire blobs by their tag.
    ///
    /// # Errors
    /// [`PutError`] when it is not certain that the blob is there.
    fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<BlobTag>,
    ) -> impl Future<Output = Result<(), PutError>> + Send;
}

/// How long a blob is kept in the container of the deployment: its rules have these tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobTag {
    /// A dead letter: as long as the deployment says.
    DeadLetter,
    /// A delivery that a person has stopped: until it is replayed, for 400 days at most.
    SetAside,
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

/// The ports of requests to destinations: of dispatch, and of commands that send requests themselves.
pub trait RequestPorts: Clock + Send + Sync {
    /// See [`Self::http`].
    type Http: SendHttp + Sync;
    /// See [`Self::secrets`].
    type Secrets: Secrets + Sync;
    /// See [`Self::identity`].
    type Identity: AwsIdentity + Sync;

    /// The sender of every request that leaves AWS.
    fn http(&self) -> &Self::Http;
    /// The secrets that requests carry or are signed with.
    fn secrets(&self) -> &Self::Secrets;
    /// The role in AWS whose credentials and tokens requests show.
    fn identity(&self) -> &Self::Identity;
}

/// The ports that dispatch and deadletter have in common.
pub trait StoragePorts: Clock + Send + Sync {
    /// See [`Self::queues`].
    type Queues: Queue + Sync;
    /// See [`Self::blobs`].
    type Blobs: PutBlob + Sync;
    /// See [`Self::sinks`].
    type Sinks: PutMessage + Sync;

    /// The queues of the deployment.
    fn queues(&self) -> &Self::Queues;
    /// The containers that dead letters are stored in.
    fn blobs(&self) -> &Self::Blobs;
    /// Queues outside the deployment that receive dead letters.
    fn sinks(&self) -> &Self::Sinks;
}

/// Everything that dispatch reaches outside of its process.
pub trait DispatchPorts: StoragePorts + RequestPorts + JitterSource {
    /// See [`Self::subscriptions`].
    type Subscriptions: SubscriptionSource + Sync;
    /// See [`Self::consents`].
    type Consents: Consents + Sync;
    /// See [`Self::table`].
    type Table: Table + Sync;

    /// The topics and subscriptions that people have applied.
    fn subscriptions(&self) -> &Self::Subscriptions;
    /// The destinations that agreed to receive events.
    fn consents(&self) -> &Self::Consents;
    /// The table that all processes of the deployment share.
    fn table(&self) -> &Self::Table;
}

/// Everything that ingress reaches outside of its process.
pub trait IngressPorts: Clock + Send + Sync {
    /// See [`Self::events`].
    type Events: PublishEvents + Sync;
    /// See [`Self::keys`].
    type Keys: PublisherKeys + Sync;

    /// The events queue.
    fn events(&self) -> &Self::Events;
    /// The keys that requests of publishers have to show.
    fn keys(&self) -> &Self::Keys;
}
