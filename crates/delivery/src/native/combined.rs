//! Checks subscriptions against topics and secret policies that belong to other owners.
//!
//! This module is separate from the reader of files, which reports the same problems at their
//! positions. In a shared catalogue each owner applies separate files, and only their combination
//! shows these problems.

use super::conversion::{impossible, never_batched, travels_alone};
use super::sinks::Routes;
use crate::document::findings::{Finding, Message, Severity};
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::secret_policy::SecretPolicy;

/// Field name in findings about the schema.
const SCHEMA: &str = "schema";
/// Field name in findings about batches.
const BATCH: &str = "batch";
/// Field name in findings about the sink of dead letters.
const SINK: &str = "deadLetter.sink";
const SECRETS: &str = "secrets";

/// Returns findings about subscriptions that do not fit their topics, or whose dead letters cannot
/// reach their sinks. `name` returns the file name that findings about a subscription state.
pub fn mismatches(catalogue: &Catalogue, name: impl Fn(&Subscription) -> String) -> Vec<Finding> {
    let topics: Vec<Topic> = catalogue.topics().cloned().collect();
    let routes = Routes::new(
        topics.iter().map(|topic| &topic.name),
        &topics,
        catalogue.subscriptions().map(|subscription| &subscription.name),
        catalogue.subscriptions().map(AsRef::as_ref),
    );
    let (secrets, error) = (&catalogue.settings().secrets, Severity::Error);
    let mut findings = Vec::new();
    for subscription in catalogue.subscriptions() {
        let topic = catalogue.topic(&subscription.name.topic);
        let missing = routes.unknown(subscription);
        let warned = if missing.is_none() { routes.routing_warning(subscription) } else { None };
        let found = [
            (SCHEMA, error, topic.and_then(|topic| impossible(subscription, topic))),
            (BATCH, error, never_batched(subscription)),
            (BATCH, Severity::Warning, topic.and_then(|topic| travels_alone(subscription, topic))),
            (SINK, error, missing.map(|topic| Message::new(format!("there is no topic {topic}")))),
            (SINK, Severity::Warning, warned),
        ];
        let found = found
            .into_iter()
            .filter_map(|(field, severity, message)| Some((field, severity, message?)));
        let refused = refused(subscription, secrets).map(|message| (SECRETS, error, message));
        let finding = |(field, severity, message): (&str, Severity, Message)| {
            message.at_beginning(severity, name(subscription), field)
        };
        findings.extend(found.chain(refused).map(finding));
    }
    findings
}

/// Returns error messages: why a subscription does not fit its topic, and which secrets it must not
/// send.
#[must_use]
pub fn problems(subscription: &Subscription, topic: &Topic, secrets: &SecretPolicy) -> Vec<String> {
    let messages =
        impossible(subscription, topic).into_iter().chain(refused(subscription, secrets));
    messages.map(|message| message.to_string()).collect()
}

/// Returns one message for each secret that the policy does not allow for its host.
fn refused(subscription: &Subscription, secrets: &SecretPolicy) -> impl Iterator<Item = Message> {
    let destination = &subscription.destination;
    let refused =
        destination.secrets_with_addresses().filter_map(|(name, to)| secrets.refusal(name, to));
    refused.map(Into::into)
}
