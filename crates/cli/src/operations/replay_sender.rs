//! Creates the sender of a replay from options for its target and its queue.
//!
//! Separate from the crate `deadletters`, which receives configured clients. Only the command line
//! handles the queues of `lastmile dev` and of stacks, and access to queues on this machine.

use adapters::aws_ports::s3_client;
use adapters::storage::Storage;
use anyhow::Context as _;
use deadletters::container::DeadLetterContainer;
use deadletters::replay::sender::{ReplaySender, ReplayTarget};
use delivery::address::PrivateDestinations;
use delivery::address::http_url;
use url::Url;

use crate::operations::queue::{self, DEV_CONTAINER, DEV_EVENTS_QUEUE, DEV_RETRY_QUEUE};
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::operations::this_machine::{allow_private, is_here};
use crate::terminal::usage::usage_error;

/// The option that names the queue for replays.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReplayQueueArgs {
    /// URL of the retry queue, or of the events queue if events go to a topic. By default the queue
    /// of the stack, or without a stack that of `lastmile dev`
    #[arg(long, value_name = "URL", value_parser = http_url)]
    queue_url: Option<Url>,
}

/// The queues through which replays are sent.
#[derive(Debug, Default)]
pub(crate) struct ReplayQueues {
    given: Option<Url>,
    stack: Option<Stack>,
    /// The queues of a `lastmile dev` that does not use the default addresses: for deliveries, and
    /// for events.
    local: Option<(String, String)>,
    /// True if the dead letters are in a bucket. In this case, the queues of this machine are not
    /// used by default.
    is_bucket: bool,
}

impl ReplayQueueArgs {
    /// Resolves the options to queues. Looks up the queues of a stack if one is named.
    ///
    /// # Errors
    /// If the stack cannot be read.
    pub(crate) async fn open(
        self,
        stack: Option<&str>,
        container: &DeadLetterContainer,
    ) -> anyhow::Result<ReplayQueues> {
        let stack = Stack::optional(stack).await?;
        let is_bucket = container.name.starts_with("s3://");
        Ok(ReplayQueues { given: self.queue_url, stack, local: None, is_bucket })
    }
}

impl ReplayQueues {
    /// Returns true if no option names a queue. In this case, the queue of `lastmile dev` on this
    /// machine is used.
    pub(crate) fn is_default(&self) -> bool {
        self.given.is_none() && self.stack.is_none() && self.local.is_none()
    }

