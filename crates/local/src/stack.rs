//! The whole application on this machine: the local AWS, the functions dispatch and deadletter, and
//! their event source mappings.
//!
//! The functions are the libraries that run in Lambda, with the same AWS clients. Only the
//! endpoints are local.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters::aws_identity::Identity;
use adapters::aws_ports::{AwsPorts, AwsStoragePorts, s3_client, with_limits};
use adapters::events_queue::EventsQueue;
use adapters::http::HttpSender;
use adapters::live_topics::{LiveTopics, Location};
use adapters::machine::Machine;
use adapters::records::{self, SourceQueues};
use adapters::secrets::SecretStores;
use adapters::settings::{self, DeadLetterSettings, DispatchSettings};
use anyhow::Context as _;
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use deadletter::DeadLetters;
use delivery::ports::{Clock as _, QueueName};
use delivery::subscription::name::TopicName;
use dispatch::{Deadline, Dispatch};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::aws::{LocalAws, LocalAwsConfig, TABLE, local_clients};
use crate::mapping::EventSourceMapping;
use crate::mapping::event::received;
use crate::observe::{ObservedSender, Observer};
use url::Url;

/// Timeout of the functions, as in the template.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Visibility timeout: six times the functions' timeout, as in the template.
const VISIBILITY_TIMEOUT_SECONDS: u32 = 360;
/// Maximum number of messages per invocation.
const BATCH_SIZE: u8 = 10;
/// Maximum number of concurrent invocations per queue. Higher than in the template, because
/// invocations are free here, and a hanging destination occupies one for its whole response
/// timeout.
const CONCURRENCY: u8 = 200;

/// The port, the folders and the variables of a local stack.
#[derive(Debug, Clone)]
pub struct StackConfig {
    /// The port of the local AWS; 0 selects any free port.
    pub aws_port: u16,
    /// The folder for all data of the stack.
    pub data: PathBuf,
    /// The folder with the subscription objects.
    pub subscriptions: PathBuf,
    /// The value of `ALLOW_PRIVATE_DESTINATIONS`: hosts and CIDRs, comma-separated.
    pub allow_private: String,
    /// The AWS targets that subscriptions may use.
    pub targets: TargetSettings,
    /// The value of `DEFAULT_TOPIC`: the topic of records that name no topic.
    pub default_topic: Option<TopicName>,
}

/// The AWS targets that subscriptions may use. The default allows none.
#[derive(Debug, Clone, Default)]
pub struct TargetSettings {
    /// The value of `AWS_TARGETS`: entries `NAMESPACE=ARN`, comma-separated.
    pub listed: String,
    /// The value of `AWS_ENDPOINT_URL`: a server that is used in place of AWS.
    pub endpoint: Option<Url>,
}

const DEAD_LETTER_QUEUE: &str = "dead-letter";

/// The running application: the local AWS and the event source mappings of the functions.
#[derive(Debug)]
pub struct Stack {
    aws: LocalAws,
    subscriptions: Location,
    mappings: JoinSet<()>,
    stop: watch::Sender<bool>,
    /// The deadletter function and its queues, used when the stack stops, to store all dead letters
    /// without waiting for their delay.
    at_end: Arc<(DeadLetters<AwsStoragePorts>, SourceQueues)>,
}

impl Stack {
    /// Starts the local AWS, the functions and the mappings. The stack runs until it is stopped.
    ///
    /// # Errors
    /// Fails if a port is in use, or a file or folder cannot be used.
    pub async fn start(config: &StackConfig) -> anyhow::Result<Self> {
        Self::start_with(config, |name, _| std::env::var(name).ok()).await
    }

    /// Starts the stack. Secrets `env:NAME` are looked up with `secrets` instead of in the
    /// environment.
    ///
    /// # Errors
    /// Fails if a port is in use, or a file or folder cannot be used.
    pub async fn start_with(
        config: &StackConfig,
        secrets: impl Fn(&str, Option<&Url>) -> Option<String> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let identity = Identity::of_person(|_| true);
        Self::start_observed(config, secrets, identity, Observer::default()).await
    }

