//! Ports: the external needs of the functions, as narrow traits with one promise each.
//!
//! The functions depend only on these traits. `adapters` implements them with AWS, HTTP and the
//! machine's clock. The simulation implements them with virtual time and injects failures. Contract
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

/// The rest of an exchange that continues after its timeout. Dropping it closes the connection.
pub type Late = Pin<Box<dyn Future<Output = Exchange> + Send>>;

/// Sends HTTP requests.
///
/// Promise: a request never fails with an error. Every result is an [`Exchange`], and is returned
/// within the request's timeout.
pub trait SendHttp {
    /// Sends a request and waits for the response.
    fn exchange(&self, request: &Request) -> impl Future<Output = Exchange> + Send;

    /// Sends a request. If there is no response in time, returns the rest of the exchange as the
    /// second value. The default implementation closes the connection instead.
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

/// Error returned if a message could not be sent. Its record must then be received again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the queue did not accept the message: {0}")]
pub struct QueueError(pub String);

/// Sends messages to the deployment's queues, and delays records that are received again.
///
/// Promise: an accepted message is received after approximately its delay. It may be received
/// earlier or twice, but is not lost.
pub trait Queue {
    /// Sends a message. `Ok` means that the queue has accepted it.
    ///
    /// # Errors
    /// [`QueueError`] if it is uncertain whether the queue has accepted the message.
    fn send(
        &self,
        queue: QueueName,
        message: Message,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Sets the visibility timeout of the record with this receipt to this many seconds from now.
    /// Errors are ignored: the record is then received again after the queue's own visibility
    /// timeout.
    fn change_visibility(
        &self,
        queue: QueueName,
        receipt: &str,
        seconds: u32,
    ) -> impl Future<Output = ()> + Send;
}

/// The reason why published events may be missing in the events queue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishingError {
    /// The queue does not accept this message, so sending it again would fail too.
    #[error("the events queue did not accept the message: {0}")]
    Refused(String),
    /// Sending the message again may succeed. The queue may already have accepted it.
    #[error("the events queue cannot be reached: {0}")]
    Unavailable(String),
}

/// Publishes events to the events queue, as any publisher does.
///
/// Promise: an accepted message is in the events queue once or twice. It is not lost.
pub trait PublishEvents {
    /// Sends a message with events of a topic, and returns its message id.
    ///
    /// # Errors
    /// [`PublishingError`] if it is uncertain whether the queue has accepted the message.
    fn publish(
        &self,
        topic: &TopicName,
        body: &str,
    ) -> impl Future<Output = Result<String, PublishingError>> + Send;
}

/// The reason why a blob or message may not have been written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PutError {
    /// The write may succeed if it is repeated.
    #[error("storage did not accept the blob: {0}")]
    Unavailable(String),
    /// A repeated write cannot succeed: the container does not exist, refuses the write, or cannot
    /// hold this blob.
    #[error("the storage cannot be written to: {0}")]
    Permanent(String),
}

/// Writes blobs into containers.
///
/// Promise: two calls with the same key create a single blob, with the content of the first call.
/// Both calls return `Ok`.
pub trait PutBlob {
    /// Writes a JSON blob, unless a blob with this key exists. The key includes the prefix of the
    /// container. The tag selects the lifecycle rule in a container of the deployment.
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

/// The tag of a blob, which selects a lifecycle rule in the deployment's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobTag {
    /// The blob is a dead letter. It is kept for as long as the deployment specifies.
    DeadLetter,
    /// The blob is a delivery that was stopped because its subscription was paused or its
    /// destination disabled. The blob expires after 400 days.
    SetAside,
}

/// Sends dead letters to queues outside the deployment.
///
/// Promise: an accepted message is in the queue once or twice. It is not lost.
pub trait PutMessage {
    /// Sends a JSON text to the queue. The id of the dead letter is a message attribute, so that
    /// receivers recognise duplicates.
    ///
    /// # Errors
    /// [`PutError`] if it is uncertain whether the queue has accepted the message.
    fn put_message(
        &self,
        queue: &SinkQueue,
        id: Uuid,
        json: &str,
    ) -> impl Future<Output = Result<(), PutError>> + Send;
}

/// Provides topics and subscriptions.
///
/// Promise: the result is the last valid catalogue. If the source keeps versions, the last valid
/// one may be older than this process. An invalid newer version is reported and does not replace
/// it.
pub trait SubscriptionSource {
    /// Returns the catalogue. From time to time, the source is read again.
    ///
    /// # Errors
    /// A description of the problem, for people, if no valid catalogue was ever read.
    fn current(&self) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// Returns the catalogue with these topics, which are read if they are missing. The default
    /// implementation is for sources that always read all topics.
    fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> impl Future<Output = Arc<Catalogue>> + Send {
        // The catalogue already has all topics.
        let _ = topics;
        ready(known)
    }

    /// Reads these topics and the settings again, and returns the catalogue with them.
    ///
    /// # Errors
    /// A description of the problem, if the source cannot be read or its newest version is invalid.
    /// It is then unknown whether a topic exists.
    fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> impl Future<Output = Result<Arc<Catalogue>, String>> + Send;

    /// Records that other processes changed these topics, with the times of the changes. The topics
    /// are read again before their next use. The default does nothing, for sources that detect
    /// changes themselves.
    fn were_changed(&self, _topics: &BTreeMap<TopicName, u64>) {}
}

/// Error returned if a secret could not be read. It contains the name of the secret, and never its
/// value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret {name} cannot be read: {problem}")]
pub struct SecretError {
    /// Name of the secret that could not be read.
    pub name: SecretName,
    /// Description of the problem, for people, without the value.
    pub problem: String,
}

