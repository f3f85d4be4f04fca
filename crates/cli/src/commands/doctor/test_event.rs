//! Sends a sample event through the stack to one subscription. The event passes through the retry
//! queue and dispatch to the destination. The outcome of the delivery passes through the
//! dead-letter queue and the deadletter function to the bucket, from which doctor reads it.
//!
//! The event is sent as a replay of a dead letter that does not exist. Replays use queues that
//! publishers cannot reach, and their outcomes are recorded. The delivery has one attempt left, so
//! that it ends at once.
//!
//! The stack has no built-in test endpoint on purpose. Any publisher could send to a topic or
//! address that discards events, and its responses would prove nothing about a destination.

use adapters::aws_ports::with_limits;
use adapters::machine::Machine;
use adapters::queues::text_attribute;
use anyhow::Context as _;
use deadletters::DeadLetters;
use delivery::deadletter::stored::{Failure, StoredDeadLetter, read};
use delivery::delivery::replay::{Replay, ReplayOutcome, StoredReplayEnd};
use delivery::delivery::{DELIVERY_NAMESPACE, Delivery, Origin};
use delivery::event::{Element, Event, Input};
use delivery::ports::{Attribute, Clock as _, Message, MessageGroup};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::time::duration::SECOND_MS;
use delivery::wire::write_delivery;
use uuid::Uuid;

use super::failed;
use super::item::Item;
use crate::operations::container;
use crate::operations::event_report::elements;
use crate::operations::sample_events::sample_for;
use crate::operations::shell;
use crate::operations::stack::{self, Stack};
use crate::terminal::text;

/// The interval at which doctor checks whether the delivery has ended.
const EVERY_MS: u64 = SECOND_MS;

/// Sends a sample event, and waits for the outcome of its delivery for at most this many seconds.
pub(super) async fn sent(
    stack: &Stack,
    catalogue: &Catalogue,
    subscription: &Subscription,
    wait_seconds: u64,
) -> anyhow::Result<Item> {
    let name = &subscription.name;
    let item = format!("event to {name}");
    if let Some(topic) = subscription.destination.topic() {
        let help = "try a subscription of that topic";
        return Ok(Item::warning(item, format!("not sent: events are forwarded to {topic}"), help));
    }
    if subscription.paused {
        return Ok(Item::warning(
            item,
            "not sent: the subscription is paused",
            "resume the subscription",
        ));
    }
    let now_ms = Machine.now_ms();
    let event = event(catalogue, subscription)?;
    let delivery = delivery(event, subscription, now_ms)?;
    send(stack, &delivery).await?;
    let letters = container::of_stack(stack).await?;
    let replay = delivery
        .replay
        .as_ref()
        .context("the test delivery has no replay job, so its result cannot be found")?;
    let Some(end) = end(&letters, replay, now_ms + wait_seconds * SECOND_MS).await? else {
        let message = format!(
            "the delivery did not finish within {wait_seconds} s: it waits in a queue, or for its \
             destination"
        );
        let name = name.to_string();
        let show = ["lastmile", "destinations", "show", &name, "--stack", &stack.name];
        let show = shell::command(&show);
        let help = format!("run {show}, and check the log of dispatch");
        return Ok(Item::error(item, message, help));
    };
    // Remove the outcome, because it belongs to no job. If the user has no permission to delete it,
    // the object remains, but nothing reads it.
    _ = letters.container.delete(&letters.end_keys(replay.job()).await?).await;
    let took = text::duration(Machine.now_ms().saturating_sub(now_ms));
    Ok(match end.state {
        ReplayOutcome::Delivered => {
            let to = subscription.destination.display();
            Item::ok(item, format!("delivered to {to}; the result was recorded after {took}"))
        }
        ReplayOutcome::DeadAgain => of_dead_letter(item, &letters, &end, &stack.name).await?,
        ReplayOutcome::Dropped => Item::error(
            item,
            "the event was not delivered, and the subscription drops its dead letters",
            "see the log of dispatch for the response of the destination",
        ),
    })
}

/// Creates a sample event in the input format of the subscription's topic.
fn event(catalogue: &Catalogue, subscription: &Subscription) -> anyhow::Result<Event> {
    let topic = &subscription.name.topic;
    let input = catalogue.topic(topic).map_or(Input::Auto, |topic| topic.settings.input);
    let text = sample_for(subscription, input)?.into();
    let event = elements(catalogue, topic, &text).into_iter().find_map(|element| match element {
        Element::Event(event) => Some(event),
        Element::Malformed { .. } => None,
    });
    event.with_context(|| format!("the sample is not a valid event of {topic}"))
}

/// Creates a delivery with one attempt left, whose outcome is recorded.
fn delivery(event: Event, subscription: &Subscription, now_ms: u64) -> anyhow::Result<Delivery> {
    let name = &subscription.name;
    let message = format!("doctor {now_ms}");
    let letter = Uuid::new_v5(&DELIVERY_NAMESPACE, format!("{message} {name}").as_bytes());
    let replay = Replay::new(&format!("doctor-{now_ms}"), letter);
    let attempts = subscription.retry.max_attempts.saturating_sub(1);
    let delivery = Delivery::new(event, name.clone(), Origin { message, index: 0 }, now_ms);
    let replay = Some(replay.context("the name of the replay job is not valid")?);
    Ok(Delivery { attempts, replay, ..delivery })
}