    /// Starts the stack with an identity that signs requests, and an observer of records and
    /// requests.
    ///
    /// # Errors
    /// Fails if a port is in use, or a file or folder cannot be used.
    pub async fn start_observed(
        config: &StackConfig,
        secrets: impl Fn(&str, Option<&Url>) -> Option<String> + Send + Sync + 'static,
        identity: Identity,
        observer: Observer,
    ) -> anyhow::Result<Self> {
        let aws_config = LocalAwsConfig::of_lastmile(
            config.aws_port,
            config.data.join("s3"),
            VISIBILITY_TIMEOUT_SECONDS,
        );
        let aws = LocalAws::start(aws_config).await?;
        // A `file://` URL needs an absolute path.
        let file = config.subscriptions.canonicalize();
        let file = file.with_context(|| {
            format!("the subscriptions {} cannot be read", config.subscriptions.display())
        })?;
        let environment = environment(&aws, &file, config);
        let clients = with_limits(local_clients(&aws.endpoint()));

        let dispatch_settings = DispatchSettings::read(&environment)?;
        let subscriptions = dispatch_settings.subscriptions.clone();
        let secrets = SecretStores::new(secrets, Machine)?;
        let ports = AwsPorts::with_secrets(&clients, &dispatch_settings, secrets, identity)?;
        let ports = ports.with_sender(|sender| ObservedSender {
            sender: sender.keeping_headers(),
            observer: observer.clone(),
        });
        let queues = SourceQueues::new(&dispatch_settings.queues, QueueName::Events);
        let dispatch =
            Dispatch::new(ports, dispatch_settings.container, dispatch_settings.default_topic)
                .with_targets(dispatch_settings.aws_policy);
        let dispatch = Arc::new((dispatch, queues, observer));
        let dead_letter_settings = DeadLetterSettings::read(&environment)?;
        let dead_letters = || {
            let ports = AwsStoragePorts::new(&clients, &dead_letter_settings);
            let queues = SourceQueues::new(&dead_letter_settings.queues, QueueName::Events);
            (DeadLetters::new(ports, dead_letter_settings.container.clone()), queues)
        };
        let (function, queues) = dead_letters();
        let at_end = Arc::new((function.ending_delays(), queues));
        let dead_letters = Arc::new(dead_letters());

        let (stop, stopped) = watch::channel(false);
        let mut stack = Self { aws, subscriptions, mappings: JoinSet::new(), stop, at_end };
        for (queue, batch_size) in
            [("events", BATCH_SIZE), ("retry", BATCH_SIZE), ("slow", BATCH_SIZE), ("isolation", 1)]
        {
            let function = Arc::clone(&dispatch);
            stack.add_mapping(queue, batch_size, &stopped, move |event, deadline_ms| {
                invoke_dispatch(Arc::clone(&function), event, deadline_ms)
            });
        }
        stack.add_mapping(DEAD_LETTER_QUEUE, BATCH_SIZE, &stopped, move |event, _| {
            invoke_deadletter(Arc::clone(&dead_letters), event)
        });
        Ok(stack)
    }

    /// Returns the local AWS of this stack.
    #[must_use]
    pub fn aws(&self) -> &LocalAws {
        &self.aws
    }

