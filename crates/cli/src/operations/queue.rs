//! Connects to queues: those of `lastmile dev`, or any other queue by its URL.

use adapters::aws_ports::with_limits;
use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use local::aws::local_clients;
use url::Url;

use crate::operations::stack;
use crate::operations::this_machine::is_here;
use crate::terminal::advice::aws_error;

/// The URL of the events queue of `lastmile dev`.
pub(crate) const DEV_EVENTS_QUEUE: &str = "http://127.0.0.1:4566/000000000000/events";

/// The URL of the retry queue of `lastmile dev`.
pub(crate) const DEV_RETRY_QUEUE: &str = "http://127.0.0.1:4566/000000000000/retry";

/// The name of the bucket of dead letters of `lastmile dev`.
pub(crate) const DEV_CONTAINER: &str = "dead-letters";

/// Returns the AWS configuration for a queue. For a queue on this machine, uses its own endpoint
/// and dummy credentials; for others, the configuration of the environment.
pub(crate) async fn clients_for(queue: &Url) -> SdkConfig {
    if is_here(queue) {
        local_clients(&queue.origin().ascii_serialization())
    } else {
        stack::aws().await
    }
}

/// Creates a client for a queue, and checks that the queue responds.
///
/// # Errors
/// If the queue does not respond. For a queue on this machine, the message names the command that
/// starts it.
pub(crate) async fn reach(queue: &Url) -> anyhow::Result<Client> {
    reach_with(clients_for(queue).await, queue).await
}

/// Creates a client for a queue of a stack, and checks that the queue responds. Uses the
/// credentials of the environment, even if an emulator on this machine provides the stack.
pub(crate) async fn reach_of_stack(queue: &Url) -> anyhow::Result<Client> {
    reach_with(stack::aws().await, queue).await
}

async fn reach_with(config: SdkConfig, queue: &Url) -> anyhow::Result<Client> {
    let client = Client::new(&with_limits(config));
    let ask = client.get_queue_attributes().queue_url(queue.as_str());
    let answer = ask.attribute_names(QueueAttributeName::ApproximateNumberOfMessages).send().await;
    let Err(error) = answer else { return Ok(client) };
    // Without a response, no server listens; with an error response, the queue does not exist.
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