async fn send(stack: &Stack, delivery: &Delivery) -> anyhow::Result<()> {
    let url = stack.output("RetryQueueUrl")?;
    let message = Message {
        body: delivery.event.text().clone(),
        topic: None,
        attribute: Attribute::Delivery(write_delivery(delivery)),
        group: MessageGroup::Subscription(delivery.subscription.clone()),
        receives: 0,
        unread: 0,
        wait_ms: 0,
    };
    let client = aws_sdk_sqs::Client::new(&with_limits(stack::aws().await));
    let mut send = client.send_message().queue_url(url).message_body(&*message.body);
    for (name, value) in message.attributes() {
        send = send.message_attributes(name, text_attribute(&value));
    }
    failed(send.send().await, || "the retry queue did not accept the event".to_owned())?;
    Ok(())
}

/// Waits until this time for the outcome of the delivery. Returns `None` if no outcome is recorded.
async fn end(
    letters: &DeadLetters,
    replay: &Replay,
    until_ms: u64,
) -> anyhow::Result<Option<StoredReplayEnd>> {
    loop {
        if let Some(end) = letters.ends(replay.job()).await?.remove(&replay.letter) {
            return Ok(Some(end));
        }
        if Machine.now_ms() >= until_ms {
            return Ok(None);
        }
        Machine.sleep(EVERY_MS).await;
    }
}

/// Creates the item for the dead letter that the event became.
async fn of_dead_letter(
    item: String,
    letters: &DeadLetters,
    end: &StoredReplayEnd,
    stack: &str,
) -> anyhow::Result<Item> {
    let letter = match &end.key {
        Some(key) => {
            let bytes = letters.container.get(key).await?;
            bytes.and_then(|bytes| read(key, &letters.container.prefix, &bytes).ok())
        }
        None => None,
    };
    let id = end.delivery.to_string();
    let more = shell::command(&["lastmile", "deadletters", "show", &id, "--stack", stack]);
    Ok(match letter {
        Some(letter) => {
            let Said { cause, help } = said(&letter);
            Item::error(item, format!("not delivered: {cause}"), format!("{help}; {more}"))
        }
        None => {
            Item::error(item, "not delivered: the event became a dead letter at its sink", more)
        }
    })
}

/// A description of the dead letter that the test event became, and advice.
struct Said {
    cause: String,
    help: &'static str,
}

fn said(letter: &StoredDeadLetter) -> Said {
    let Failure { destination, reason, detail, outcome, status, .. } = letter.failure();
    let answered = text::outcome(outcome.or(Some(reason)), status);
    let at = destination.map(|to| format!(" at {to}")).unwrap_or_default();
    let detail = detail.map(|detail| format!(", {detail}")).unwrap_or_default();
    let is_target = destination.is_some_and(|to| to.starts_with("arn:"));
    let help = if is_target { target_advice } else { advice };
    Said { cause: format!("{answered}{at}{detail}"), help: help(outcome, status) }
}

/// Returns advice about the failed call of an AWS target.
fn target_advice(outcome: Option<&str>, status: Option<u16>) -> &'static str {
    match (outcome, status) {
        (_, Some(403)) => "allow the call for the role InvokeRoleArn",
        (_, Some(404)) => "the resource does not exist: correct the arn of the subscription",
        (Some("Blocked"), None) => "see docs/guides/targets.md for allowed targets",
        (_, Some(_)) => "see docs/guides/targets.md for the meaning of each status",
        (Some(_) | None, None) => "the function cannot call the service; see the reason",
    }
}

fn advice(outcome: Option<&str>, status: Option<u16>) -> &'static str {
    match (outcome, status) {
        (_, Some(401 | 403)) => {
            "the destination refuses the credentials: check auth and the value of the secret"
        }
        (_, Some(404 | 410)) => "the path does not exist: correct the url of the subscription",
        (_, Some(_)) => {
            "the destination refuses the sample; see docs/guides/receivers.md for the meaning of \
             each status"
        }
        (Some("Blocked"), None) => {
            "add the host to the parameter AllowPrivateDestinations of the stack"
        }
        (Some("ResolutionError"), None) => {
            "the host name does not resolve: correct the url of the subscription"
        }
        (Some("TlsError"), None) => {
            "the certificate is not accepted: replace it, or add its authority to tls.caBundle"
        }
        (Some("SocketError" | "TimedOut"), None) => {
            "the function cannot reach the destination: check the address, its firewall, and the \
             network of the function"
        }
        (Some(_) | None, None) => "no request was made; see the reason",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_at_an_aws_target_has_advice_about_its_role_and_its_arn_and_none_about_addresses() {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let help = |destination: &str, properties: &str| {
            let blob = format!(r#"{{"event":{{}},"deadletterProperties":{{{properties}}}}}"#);
            let letter = delivery::deadletter::stored::read(key, "", blob.as_bytes()).unwrap();
            said(&StoredDeadLetter { destination: Some(destination.to_owned()), ..letter }).help
        };
        let queue = "arn:aws:sqs:eu-west-1:123456789012:q";
        let blocked = r#""deadletterreasoncode":"UndeliverableDueToBlockedAddress","lastdeliveryoutcome":"Blocked""#;
        assert!(help(queue, blocked).contains("docs/guides/targets.md"));
        assert!(help("http://10.0.0.1/", blocked).contains("AllowPrivateDestinations"));
        for (status, part) in [
            (403, "the role InvokeRoleArn"),
            (404, "correct the arn"),
            (400, "docs/guides/targets.md"),
        ] {
            assert!(target_advice(None, Some(status)).contains(part), "{status}");
        }
    }
}
