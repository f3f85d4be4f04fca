//! Ports: the external needs of the functions, as narrow traits with one promise each.
//!
//! The functions depend on these traits only. `adapters` implements them on AWS, HTTP and the
//! machine's clock. The simulation implements them on virtual time and injects failures. Contract
//! tests run against every implementation.

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

/// The rest of an exchange that is still open after its timeout. Dropping it closes the connection.
pub type Late = Pin<Box<dyn Future<Output = Exchange> + Send>>;

/// Sends HTTP requests.
///
/// Promise: never fails. Every result is an [`Exchange`], and it ends within the request's timeout.
pub trait SendHttp {
    /// Makes one exchange.
    fn exchange(&self, request: &Request) -> impl Future<Output = Exchange> + Send;

    /// Makes one exchange, and keeps it open if there was no response in time. The default closes
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

/// A message could not be sent, so its record has to be redelivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the queue did not take the message: {0}")]
pub struct QueueError(pub String);

/// Sends messages to the deployment's queues, and hides records that return to them.
///
/// Promise: an accepted message is received after approximately its delay. It may be received
/// earlier or twice, but is not lost.
pub trait Queue {
    /// Sends a message. `Ok` means that the queue has it.
    ///
    /// # Errors
    /// [`QueueError`] if it is uncertain whether the queue has it.
    fn send(
        &self,
        queue: QueueName,
        message: Message,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Hides the record with this receipt for this many seconds from now. Best effort: if it fails,
    /// the record is redelivered after the queue's own visibility timeout.
    fn change_visibility(
        &self,
        queue: QueueName,
        receipt: &str,
        seconds: u32,
    ) -> impl Future<Output = ()> + Send;
}

/// The reason why published events may not be in the events queue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishingError {
    /// The queue does not accept such a message.
    #[error("the events queue did not accept the message: {0}")]
    Refused(String),
    /// A later try may succeed. The queue may have the message already.
    #[error("the events queue cannot be reached: {0}")]
    Unavailable(String),
}

/// Publishes events, as any publisher does.
///
/// Promise: an accepted message is in the events queue, perhaps twice. It is not lost.
pub trait PublishEvents {
    /// Sends a message with the events of a topic. Returns its message id.
    ///
    /// # Errors
    /// [`PublishingError`] if it is uncertain whether the queue has it.
    fn publish(
        &self,
        topic: &TopicName,
        body: &str,
    ) -> impl Future<Output = Result<String, PublishingError>> + Send;
}

/// The reason why a blob may not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PutError {
    /// A retry may succeed.
    #[error("storage did not take the blob: {0}")]
    Unavailable(String),
    /// A retry cannot succeed: the container does not exist, refuses the write, or cannot hold this
    /// blob.
    #[error("it cannot be written to: {0}")]
    Permanent(String),
}

/// Writes blobs.
///
/// Promise: two calls with one key create one blob, the first. Both calls return `Ok`.
pub trait PutBlob {
    /// Writes a JSON blob, unless the key exists. The key includes the prefix of the container. The
    /// tag selects the lifecycle rule in a container of the deployment.
    ///
    /// # Errors
    /// [`PutError`] if it is uncertain whether the blob exists.
    fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<BlobTag>,
    ) -> impl Future<Output = Result<(), PutError>> + Send;
}

/// The tag of a blob, which selects a lifecycle rule of the deployment's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobTag {
    /// A dead letter, kept for as long as the deployment specifies.
    DeadLetter,
    /// A paused or disabled delivery, kept until it is replayed, for at most 400 days.
    SetAside,
}

/// Writes dead letters into queues outside the deployment.
///
/// Promise: an accepted message is in the queue, perhaps twice. It is not lost.
pub trait PutMessage {
    /// Sends a JSON text to the queue. The id of its dead letter is an attribute, so that receivers
    /// recognise duplicates.
    ///
    /// # Errors
    /// [`PutError`] if it is uncertain whether the queue has it.
    fn put_message(
        &self,
        queue: &SinkQueue,
        id: Uuid,
        json: &str,
    ) -> impl Future<Output = Result<(), PutError>> + Send;
}

/// Provides the subscriptions.
///
/// Promise: returns the last valid catalogue. If the source keeps versions, that may be one from
/// before this process started. An invalid newer version is reported and does not replace it.
pub trait SubscriptionSource {
    /// Returns the catalogue, and reads its source again from time to time.
    ///
    /// # Errors
    /// The problem, for people, if no valid catalogue was ever read.
    fn current(&self) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// Reads these topics and adds the results to the catalogue. A source that is always read whole
    /// has them already.
    fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> impl Future<Output = Arc<Catalogue>> + Send {
        // A whole catalogue lacks no topic.
        let _ = topics;
        ready(known)
    }

    /// Reads these topics and the settings again, and adds them to the catalogue.
    ///
    /// # Errors
    /// The problem, if the source cannot be read or its newest version is invalid. It is then
    /// unknown whether a name is missing.
    fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// Adopts changes from the news: these topics changed, with the time of the news. They are read
    /// again before their next use. A source that is always read whole detects changes itself.
    fn were_changed(&self, _topics: &BTreeMap<TopicName, u64>) {}
}

/// A secret could not be read. The text has its name, and never its value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret {name} cannot be read: {problem}")]
pub struct SecretError {
    /// Name of the secret.
    pub name: SecretName,
    /// The problem, for people.
    pub problem: String,
}

