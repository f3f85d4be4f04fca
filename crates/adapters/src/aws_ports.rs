//! Combines the ports of each function.
//!
//! Clients are built once, at cold start. Every important option is passed explicitly.

use aws_config::SdkConfig;
use delivery::address::AddressPolicy;
use delivery::ports::{
    DispatchPorts, IngressPorts, JitterSource, RequestPorts, SendHttp, StoragePorts,
};
use delivery::waits::Jitter;

use crate::aws_identity::Identity;
use crate::blobs::S3Blobs;
use crate::consents::ConsentStore;
use crate::events_queue::EventsQueue;
use crate::http::{ClientError, HttpSender};
use crate::live_topics::LiveTopics;
use crate::machine::{Machine, machine_clock};
use crate::queues::SqsQueues;
use crate::secrets::SecretStores;
use crate::settings::{DeadLetterSettings, DispatchSettings, IngressSettings};
use crate::sinks::SqsSinks;
use crate::table::DynamoTable;
pub use crate::timeouts::{aws_config, with_limits};

/// All ports of the dispatch function, which sends its requests through `H`.
#[derive(Debug)]
pub struct AwsPorts<H = HttpSender> {
    http: H,
    storage: AwsStoragePorts,
    subscriptions: LiveTopics,
    secrets: SecretStores,
    identity: Identity,
    consents: ConsentStore<DynamoTable>,
    table: DynamoTable,
}

/// All ports of the deadletter function, which sends no requests and reads no subscriptions.
#[derive(Debug)]
pub struct AwsStoragePorts {
    queues: SqsQueues,
    sinks: SqsSinks,
    blobs: S3Blobs,
}

/// All ports of the ingress function, which sends to one queue and reads keys.
#[derive(Debug)]
pub struct AwsIngressPorts {
    events: EventsQueue,
    secrets: SecretStores,
}

/// Creates an S3 client. With a custom endpoint it uses path-style addressing, because few
/// emulators serve buckets as subdomains.
#[must_use]
pub fn s3_client(config: &SdkConfig) -> aws_sdk_s3::Client {
    let has_endpoint =
        config.endpoint_url().is_some() || std::env::var_os("AWS_ENDPOINT_URL_S3").is_some();
    let config = aws_sdk_s3::config::Builder::from(config).force_path_style(has_endpoint).build();
    aws_sdk_s3::Client::from_conf(config)
}

impl AwsPorts {
    /// Creates the ports of the dispatch function.
    ///
    /// # Errors
    /// Fails if no HTTP client can be built on this machine.
    pub fn new(config: &SdkConfig, settings: &DispatchSettings) -> Result<Self, ClientError> {
        let secrets = SecretStores::new(|name, _| std::env::var(name).ok(), Machine)?;
        let identity = Identity::of_role(config, settings.invoke_role_arn.clone())
            .denying(settings.own_resources.patterns());
        Self::with_secrets(config, settings, secrets, identity)
    }

    /// Creates the ports with `secrets` and `identity` in place of the function's own.
    ///
    /// # Errors
    /// Fails if no HTTP client can be built on this machine.
    pub fn with_secrets(
        config: &SdkConfig,
        settings: &DispatchSettings,
        secrets: SecretStores,
        identity: Identity,
    ) -> Result<Self, ClientError> {
        let s3 = s3_client(config);
        let sqs = aws_sdk_sqs::Client::new(config);
        let table = DynamoTable::new(config, settings.table.clone());
        let policy = AddressPolicy::new(settings.private.clone(), settings.own_addresses.clone());
        Ok(Self {
            http: HttpSender::new(policy)?.with_aws_endpoint(settings.aws_endpoint.clone()),
            storage: AwsStoragePorts {
                sinks: SqsSinks::new(sqs.clone(), &settings.queues),
                queues: SqsQueues::new(sqs, settings.queues.clone()),
                blobs: S3Blobs(s3.clone()),
            },
            // A consent belongs to an address, not to a delivery, so messages do not carry it.
            consents: ConsentStore::new(table.clone(), Machine),
            table,
            subscriptions: LiveTopics::at(&settings.subscriptions, s3),
            secrets,
            identity,
        })
    }
}

