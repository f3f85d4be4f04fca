//! The ports of one function, put together.
//!
//! Clients are built once, at cold start, with every option that matters passed explicitly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_config::SdkConfig;
use delivery::address::AddressPolicy;
use delivery::delivery::outcome::Exchange;
use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{
    AwsIdentity, ChangeVisibility, Clock, ConsentError, Consents, JitterSource, Late, Message,
    PublishEvents, PublisherKeys, PublishingError, PutBlob, PutError, PutMessage, Queue,
    QueueError, QueueName, SecretError, Secrets, SendHttp, SubscriptionSource,
};
use delivery::request::Request;
use delivery::request::token::Token;
use delivery::subscription::Destination;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use delivery::subscription::sink::SinkQueue;
use delivery::table::HasTable;
use delivery::waits::Jitter;
use uuid::Uuid;

use crate::aws_identity::Identity;
use crate::blobs::S3Blobs;
use crate::consents::ConsentStore;
use crate::events_queue::EventsQueue;
use crate::http::{ClientError, HttpSender};
use crate::live_topics::LiveTopics;
use crate::machine::Machine;
use crate::queues::SqsQueues;
use crate::secrets::SecretStores;
use crate::settings::{DeadLetterSettings, DispatchSettings, IngressSettings};
use crate::sinks::SqsSinks;
use crate::table::DynamoTable;
pub use crate::timeouts::{aws_config, with_limits};
use url::Url;

/// Every port of the dispatch function, which sends its requests by `H`.
#[derive(Debug)]
pub struct AwsPorts<H = HttpSender> {
    http: H,
    queues: SqsQueues,
    sinks: SqsSinks,
    blobs: S3Blobs,
    subscriptions: LiveTopics,
    secrets: SecretStores,
    identity: Identity,
    consents: ConsentStore<DynamoTable>,
    table: DynamoTable,
}

/// Every port of the deadletter function, which sends no requests and reads no subscriptions.
#[derive(Debug)]
pub struct AwsStoragePorts {
    queues: SqsQueues,
    sinks: SqsSinks,
    blobs: S3Blobs,
}

/// Every port of the ingress function, which sends to one queue and reads keys.
#[derive(Debug)]
pub struct AwsIngressPorts {
    events: EventsQueue,
    secrets: SecretStores,
}

/// An S3 client, which addresses buckets by path if `force_path_style` is set.
#[must_use]
pub fn s3_client(config: &SdkConfig, force_path_style: bool) -> aws_sdk_s3::Client {
    let config =
        aws_sdk_s3::config::Builder::from(config).force_path_style(force_path_style).build();
    aws_sdk_s3::Client::from_conf(config)
}

impl AwsPorts {
    /// The ports that the settings describe.
    ///
    /// # Errors
    /// When no HTTP client can be built on this machine.
    pub fn new(config: &SdkConfig, settings: &DispatchSettings) -> Result<Self, ClientError> {
        let secrets = SecretStores::new(|name, _| std::env::var(name).ok(), Machine)?;
        let identity = Identity::of_role(config, settings.invoke_role_arn.clone());
        Self::with_secrets(config, settings, secrets, identity)
    }

    /// The same with other stores of secrets than those of the environment, and with another identity than that of the
    /// function.
    ///
    /// # Errors
    /// When no HTTP client can be built on this machine.
    pub fn with_secrets(
        config: &SdkConfig,
        settings: &DispatchSettings,
        secrets: SecretStores,
        identity: Identity,
    ) -> Result<Self, ClientError> {
        let s3 = s3_client(config, settings.s3_force_path_style);
        let sqs = aws_sdk_sqs::Client::new(config);
        let table = DynamoTable::new(config, settings.table.clone());
        let policy = AddressPolicy::new(settings.private.clone(), settings.own_addresses.clone());
        Ok(Self {
            http: HttpSender::new(policy)?,
            sinks: SqsSinks(sqs.clone()),
            queues: SqsQueues::new(sqs, settings.queues.clone(), settings.fair_queues),
            blobs: S3Blobs(s3.clone()),
            // A consent belongs to an address and not to a delivery, so no message carries it.
            consents: ConsentStore::new(table.clone(), Machine),
            table,
            subscriptions: LiveTopics::at(&settings.subscriptions, s3),
            secrets,
            identity,
        })
    }
}

impl<H> AwsPorts<H> {
    /// The same, with a sender around its own.
    pub fn with_sender<T>(self, around: impl FnOnce(H) -> T) -> AwsPorts<T> {
        AwsPorts {
            http: around(self.http),
            queues: self.queues,
            sinks: self.sinks,
            blobs: self.blobs,
            subscriptions: self.subscriptions,
            secrets: self.secrets,
            identity: self.identity,
            consents: self.consents,
            table: self.table,
        }
    }
}

