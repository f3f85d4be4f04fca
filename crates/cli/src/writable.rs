//! Whether a deployed stack may write where subscriptions send their dead letters.
//!
//! Separate from the other remarks because it holds two things against each other that nobody else
//! does: a sink, and what the stack's functions can write to: the ARNs in its `ExtraSinkArns`,
//! queues of its own region, and none of the queues that it reads itself.
//!
//! Does not ask the place itself: what a bucket's or queue's own policy allows or denies is not
//! looked at.

use delivery::subscription::Subscription;
use delivery::subscription::name::{SubscriptionName, segment};
use delivery::subscription::sink::{Container, Sink, SinkQueue};

use crate::arn::covers;
use crate::stack::Stack;

/// What is wrong with a sink.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The stack may not write there.
    Refused {
        /// What it may not do.
        message: String,
        /// What to add where.
        help: String,
    },
    /// Nothing tells whether it may.
    Untold(String),
}

/// Why the dead letters of a subscription may not get to its sink, if they may not.
pub(crate) fn problem(subscription: &Subscription, stack: &Stack) -> Option<Problem> {
    match &subscription.dead_letter.sink {
        Sink::Container(container) => refused_container(&subscription.name, container, stack),
        Sink::Queue(queue) => refused_queue(&subscription.name, queue, stack),
        // Its own container needs no permission, an endpoint is asked over HTTP, a topic's letters
        // go through its own events queue.
        Sink::DefaultContainer | Sink::Address(_) | Sink::Topic(_) | Sink::None => None,
    }
}

fn refused_container(
    name: &SubscriptionName,
    container: &Container,
    stack: &Stack,
) -> Option<Problem> {
    if stack.dead_letter_bucket() == Some(container.bucket.as_str()) {
        return None;
    }
    let folder = format!("arn:{}:s3:::{container}/", stack.partition());
    let [namespace, topic, own] =
        [&name.topic.namespace, &name.topic.topic, &name.name].map(|of| segment(of));
    let blobs = format!("{folder}{namespace}/{topic}/{own}/");
    let may_write = stack.extra_sinks().any(|arn| covers(arn, &[&blobs, ".json"]));
    (!may_write).then(|| refused(name, &format!("s3://{container}"), &format!("{folder}*"), stack))
}

fn refused_queue(name: &SubscriptionName, queue: &SinkQueue, stack: &Stack) -> Option<Problem> {
    let (sink, arn) = (format!("sqs://{queue}"), queue.arn());
    let elsewhere =
        |region: &&str| arn.as_deref().is_some_and(|arn| arn.split(':').nth(3) != Some(region));
    if let Some(region) = stack.region().filter(elsewhere) {
        let stack = &stack.name;
        let message = format!(
            "{name} sends its dead letters to {sink}, outside of {region}, the region of {stack}"
        );
        let help =
            format!("functions reach queues of their own region alone: name one in {region}");
        return Some(Problem::Refused { message, help });
    }
    if stack.own_queues().any(|own| is_queue(own, &queue.url())) {
        let message = format!(
            "{name} sends its dead letters to {sink}, a queue of the stack {} itself",
            stack.name
        );
        let help =
            "what lies there is read as an event or a delivery, and comes back: name another queue"
                .to_owned();
        return Some(Problem::Refused { message, help });
    }
    let Some(arn) = arn else {
        let message = format!(
            "{sink} is none of AWS's own hosts: nothing tells whether the stack may send there"
        );
        return Some(Problem::Untold(message));
    };
    let may_send = stack.extra_sinks().any(|extra| covers(extra, &[&arn]));
    (!may_send).then(|| refused(name, &sink, &arn, stack))
}

/// Whether two URLs are of one queue, by account and name: a host has several spellings.
fn is_queue(own: &str, url: &str) -> bool {
    let path = |url: &str| url.rsplit('/').take(2).map(str::to_owned).collect::<Vec<String>>();
    path(own) == path(url)
}

fn refused(name: &SubscriptionName, sink: &str, arn: &str, stack: &Stack) -> Problem {
    Problem::Refused {
        message: format!(
            "{name} sends its dead letters to {sink}, where the stack {} may not write",
            stack.name
        ),
        help: format!("add {arn} to the parameter ExtraSinkArns of the stack"),
    }
}