impl<H> AwsPorts<H> {
    /// Replaces the HTTP sender with the one that `around` creates from it.
    pub fn with_sender<T>(self, around: impl FnOnce(H) -> T) -> AwsPorts<T> {
        AwsPorts {
            http: around(self.http),
            storage: self.storage,
            subscriptions: self.subscriptions,
            secrets: self.secrets,
            identity: self.identity,
            consents: self.consents,
            table: self.table,
        }
    }
}

impl AwsStoragePorts {
    /// Creates the ports of the deadletter function.
    #[must_use]
    pub fn new(config: &SdkConfig, settings: &DeadLetterSettings) -> Self {
        let sqs = aws_sdk_sqs::Client::new(config);
        Self {
            sinks: SqsSinks::new(sqs.clone(), &settings.queues),
            queues: SqsQueues::new(sqs, settings.queues.clone()),
            blobs: S3Blobs(s3_client(config)),
        }
    }
}

impl AwsIngressPorts {
    /// Creates the ports of the ingress function.
    ///
    /// # Errors
    /// Fails if no HTTP client can be built on this machine.
    pub fn new(config: &SdkConfig, settings: &IngressSettings) -> Result<Self, ClientError> {
        let sqs = aws_sdk_sqs::Client::new(config);
        Ok(Self {
            events: EventsQueue::new(sqs, settings.events_queue_url.clone()),
            secrets: SecretStores::new(|name, _| std::env::var(name).ok(), Machine)?,
        })
    }
}

impl IngressPorts for AwsIngressPorts {
    type Events = EventsQueue;
    type Keys = SecretStores;

    fn events(&self) -> &EventsQueue {
        &self.events
    }

    fn keys(&self) -> &SecretStores {
        &self.secrets
    }
}

impl StoragePorts for AwsStoragePorts {
    type Queues = SqsQueues;
    type Blobs = S3Blobs;
    type Sinks = SqsSinks;

    fn queues(&self) -> &SqsQueues {
        &self.queues
    }

    fn blobs(&self) -> &S3Blobs {
        &self.blobs
    }

    fn sinks(&self) -> &SqsSinks {
        &self.sinks
    }
}

impl<H: SendHttp + Send + Sync> StoragePorts for AwsPorts<H> {
    type Queues = SqsQueues;
    type Blobs = S3Blobs;
    type Sinks = SqsSinks;

    fn queues(&self) -> &SqsQueues {
        self.storage.queues()
    }

    fn blobs(&self) -> &S3Blobs {
        self.storage.blobs()
    }

    fn sinks(&self) -> &SqsSinks {
        self.storage.sinks()
    }
}

impl<H: SendHttp + Send + Sync> RequestPorts for AwsPorts<H> {
    type Http = H;
    type Secrets = SecretStores;
    type Identity = Identity;

    fn http(&self) -> &H {
        &self.http
    }

    fn secrets(&self) -> &SecretStores {
        &self.secrets
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl<H: SendHttp + Send + Sync> DispatchPorts for AwsPorts<H> {
    type Subscriptions = LiveTopics;
    type Consents = ConsentStore<DynamoTable>;
    type Table = DynamoTable;

    fn subscriptions(&self) -> &LiveTopics {
        &self.subscriptions
    }

    fn consents(&self) -> &ConsentStore<DynamoTable> {
        &self.consents
    }

    fn table(&self) -> &DynamoTable {
        &self.table
    }
}

impl<H> JitterSource for AwsPorts<H> {
    fn next_jitter(&self) -> Jitter {
        Machine.next_jitter()
    }
}

machine_clock!([H: Sync] AwsPorts<H>);
machine_clock!([] AwsStoragePorts);
machine_clock!([] AwsIngressPorts);