    /// Returns true if deliveries to subscriptions are sent through a queue on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let queue = self.for_target(&ReplayTarget::Subscription, None);
        queue.ok().flatten().is_some_and(|queue| is_here(&queue))
    }

    /// Returns the option that names the queue for this target; empty if a command without the
    /// option would use the same queue.
    pub(crate) fn option(&self, target: &ReplayTarget) -> String {
        let is_named = self.given.is_some() || self.local.is_some();
        let queue = self.for_target(target, None).ok().flatten().filter(|_| is_named);
        let other =
            queue.filter(|url| ![DEV_RETRY_QUEUE, DEV_EVENTS_QUEUE].contains(&url.as_str()));
        other.map(|url| format!(" --queue-url {}", shell::typed(url.as_str()))).unwrap_or_default()
    }

    /// Uses the queues of a local AWS: one for deliveries, one for events.
    pub(crate) fn local(retry: String, events: String) -> Self {
        Self { local: Some((retry, events)), ..Self::default() }
    }

    /// Returns the queue for this target; `None` for a URL.
    ///
    /// The order of precedence is: the given queue, the stack's queue, the queue in the job's
    /// ledger, the queue of `lastmile dev`. Deliveries to a subscription use the retry queue,
    /// because publishers may write to the events queue. Events for a topic use the events queue.
    ///
    /// # Errors
    /// - The given queue is the events queue, but deliveries are sent.
    /// - The stack has no queue of the necessary type.
    /// - The dead letters are in a bucket, and no option names a queue.
    pub(crate) fn for_target(
        &self,
        target: &ReplayTarget,
        in_ledger: Option<&str>,
    ) -> anyhow::Result<Option<Url>> {
        let local = self.local.as_ref();
        let (output, default, local) = match target {
            ReplayTarget::Subscription => {
                ("RetryQueueUrl", DEV_RETRY_QUEUE, local.map(|(retry, _)| retry))
            }
            ReplayTarget::Topic(_) => {
                ("EventsQueueUrl", DEV_EVENTS_QUEUE, local.map(|(_, events)| events))
            }
            ReplayTarget::Url(_) => return Ok(None),
        };
        let of_stack = self.stack.as_ref().map(|stack| stack.output(output)).transpose()?;
        let url = match &self.given {
            Some(url) => url.clone(),
            None => {
                // The ledger may be from an earlier `lastmile dev`, whose queues had other
                // addresses.
                let local = local.map(String::as_str);
                let named = of_stack.or(local).or(in_ledger);
                if named.is_none() && self.is_bucket {
                    return Err(usage_error(
                        "no queue is specified for the dead letters of a bucket: use --stack for \
                         the deployed stack, or --queue-url for a queue",
                    ));
                }
                let url = named.unwrap_or(default);
                url.parse().with_context(|| format!("the queue URL {url} is not valid"))?
            }
        };
        let name = url.path_segments().and_then(|mut path| path.next_back()).unwrap_or("");
        let is_events = name == "events" || name.contains("EventsQueue");
        if is_events && *target == ReplayTarget::Subscription {
            return Err(usage_error(format!(
                "{url} is an events queue, which does not accept deliveries: use the retry queue, \
                 or --stack"
            )));
        }
        Ok(Some(url))
    }

    /// Describes the target and the queue for people.
    pub(crate) fn describe(&self, target: &ReplayTarget, queue: Option<&Url>) -> String {
        let through = match (queue, &self.stack) {
            (None, _) => return target.shown(),
            (Some(queue), Some(stack)) if stack.owns(queue) => {
                format!("the stack {}, queue {queue}", stack.name)
            }
            (Some(queue), _) if is_here(queue) => {
                format!("the local queues of `lastmile dev` on {}: {queue}", host(queue))
            }
            (Some(queue), _) => format!("the queue {queue}"),
        };
        match target {
            ReplayTarget::Subscription => format!("each to its own subscription through {through}"),
            ReplayTarget::Topic(topic) => format!("the topic {topic} through {through}"),
            ReplayTarget::Url(_) => target.shown(),
        }
    }

    /// Returns true if the outcomes of deliveries through this queue are recorded in this
    /// container. They are recorded in the default container of the queue's deployment. `key` is
    /// the key of any dead letter in this container.
    pub(crate) async fn records_results(
        &self,
        target: &ReplayTarget,
        queue: Option<&Url>,
        container: &DeadLetterContainer,
        key: Option<&str>,
    ) -> bool {
        let (ReplayTarget::Subscription, Some(queue)) = (target, queue) else { return false };
        if let Some(stack) = &self.stack {
            return stack.dead_letter_container().is_ok_and(|it| it == container.name);
        }
        let Some(key) = key.filter(|_| is_here(queue) && container.prefix.is_empty()) else {
            return false;
        };
        // The container of `lastmile dev` may be any folder. Therefore, look for the same dead
        // letter through the queue's endpoint.
        let client = s3_client(&queue::clients_for(queue).await);
        let found = Storage::bucket(client, DEV_CONTAINER).get(key).await;
        matches!(found, Ok(Some(_)))
    }

    /// Creates a sender to this target, and connects to the queue if the target needs one. Checks
    /// that the queue responds before the job has a ledger.
    ///
    /// # Errors
    /// If there is no queue, or the queue does not respond. The message names the program to start.
    pub(crate) async fn sender(
        &self,
        target: &ReplayTarget,
        in_ledger: Option<&str>,
    ) -> anyhow::Result<(ReplaySender, Option<Url>)> {
        let queue = self.for_target(target, in_ledger)?;
        let topic = match target {
            ReplayTarget::Url(url) => {
                let allowed = PrivateDestinations::parse(&allow_private());
                let allowed = allowed.map_err(anyhow::Error::msg)?;
                return Ok((ReplaySender::to_url(url.clone(), allowed)?, None));
            }
            ReplayTarget::Topic(topic) => Some(topic.clone()),
            ReplayTarget::Subscription => None,
        };
        let queue = queue.context("a replay to a subscription or a topic needs a queue")?;
        let client = match self.stack.as_ref().is_some_and(|stack| stack.owns(&queue)) {
            true => queue::reach_of_stack(&queue).await?,
            false => queue::reach(&queue).await?,
        };
        Ok((ReplaySender::to_queue(client, &queue, topic), Some(queue)))
    }
}

fn host(queue: &Url) -> &str {
    queue.host_str().unwrap_or_default()
}
