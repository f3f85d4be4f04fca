//! Checks that the queues exist, hide received messages for long enough, and have the right
//! dead-letter queues.

use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use delivery::time::duration::SECOND_MS;
use futures::future::join_all;
use serde::Deserialize;

use super::failed;
use super::item::Item;
use crate::operations::queues::{Expected, LAST_RESORT, QUEUES};
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::terminal::advice::chain;
use crate::terminal::advice::is_denied;
use crate::terminal::text;

/// A queue of the stack, and its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) expected: Expected,
    pub(super) arn: String,
    visibility_seconds: u64,
    gives_up_to: Option<String>,
    messages: u64,
}

#[derive(Deserialize)]
struct RedrivePolicy {
    #[serde(rename = "deadLetterTargetArn")]
    target: String,
}

pub(super) async fn examine(aws: &SdkConfig, stack: &Stack) -> (Vec<Queue>, Vec<Item>) {
    let client = Client::new(aws);
    let reads = QUEUES.map(|queue| read(&client, stack, queue));
    let (mut queues, mut items) = (Vec::new(), Vec::new());
    for (expected, read) in QUEUES.iter().zip(join_all(reads).await) {
        match read {
            Ok(queue) => queues.push(queue),
            Err(why) if !is_denied(&why) => items.push(Item::error(
                expected.name,
                chain(&why),
                "an update does not recreate a deleted queue: deploy the stack under another name",
            )),
            Err(why) => items.push(Item::not_checked(expected.name, &why)),
        }
    }
    items.extend(judge(&queues, stack.dispatch_timeout_ms().unwrap_or_default(), &stack.name));
    (queues, items)
}

async fn read(client: &Client, stack: &Stack, expected: Expected) -> anyhow::Result<Queue> {
    let ask = client.get_queue_attributes().queue_url(stack.output(&expected.output())?);
    let answer = ask.attribute_names(QueueAttributeName::All).send().await;
    let attributes =
        failed(answer, || "the queue attributes cannot be read".to_owned())?.attributes;
    let attributes = attributes.unwrap_or_default();
    let value = |name| attributes.get(&name).map(String::as_str);
    let number = |name| value(name).and_then(|text| text.parse().ok());
    let policy = value(QueueAttributeName::RedrivePolicy);
    let policy = policy.and_then(|text| serde_json::from_str::<RedrivePolicy>(text).ok());
    Ok(Queue {
        expected,
        arn: value(QueueAttributeName::QueueArn).context("the queue has no ARN")?.to_owned(),
        visibility_seconds: number(QueueAttributeName::VisibilityTimeout).unwrap_or_default(),
        gives_up_to: policy.map(|policy| policy.target),
        messages: number(QueueAttributeName::ApproximateNumberOfMessages).unwrap_or_default(),
    })
}

/// Returns items about problems of these queues. `timeout_ms` is the timeout of the functions.
fn judge(queues: &[Queue], timeout_ms: u64, stack: &str) -> Vec<Item> {
    const AGAIN: &str = "deploy the stack again, or revert the manual change";
    let timeout_seconds = timeout_ms / SECOND_MS;
    let arn = |name: &str| {
        queues.iter().find(|queue| queue.expected.name == name).map(|queue| &queue.arn)
    };
    let mut items = Vec::new();
    for queue in queues {
        let Queue { expected, visibility_seconds, gives_up_to, messages, .. } = queue;
        if expected.mapping.is_some() && *visibility_seconds < timeout_seconds {
            let message = format!(
                "the visibility timeout of {visibility_seconds} s is shorter than the function \
                 timeout of {timeout_seconds} s, so messages can be delivered twice"
            );
            items.push(Item::error(expected.name, message, AGAIN));
        }
        let target = expected.gives_up_to.and_then(arn);
        if gives_up_to.as_ref() != target && (expected.gives_up_to.is_none() || target.is_some()) {
            let shown = |receiver: Option<&str>| receiver.unwrap_or("nothing").to_owned();
            let message = format!(
                "the redrive policy moves messages to {} instead of {}",
                shown(gives_up_to.as_deref()),
                shown(expected.gives_up_to)
            );
            items.push(Item::error(expected.name, message, AGAIN));
        }
        if expected.name == LAST_RESORT && *messages > 0 {
            let message =
                format!("{} that storage refused", text::counted(*messages, "dead letter"));
            let help = shell::command(&["lastmile", "deadletters", "rescue", "--stack", stack]);
            items.push(Item::warning(expected.name, message, help));
        }
    }
    if items.is_empty() && queues.len() == QUEUES.len() {
        items.push(Item::ok("queues", format!("all {} are configured correctly", queues.len())));
    }
    items
}

/// Creates queues as the template defines them, for tests.
#[cfg(test)]
pub(super) fn samples() -> Vec<Queue> {
    let arn = |name: &str| format!("arn:aws:sqs:eu-west-1:1:live-{name}");
    let queue = |expected: Expected| Queue {
        expected,
        arn: arn(expected.name),
        visibility_seconds: 720,
        gives_up_to: expected.gives_up_to.map(arn),
        messages: u64::from(expected.name != LAST_RESORT),
    };
    QUEUES.map(queue).to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::item::State;
    use super::*;

    /// Returns the name and the state of each item.
    fn judged(change: impl Fn(&mut Vec<Queue>)) -> Vec<(String, State)> {
        let mut queues = samples();
        change(&mut queues);
        judge(&queues, 120_000, "live").into_iter().map(|item| (item.item, item.state)).collect()
    }

    #[test]
    fn queues_as_the_template_makes_them_are_one_line() {
        assert_eq!(judged(|_| {}), [("queues".to_owned(), State::Ok)]);
    }

    #[test]
    fn a_queue_that_shows_messages_again_too_early_or_gives_up_elsewhere_is_named() {
        let expected = |name: &str, state| vec![(name.to_owned(), state)];
        assert_eq!(
            judged(|queues| queues[1].visibility_seconds = 119),
            expected("RetryQueue", State::Error)
        );
        assert_eq!(
            judged(|queues| queues[1].visibility_seconds = 120),
            expected("queues", State::Ok)
        );
        assert_eq!(
            judged(|queues| queues[0].gives_up_to = None),
            expected("EventsQueue", State::Error)
        );
        let other = Some("arn:aws:sqs:eu-west-1:1:other".to_owned());
        assert_eq!(
            judged(|queues| queues[4].gives_up_to.clone_from(&other)),
            expected("DeadLetterQueue", State::Error)
        );
        // No function reads this queue.
        assert_eq!(
            judged(|queues| queues[5].visibility_seconds = 0),
            expected("queues", State::Ok)
        );
    }

    #[test]
    fn what_waits_in_the_last_resort_queue_is_a_warning() {
        assert_eq!(
            judged(|queues| queues[5].messages = 1),
            [(LAST_RESORT.to_owned(), State::Warning)]
        );
    }

    #[test]
    fn queues_that_could_not_be_read_are_not_fine() {
        assert_eq!(judged(|queues| drop(queues.pop())), []);
    }
}
