//! Checks whether a deployed stack may write to the dead-letter sinks of its subscriptions.
//!
//! Separate from the other lints because it needs the permissions of a stack. The functions of a
//! stack may write to the stack's bucket for dead letters and to the ARNs in `ExtraSinkArns`. A
//! queue must also be in the region of the stack, and must not be one of the stack's own queues.
//!
//! Does not evaluate the policies of buckets and queues.

use std::fmt;

use delivery::subscription::Subscription;
use delivery::subscription::name::{SubscriptionName, segment};
use delivery::subscription::sink::{Container, Sink, SinkQueue};
use dialects::{Finding, Severity};

use crate::operations::stack::Stack;
use delivery::subscription::aws::covers;

/// A problem with a field of a subscription, and advice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let help = self.help.as_ref().map(|help| format!("; {help}"));
        write!(f, "{}{}", self.message, help.unwrap_or_default())
    }
}

impl Problem {
    pub(crate) fn warning(message: String) -> Self {
        Self { severity: Severity::Warning, message, help: None }
    }

    /// Creates a finding at the beginning of a file.
    pub(crate) fn in_file(self, file: String, field: &str) -> Finding {
        let Self { severity, message, help } = self;
        let field = field.to_owned();
        Finding { severity, file, line: 1, column: 1, field, message, help, reference: None }
    }

    pub(crate) fn refused(message: String, help: String) -> Self {
        Self { severity: Severity::Error, message, help: Some(help) }
    }
}

/// Returns the reason why the dead letters of a subscription cannot be written to its sink; `None`
/// if they can.
pub(crate) fn problem(subscription: &Subscription, stack: &Stack) -> Option<Problem> {
    match &subscription.dead_letter.sink {
        Sink::Container(container) => refused_container(&subscription.name, container, stack),
        Sink::Queue(queue) => refused_queue(&subscription.name, queue, stack),
        // None of these needs a check: the default container belongs to the stack, an address needs
        // no AWS permission, and events for a topic use the stack's own events queue.
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
    let [namespace, topic, subscription_segment] =
        [&name.topic.namespace, &name.topic.topic, &name.name].map(|part| segment(part));
    let blobs = format!("{folder}{namespace}/{topic}/{subscription_segment}/");
    // IAM decides by the key of each object, so an ARN that covers only the blobs of this
    // subscription is enough. Between these two parts, a key contains a date and a GUID, which
    // differ for each blob.
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
            "{name} sends dead letters to {sink}, which is not in {region}, the region of {stack}"
        );
        let help = format!(
            "functions can send only to queues in their own region: use a queue in {region}"
        );
        return Some(Problem::refused(message, help));
    }
    if stack.own_queues().any(|url| queue.is_at(url)) {
        let message = format!(
            "{name} sends dead letters to {sink}, a queue of the stack {} itself",
            stack.name
        );
        let help = "the messages would be read as events or deliveries again: use another queue"
            .to_owned();
        return Some(Problem::refused(message, help));
    }
    let Some(arn) = arn else {
        let message =
            format!("{sink} is not an AWS host, so the permission of the stack cannot be checked");
        return Some(Problem::warning(message));
    };
    let may_send = stack.extra_sinks().any(|extra| covers(extra, &[&arn]));
    (!may_send).then(|| refused(name, &sink, &arn, stack))
}

fn refused(name: &SubscriptionName, sink: &str, arn: &str, stack: &Stack) -> Problem {
    let stack = &stack.name;
    let message = format!(
        "{name} sends dead letters to {sink}, but the stack {stack} has no permission to write \
         there"
    );
    Problem::refused(message, format!("add {arn} to the parameter ExtraSinkArns of the stack"))
}
