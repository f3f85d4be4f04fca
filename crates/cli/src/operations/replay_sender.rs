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
use url::Url;

use crate::operations::place::{Place, default_aws_endpoint, no_queue_for_bucket};
use crate::operations::queue::{self, DEV_CONTAINER, DeploymentQueue};
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::operations::this_machine::{allow_private, is_here};
use crate::terminal::usage::usage_error;

/// The queues through which replays are sent.
#[derive(Debug)]
pub(crate) struct ReplayQueues {
    given: Option<Url>,
    stack: Option<Stack>,
    /// The endpoint of the local AWS, if the console of `lastmile dev` sends the replays.
    own: Option<String>,
    /// The endpoint of the local AWS that is used by default.
    default: String,
    /// True if the dead letters are in a bucket. In this case, the queues of this machine are not
    /// used by default.
    is_bucket: bool,
}

impl ReplayQueues {
    /// Finds the queues of a place.
    ///
    /// # Errors
    /// If the stack cannot be described.
    pub(crate) async fn open(
        place: &Place,
        container: &DeadLetterContainer,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            given: place.queue_url().cloned(),
            stack: place.stack().await?.cloned(),
            own: None,
            default: default_aws_endpoint(),
            is_bucket: container.name.starts_with("s3://"),
        })
    }

    /// Selects the queues of the local AWS at this endpoint, for the console of `lastmile dev`.
    pub(crate) fn local(aws_endpoint: String) -> Self {
        let default = default_aws_endpoint();
        Self { given: None, stack: None, own: Some(aws_endpoint), default, is_bucket: false }
    }

    /// Returns true if no option, stack or console determines the queue. [`Self::for_target`] then
    /// uses the queue in the job's ledger, otherwise the queue of `lastmile dev`.
    pub(crate) fn is_default(&self) -> bool {
        self.given.is_none() && self.stack.is_none() && self.own.is_none()
    }

    /// Returns true if deliveries to subscriptions are sent through a queue on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let queue = self.for_target(&ReplayTarget::Subscription, None);
        queue.ok().flatten().is_some_and(|queue| is_here(&queue))
    }

    /// Returns the option that names the queue for this target; empty if a command without the
    /// option would use the same queue.
    pub(crate) fn option(&self, target: &ReplayTarget) -> String {
        let queue = self.for_target(target, None).ok().flatten();
        let default = queue_for(target).map(|queue| queue.url_at(&self.default));
        let is_named = self.given.is_some() || self.own.is_some();
        let other = queue.filter(|url| is_named && default.as_deref() != Some(url.as_str()));
        other.map(|url| format!(" --queue-url {}", shell::typed(url.as_str()))).unwrap_or_default()
    }

    /// Returns the queue for this target; `None` for a URL.
    ///
    /// The order of precedence is: the given queue, the stack's queue, the queue of the console's
    /// `lastmile dev`, the queue in the job's ledger, the queue of any other `lastmile dev`.
    ///
    /// # Errors
    /// - The given queue is the events queue, but the target needs the retry queue.
    /// - The stack has no queue of the necessary type.
    /// - The dead letters are in a bucket, and neither an option nor the ledger names a queue.
    pub(crate) fn for_target(
        &self,
        target: &ReplayTarget,
        in_ledger: Option<&str>,
    ) -> anyhow::Result<Option<Url>> {
        let Some(queue) = queue_for(target) else { return Ok(None) };
        let of_stack = self.stack.as_ref().map(|stack| stack.output(queue.output())).transpose()?;
        let own = self.own.as_deref().map(|endpoint| queue.url_at(endpoint));
        let default = queue.url_at(&self.default);
        let url = match &self.given {
            Some(url) => url.clone(),
            None => {
                // The ledger may be from an earlier `lastmile dev`, whose queues had other
                // addresses.
                let named = of_stack.or(own.as_deref()).or(in_ledger);
                if named.is_none() && self.is_bucket {
                    return Err(no_queue_for_bucket());
                }
                let url = named.unwrap_or(&default);
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
            return stack.dead_letter_container().is_ok_and(|name| name == container.name);
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
        let queue = queue.context(
            "a replay to a subscription or a topic needs a queue: use --stack or --queue-url",
        )?;
        let client = queue::reach(self.stack.as_ref(), &queue).await?;
        Ok((ReplaySender::to_queue(client, &queue, topic), Some(queue)))
    }
}

/// Returns the type of queue for this target; `None` for a URL. Deliveries to a subscription use
/// the retry queue, because publishers may write to the events queue.
fn queue_for(target: &ReplayTarget) -> Option<DeploymentQueue> {
    match target {
        ReplayTarget::Subscription => Some(DeploymentQueue::Retry),
        ReplayTarget::Topic(_) => Some(DeploymentQueue::Events),
        ReplayTarget::Url(_) => None,
    }
}

fn host(queue: &Url) -> &str {
    queue.host_str().unwrap_or_default()
}