    /// Returns an SQS client for the local queues.
    #[must_use]
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&local_clients(&self.aws.endpoint()))
    }

    /// Returns a client that publishes to the events queue.
    #[must_use]
    pub fn events_queue(&self) -> EventsQueue {
        EventsQueue::new(self.sqs(), self.aws.queue_url("events"))
    }

    /// Returns the subscriptions, which are read again when they change.
    #[must_use]
    pub fn subscriptions(&self) -> LiveTopics {
        let client = s3_client(&local_clients(&self.aws.endpoint()));
        LiveTopics::at(&self.subscriptions, client)
    }

    /// Stops the stack after the running invocations have ended and all dead letters are stored,
    /// including those whose delay is not over. Returns the number of messages that are lost with
    /// the in-memory queues, by queue.
    ///
    /// # Errors
    /// Fails if the local AWS does not respond.
    pub async fn stop(mut self) -> anyhow::Result<Vec<(String, u64)>> {
        self.stop.send_replace(true);
        // Wait before the queues stop, because running invocations still send to them.
        while self.mappings.join_next().await.is_some() {}
        self.aws.release_dead_letters().await?;
        let mapping = self.mapping(DEAD_LETTER_QUEUE, BATCH_SIZE);
        mapping.drain(|event, _| invoke_deadletter(Arc::clone(&self.at_end), event)).await;
        let remaining = self.aws.messages_held().await?;
        self.aws.stop().await;
        Ok(remaining.into_iter().filter(|(_, messages)| *messages > 0).collect())
    }

    fn mapping(&self, queue: &str, batch_size: u8) -> EventSourceMapping {
        EventSourceMapping {
            client: self.sqs(),
            queue_url: self.aws.queue_url(queue),
            queue_name: queue.to_owned(),
            batch_size,
            concurrency: CONCURRENCY,
            function_timeout: FUNCTION_TIMEOUT,
            now_ms: Arc::new(|| Machine.now_ms()),
        }
    }

    fn add_mapping<H, F>(
        &mut self,
        queue: &str,
        batch_size: u8,
        stopped: &watch::Receiver<bool>,
        handler: H,
    ) where
        H: Fn(SqsEvent, u64) -> F + Send + Sync + 'static,
        F: Future<Output = BatchResult> + Send + 'static,
    {
        let mapping = self.mapping(queue, batch_size);
        let mut stopped = stopped.clone();
        self.mappings.spawn(mapping.run(handler, async move {
            // An error means that the stack was dropped, which must stop the mapping too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }));
    }
}

type BatchResult = anyhow::Result<SqsBatchResponse>;

/// The ports of dispatch on this machine, which report requests to an observer.
type LocalPorts = AwsPorts<ObservedSender<HttpSender>>;

async fn invoke_dispatch(
    function: Arc<(Dispatch<LocalPorts>, SourceQueues, Observer)>,
    event: SqsEvent,
    deadline_ms: u64,
) -> BatchResult {
    let (dispatch, queues, observer) = &*function;
    let records = records::read(received(&event)?, queues)?;
    observer.received(&records);
    let deadline = Deadline::new(Machine.now_ms(), deadline_ms);
    Ok(records::answer(dispatch.handle(&records, &deadline).await))
}

async fn invoke_deadletter(
    function: Arc<(DeadLetters<AwsStoragePorts>, SourceQueues)>,
    event: SqsEvent,
) -> BatchResult {
    let (dead_letters, queues) = &*function;
    let records = records::read(received(&event)?, queues)?;
    Ok(records::answer(dead_letters.handle(&records).await))
}

/// Returns the environment of the functions, with the variables that the template sets.
fn environment(
    aws: &LocalAws,
    subscriptions: &Path,
    config: &StackConfig,
) -> impl Fn(&str) -> Option<String> + use<> {
    let default_topic = config.default_topic.as_ref().map(ToString::to_string);
    let endpoint = config.targets.endpoint.as_ref().map(ToString::to_string);
    let values = [
        (settings::SUBSCRIPTIONS_URI, format!("file://{}/", subscriptions.display())),
        (settings::TABLE_NAME, TABLE.to_owned()),
        (settings::EVENTS_QUEUE_URL, aws.queue_url("events")),
        (settings::RETRY_QUEUE_URL, aws.queue_url("retry")),
        (settings::SLOW_QUEUE_URL, aws.queue_url("slow")),
        (settings::ISOLATION_QUEUE_URL, aws.queue_url("isolation")),
        (settings::DEAD_LETTER_QUEUE_URL, aws.queue_url("dead-letter")),
        (settings::LAST_RESORT_QUEUE_URL, aws.queue_url("last-resort")),
        (settings::DEAD_LETTER_CONTAINER, "dead-letters".to_owned()),
        (settings::ALLOW_PRIVATE_DESTINATIONS, config.allow_private.clone()),
        (settings::AWS_TARGETS, config.targets.listed.clone()),
        (settings::AWS_ENDPOINT_URL, endpoint.unwrap_or_default()),
        (settings::DEFAULT_TOPIC, default_topic.unwrap_or_default()),
    ];
    move |name| values.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
}