/// Looks up secrets for requests to destinations.
///
/// Promise: the keyring has every requested secret, with a value that was current a few minutes
/// ago. No value is ever logged.
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

/// Error returned if a consent could not be read or stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the consent {key} cannot be read or stored: {problem}")]
pub struct ConsentError {
    /// Key of the consent that could not be read or stored.
    pub key: String,
    /// Description of the problem, for people.
    pub problem: String,
}

/// Stores the consents of destinations.
///
/// Promise: this process finds a stored consent immediately, and other processes find it within
/// half a minute. A consent is stored until it is removed. If consents cannot be read, the result
/// is an error and never `None`.
pub trait Consents {
    /// Returns the consent with this key; `None` if none is stored.
    ///
    /// # Errors
    /// [`ConsentError`] if consents cannot be read.
    fn consent(
        &self,
        key: &ConsentKey,
    ) -> impl Future<Output = Result<Option<Granted>, ConsentError>> + Send;

    /// Stores a consent, and replaces an older one with this key.
    ///
    /// # Errors
    /// [`ConsentError`] if other processes may not find the consent. This process still finds it.
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
    /// Checks that requests to this destination may contain credentials of the deployment's AWS
    /// role. In a function, the template of the deployment decides. The default allows every
    /// destination.
    ///
    /// # Errors
    /// The reason, for people, why requests may not contain these credentials.
    fn may_show(&self, _to: &Destination) -> Result<(), String> {
        Ok(())
    }

    /// Returns the AWS credentials that sign requests to destinations, and the time until which
    /// they may be used.
    ///
    /// # Errors
    /// A description of the problem, for people.
    fn signing_credentials(
        &self,
    ) -> impl Future<Output = Result<Token<AwsCredentials>, String>> + Send;

    /// Returns a token in which AWS confirms the identity of the deployment, and the time until
    /// which it may be used.
    ///
    /// # Errors
    /// A description of the problem, for people.
    fn web_identity_token(
        &self,
        identity: &WebIdentity,
    ) -> impl Future<Output = Result<Token, String>> + Send;
}

/// Provides the current time, and sleeps.
///
/// Promise: times are milliseconds since 1970-01-01 UTC. A sleep is never shorter than requested.
pub trait Clock {
    /// Returns the current time in milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;

    /// Waits for this many milliseconds, or slightly longer.
    fn sleep(&self, wait_ms: u64) -> impl Future<Output = ()> + Send;
}

/// Provides randomness for jitter.
pub trait JitterSource {
    /// Returns the next random value.
    fn next_jitter(&self) -> Jitter;
}

/// Looks up the keys with which publishers authenticate.
///
/// Promise: the values were current a few minutes ago, and are never logged. A key that cannot be
/// read does not affect the results for other keys.
pub trait PublisherKeys {
    /// Returns the key for each name, in the order of the names, or the reason why the key cannot
    /// be read.
    fn publisher_keys(
        &self,
        names: &[SecretName],
    ) -> impl Future<Output = Vec<Result<Secret, SecretError>>> + Send;
}

/// The ports for requests to destinations, used by dispatch and by commands that send requests
/// themselves.
pub trait RequestPorts: Clock + Send + Sync {
    /// The type that [`Self::http`] returns.
    type Http: SendHttp + Sync;
    /// The type that [`Self::secrets`] returns.
    type Secrets: Secrets + Sync;
    /// The type that [`Self::identity`] returns.
    type Identity: AwsIdentity + Sync;

    /// Returns the sender of all HTTP requests: deliveries, handshakes and token requests.
    fn http(&self) -> &Self::Http;
    /// Returns the source of the secrets that requests contain or are signed with.
    fn secrets(&self) -> &Self::Secrets;
    /// Returns the port for AWS credentials and tokens that requests contain or are signed with.
    fn identity(&self) -> &Self::Identity;
}

/// The ports that dispatch and deadletter share.
pub trait StoragePorts: Clock + Send + Sync {
    /// The type that [`Self::queues`] returns.
    type Queues: Queue + Sync;
    /// The type that [`Self::blobs`] returns.
    type Blobs: PutBlob + Sync;
    /// The type that [`Self::sinks`] returns.
    type Sinks: PutMessage + Sync;

    /// Returns the queues of the deployment.
    fn queues(&self) -> &Self::Queues;
    /// Returns the port that writes dead letters to containers.
    fn blobs(&self) -> &Self::Blobs;
    /// Returns the port that sends dead letters to queues outside the deployment.
    fn sinks(&self) -> &Self::Sinks;
}

/// All external needs of the dispatch function.
pub trait DispatchPorts: StoragePorts + RequestPorts + JitterSource {
    /// The type that [`Self::subscriptions`] returns.
    type Subscriptions: SubscriptionSource + Sync;
    /// The type that [`Self::consents`] returns.
    type Consents: Consents + Sync;
    /// The type that [`Self::table`] returns.
    type Table: Table + Sync;

    /// Returns the source of topics and subscriptions.
    fn subscriptions(&self) -> &Self::Subscriptions;
    /// Returns the port that stores the consents of destinations.
    fn consents(&self) -> &Self::Consents;
    /// Returns the table that all processes of the deployment share.
    fn table(&self) -> &Self::Table;
}

/// All external needs of the ingress function.
pub trait IngressPorts: Clock + Send + Sync {
    /// The type that [`Self::events`] returns.
    type Events: PublishEvents + Sync;
    /// The type that [`Self::keys`] returns.
    type Keys: PublisherKeys + Sync;

    /// Returns the publisher that sends messages to the events queue.
    fn events(&self) -> &Self::Events;
    /// Returns the source of publisher keys. A request must contain one of these keys.
    fn keys(&self) -> &Self::Keys;
}
