//! The sender of a replay, as options name its target and its queue.
//!
//! Separate from `deadletters`, which takes clients that are ready: only the command line knows the
//! queues of `lastmile dev` and of a stack, and how to reach a queue on this machine.

use anyhow::Context as _;
use deadletters::replay::sender::{ReplaySender, ReplayTarget};
use delivery::address::PrivateDestinations;
use url::Url;

use crate::queue::{self, DEV_EVENTS_QUEUE, DEV_FAN_OUT_QUEUE};
use crate::stack::Stack;
use crate::this_machine::allow_private;

/// Where replays are enqueued.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayQueueArgs {
    /// The deployed CloudFormation stack, whose queues are used; by default those of `lastmile dev`
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// Its fan-out queue instead; with --to-topic its events queue
    #[arg(long, value_name = "URL", conflicts_with = "stack")]
    queue_url: Option<Url>,
}

/// The queues of replays.
#[derive(Debug, Default)]
pub(crate) struct ReplayQueues {
    given: Option<Url>,
    stack: Option<Stack>,
}

impl ReplayQueueArgs {
    /// The queues that the options name.
    ///
    /// # Errors
    /// When the stack cannot be read.
    pub(crate) async fn open(self) -> anyhow::Result<ReplayQueues> {
        let stack = Stack::optional(self.stack.as_deref()).await?;
        Ok(ReplayQueues { given: self.queue_url, stack })
    }
}

impl ReplayQueues {
    /// The queue for this target, if it uses one: the given one, that of the stack, that in the
    /// ledger of the job, or that of `lastmile dev`. Deliveries to a subscription go to the fan-out queue,
    /// because the events queue does not take our word; events for a topic are published.
    ///
    /// # Errors
    /// When the events queue is given for deliveries, or the stack has no such queue.
    pub(crate) fn for_target(
        &self,
        target: &ReplayTarget,
        in_ledger: Option<&str>,
    ) -> anyhow::Result<Option<Url>> {
        let (output, dev) = match target {
            ReplayTarget::Subscription => ("FanOutQueueUrl", DEV_FAN_OUT_QUEUE),
            ReplayTarget::Topic(_) => ("EventsQueueUrl", DEV_EVENTS_QUEUE),
            ReplayTarget::Url(_) => return Ok(None),
        };
        let of_stack = self.stack.as_ref().map(|stack| stack.output(output)).transpose()?;
        let url = match &self.given {
            Some(url) => url.clone(),
            None => {
                let url = of_stack.or(in_ledger).unwrap_or(dev);
                url.parse().with_context(|| format!("the queue {url} is not a valid URL"))?
            }
        };
        let name = url.path_segments().and_then(|mut path| path.next_back()).unwrap_or("");
        let is_events = name == "events" || name.contains("EventsQueue");
        if is_events && *target == ReplayTarget::Subscription {
            anyhow::bail!(
                "{url} is an events queue, which does not take deliveries: name the fan-out queue, or \
                 --stack"
            );
        }
        Ok(Some(url))
    }

    /// A sender to this target, with its queue if it uses one. Checks that the queue responds, so
    /// that a job without a queue leaves no ledger.
    ///
    /// # Errors
    /// When there is no queue, or it does not respond; says what to start.
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
        let sender = ReplaySender::to_queue(queue::reach(&queue).await?, &queue, topic);
        Ok((sender, Some(queue)))
    }
}