/// Looks up secrets.
///
/// Promise: the keyring has every requested name, with a value that was current a few minutes ago.
/// No value is ever logged.
pub trait Secrets {
    /// Returns the secrets with these names, for a request to this address.
    ///
    /// # Errors
    /// [`SecretError`] for the first secret that cannot be read.
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
    /// Key of the consent.
    pub key: String,
    /// The problem, for people.
    pub problem: String,
}

/// Stores which destinations consented.
///
/// Promise: this process finds a stored consent at once, and others find it within half a minute,
/// until it is removed. If consents cannot be read, the result is an error and never `None`.
pub trait Consents {
    /// Returns the consent with this key, if there is one.
    ///
    /// # Errors
    /// [`ConsentError`] if consents cannot be read.
    fn consent(
        &self,
        key: &ConsentKey,
    ) -> impl Future<Output = Result<Option<Granted>, ConsentError>> + Send;

    /// Stores a consent, which replaces older ones with this key.
    ///
    /// # Errors
    /// [`ConsentError`] if other processes may not find it. This process still finds it.
    fn keep_consent(
        &self,
        key: &ConsentKey,
        granted: &Granted,
    ) -> impl Future<Output = Result<(), ConsentError>> + Send;
}

/// Proves the identity of this deployment to destinations and AWS services.
///
/// Promise: each call makes a new request, so callers cache the results. No error contains a
/// credential.
pub trait AwsIdentity {
    /// Checks that requests to this destination may prove the identity. In a function, its template
    /// decides.
    ///
    /// # Errors
    /// The reason for a refusal, for people.
    fn may_show(&self, _to: &Destination) -> Result<(), String> {
        Ok(())
    }

    /// Returns the credentials that sign requests to destinations, with the end of their use.
    ///
    /// # Errors
    /// The problem, for people.
    fn signing_credentials(
        &self,
    ) -> impl Future<Output = Result<Token<AwsCredentials>, String>> + Send;

    /// Returns a token in which AWS confirms the identity of the caller, with the end of its use.
    ///
    /// # Errors
    /// The problem, for people.
    fn web_identity_token(
        &self,
        of: &WebIdentity,
    ) -> impl Future<Output = Result<Token, String>> + Send;
}

/// Reads the time and sleeps.
///
/// Promise: milliseconds since 1970-01-01 UTC; a sleep is never too short.
pub trait Clock {
    /// Returns the current time in milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;

    /// Waits for this many milliseconds.
    fn sleep(&self, wait_ms: u64) -> impl Future<Output = ()> + Send;
}

/// Provides randomness for jitter.
pub trait JitterSource {
    /// Returns the next random value.
    fn next_jitter(&self) -> Jitter;
}

/// Looks up the keys that publishers send.
///
/// Promise: values that were current a few minutes ago, none of which is ever logged. An unreadable
/// key does not affect the others.
pub trait PublisherKeys {
    /// Returns the key of each name, in their order, or the reason why it cannot be read.
    fn publisher_keys(
        &self,
        names: &[SecretName],
    ) -> impl Future<Output = Vec<Result<Secret, SecretError>>> + Send;
}

/// The ports for requests to destinations, used by dispatch and by commands that send requests
/// themselves.
pub trait RequestPorts: Clock + Send + Sync {
    /// See [`Self::http`].
    type Http: SendHttp + Sync;
    /// See [`Self::secrets`].
    type Secrets: Secrets + Sync;
    /// See [`Self::identity`].
    type Identity: AwsIdentity + Sync;

    /// Returns the sender of every request that leaves AWS.
    fn http(&self) -> &Self::Http;
    /// Returns the source of the secrets that requests contain or are signed with.
    fn secrets(&self) -> &Self::Secrets;
    /// Returns the AWS role whose credentials and tokens requests contain.
    fn identity(&self) -> &Self::Identity;
}

/// The ports that dispatch and deadletter share.
pub trait StoragePorts: Clock + Send + Sync {
    /// See [`Self::queues`].
    type Queues: Queue + Sync;
    /// See [`Self::blobs`].
    type Blobs: PutBlob + Sync;
    /// See [`Self::sinks`].
    type Sinks: PutMessage + Sync;

    /// Returns the queues of the deployment.
    fn queues(&self) -> &Self::Queues;
    /// Returns the containers of dead letters.
    fn blobs(&self) -> &Self::Blobs;
    /// Returns the queues outside the deployment that receive dead letters.
    fn sinks(&self) -> &Self::Sinks;
}

/// All external needs of dispatch.
pub trait DispatchPorts: StoragePorts + RequestPorts + JitterSource {
    /// See [`Self::subscriptions`].
    type Subscriptions: SubscriptionSource + Sync;
    /// See [`Self::consents`].
    type Consents: Consents + Sync;
    /// See [`Self::table`].
    type Table: Table + Sync;

    /// Returns the source of topics and subscriptions.
    fn subscriptions(&self) -> &Self::Subscriptions;
    /// Returns the consents of destinations.
    fn consents(&self) -> &Self::Consents;
    /// Returns the table that all processes of the deployment share.
    fn table(&self) -> &Self::Table;
}

/// All external needs of ingress.
pub trait IngressPorts: Clock + Send + Sync {
    /// See [`Self::events`].
    type Events: PublishEvents + Sync;
    /// See [`Self::keys`].
    type Keys: PublisherKeys + Sync;

    /// Returns the events queue.
    fn events(&self) -> &Self::Events;
    /// Returns the keys, one of which a request has to contain.
    fn keys(&self) -> &Self::Keys;
}