impl AwsStoragePorts {
    /// The ports that the settings describe.
    #[must_use]
    pub fn new(config: &SdkConfig, settings: &DeadLetterSettings) -> Self {
        let sqs = aws_sdk_sqs::Client::new(config);
        Self {
            sinks: SqsSinks(sqs.clone()),
            queues: SqsQueues::new(sqs, settings.queues.clone(), settings.fair_queues),
            blobs: S3Blobs(s3_client(config, settings.s3_force_path_style)),
        }
    }
}

impl AwsIngressPorts {
    /// The ports that the settings describe.
    ///
    /// # Errors
    /// When no HTTP client can be built on this machine.
    pub fn new(config: &SdkConfig, settings: &IngressSettings) -> Result<Self, ClientError> {
        let sqs = aws_sdk_sqs::Client::new(config);
        Ok(Self {
            events: EventsQueue::new(sqs, settings.events_queue_url.clone()),
            secrets: SecretStores::new(|name, _| std::env::var(name).ok(), Machine)?,
        })
    }
}

impl PublishEvents for AwsIngressPorts {
    async fn publish(&self, topic: &TopicName, body: &str) -> Result<String, PublishingError> {
        self.events.publish(topic, body).await
    }
}

impl PublisherKeys for AwsIngressPorts {
    async fn publisher_keys(&self, names: &[SecretName]) -> Vec<Result<Secret, SecretError>> {
        self.secrets.publisher_keys(names).await
    }
}

impl<H: SendHttp + Sync> SendHttp for AwsPorts<H> {
    async fn exchange(&self, request: &Request) -> Exchange {
        self.http.exchange(request).await
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        self.http.exchange_or_late(request).await
    }
}

impl<H: Sync> SubscriptionSource for AwsPorts<H> {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        self.subscriptions.current().await
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Arc<Catalogue> {
        self.subscriptions.with_topics(known, topics).await
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        self.subscriptions.reread(known, topics).await
    }

    fn were_changed(&self, topics: &BTreeMap<TopicName, u64>) {
        self.subscriptions.were_changed(topics);
    }
}

impl<H: Sync> Secrets for AwsPorts<H> {
    async fn keyring(&self, names: &[&SecretName], to: &Url) -> Result<Keyring, SecretError> {
        self.secrets.keyring(names, to).await
    }
}

impl<H: Sync> AwsIdentity for AwsPorts<H> {
    fn may_show(&self, to: &Destination) -> Result<(), String> {
        self.identity.may_show(to)
    }

    async fn signing_credentials(&self) -> Result<Token<AwsCredentials>, String> {
        self.identity.signing_credentials().await
    }

    async fn web_identity_token(&self, of: &WebIdentity) -> Result<Token, String> {
        self.identity.web_identity_token(of).await
    }
}

impl<H: Sync> Consents for AwsPorts<H> {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        self.consents.consent(key).await
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        self.consents.keep_consent(key, granted).await
    }
}

impl<H> HasTable for AwsPorts<H> {
    type Table = DynamoTable;

    fn table(&self) -> &DynamoTable {
        &self.table
    }
}

impl<H> JitterSource for AwsPorts<H> {
    fn next_jitter(&self) -> Jitter {
        Machine.next_jitter()
    }
}

/// The time of this machine.
macro_rules! machine_clock {
    ([$($parameters:tt)*] $ports:ty) => {
        impl<$($parameters)*> Clock for $ports {
            fn now_ms(&self) -> u64 {
                Machine.now_ms()
            }

            async fn sleep(&self, wait_ms: u64) {
                Machine.sleep(wait_ms).await;
            }
        }
    };
}

/// The ports that dispatch and deadletter have in common.
macro_rules! shared_ports {
    ([$($parameters:tt)*] $ports:ty) => {
        impl<$($parameters)*> Queue for $ports {
            async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
                self.queues.send(queue, message).await
            }
        }

        impl<$($parameters)*> ChangeVisibility for $ports {
            async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
                self.queues.change_visibility(queue, receipt, seconds).await;
            }
        }

        impl<$($parameters)*> PutBlob for $ports {
            async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), PutError> {
                self.blobs.put(bucket, key, bytes).await
            }
        }

        impl<$($parameters)*> PutMessage for $ports {
            async fn put_message(
                &self,
                queue: &SinkQueue,
                id: Uuid,
                json: &str,
            ) -> Result<(), PutError> {
                self.sinks.put_message(queue, id, json).await
            }
        }
    };
}

shared_ports!([H: Sync] AwsPorts<H>);
shared_ports!([] AwsStoragePorts);
machine_clock!([H: Sync] AwsPorts<H>);
machine_clock!([] AwsStoragePorts);
machine_clock!([] AwsIngressPorts);
