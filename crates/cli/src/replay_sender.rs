//! The sender of a replay, as options name its target and its queue.
//!
//! Separate from `deadletters`, which takes clients that are ready: only the command line knows the
//! queue of `lastmile dev`, and how to reach a queue on this machine.

use anyhow::Context as _;
use deadletters::replay::sender::{ReplaySender, ReplayTarget};
use delivery::address::PrivateDestinations;
use url::Url;

use crate::queue::{self, DEV_EVENTS_QUEUE};

/// The events queue of a replay: the given one, that in the ledger of the job, or that of
/// `lastmile dev`.
///
/// # Errors
/// When a queue is given for a target that uses none.
pub(crate) fn queue_url(
    target: &ReplayTarget,
    given: Option<Url>,
    in_ledger: Option<&str>,
) -> anyhow::Result<Url> {
    if matches!(target, ReplayTarget::Url(_)) && given.is_some() {
        anyhow::bail!(
            "--queue-url cannot be used here: events that are posted to a URL do not use a queue"
        );
    }
    match given {
        Some(url) => Ok(url),
        None => {
            let url = in_ledger.unwrap_or(DEV_EVENTS_QUEUE).parse();
            url.context("the queue of the job is not a valid URL")
        }
    }
}

/// A sender to this target. Checks that the queue responds, so that a job without a queue leaves no
/// ledger. `private` names the private addresses that are allowed.
///
/// # Errors
/// When the queue does not respond; says what to start.
pub(crate) async fn open(
    target: &ReplayTarget,
    queue: &Url,
    private: &str,
) -> anyhow::Result<ReplaySender> {
    let topic = match target {
        ReplayTarget::Url(url) => {
            let allowed = PrivateDestinations::parse(private).map_err(anyhow::Error::msg)?;
            return ReplaySender::to_url(url.clone(), allowed);
        }
        ReplayTarget::Topic(topic) => Some(topic.clone()),
        ReplayTarget::Subscription => None,
    };
    Ok(ReplaySender::to_queue(queue::reach(queue).await?, queue, topic))
}
