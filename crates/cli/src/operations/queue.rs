//! Connects to queues: those of `lastmile dev`, or any other queue by its URL.

use adapters::aws_ports::with_limits;
use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use local::aws::local_clients;
use url::Url;

use crate::operations::stack::{self, Stack};
use crate::operations::this_machine::is_here;
use crate::terminal::advice::aws_error;

/// A queue of a deployment that commands use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeploymentQueue {
    /// The queue for published events.
    Events,
    /// The queue for deliveries that wait for an attempt, and for replayed deliveries.
    Retry,
    /// The queue for dead letters that could not be stored.
    LastResort,
}

impl DeploymentQueue {
    /// Returns the name of the stack output that contains the URL of the queue.
    pub(crate) fn output(self) -> &'static str {
        match self {
            Self::Events => "EventsQueueUrl",
            Self::Retry => "RetryQueueUrl",
            Self::LastResort => "LastResortQueueUrl",
        }
    }

    /// Returns the URL of the queue in a local AWS.
    pub(crate) fn url_at(self, aws_endpoint: &str) -> String {
        let name = match self {
            Self::Events => "events",
            Self::Retry => "retry",
            Self::LastResort => "last-resort",
        };
        format!("{aws_endpoint}/000000000000/{name}")
    }
}

/// The name of the bucket of dead letters of `lastmile dev`.
pub(crate) const DEV_CONTAINER: &str = "dead-letters";

/// Returns the AWS configuration for a queue. A queue on this machine gets its own endpoint and
/// dummy credentials; any other queue gets the configuration of the environment.
pub(crate) async fn clients_for(queue: &Url) -> SdkConfig {
    if is_here(queue) {
        local_clients(&queue.origin().ascii_serialization())
    } else {
        stack::aws().await
    }
}

/// Creates a client for a queue, and checks that the queue responds. For a queue of the stack, uses
/// the credentials of the environment, even if an emulator on this machine provides the stack. Such
/// an emulator may check permissions, and would refuse the dummy credentials of [`clients_for`].
///
/// # Errors
/// If the queue does not respond. For a queue on this machine, the message names the command that
/// starts the server.
pub(crate) async fn reach(stack: Option<&Stack>, queue: &Url) -> anyhow::Result<Client> {
    let config = match stack.is_some_and(|stack| stack.owns(queue)) {
        true => stack::aws().await,
        false => clients_for(queue).await,
    };
    let client = Client::new(&with_limits(config));
    let ask = client.get_queue_attributes().queue_url(queue.as_str());
    let answer = ask.attribute_names(QueueAttributeName::ApproximateNumberOfMessages).send().await;
    let Err(error) = answer else { return Ok(client) };
    // No response means that no server listens; an error response means that the queue does not
    // exist.
    let answers = error.raw_response().is_some();
    if is_here(queue) && !answers {
        let at = queue.origin().ascii_serialization();
        anyhow::bail!(
            "no program listens on {at}: start `lastmile dev -f FILE` (after `lastmile demo`: \
             .lastmile/subscriptions.yaml), or specify a queue with --queue-url or --stack"
        );
    }
    Err(aws_error(&error)).with_context(|| format!("the queue {queue} cannot be used"))
}
