//! Whether subscriptions suit topics, and a policy of secrets, that others described.
//!
//! Separate from the reading of files, which reports the same where it is written: in a catalogue each owner
//! applies files of its own, and only all of them together show it.

use super::conversion::{impossible, never_batched, travels_alone};
use super::findings::{Finding, Message, Severity};
use super::sinks::Routes;
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::secret_policy::SecretPolicy;

/// The fields of findings.
const SCHEMA: &str = "schema";
const BATCH: &str = "batch";
const SINK: &str = "deadLetter.sink";
const SECRETS: &str = "secrets";

/// Findings about subscriptions that do not suit their topics, or whose dead letters have no way to their
/// sinks. `name` is what findings call the file of a subscription.
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
        let found =
            found.into_iter().filter_map(|(field, severity, it)| Some((field, severity, it?)));
        let refused = refused(subscription, secrets).map(|message| (SECRETS, error, message));
        let finding = |(field, severity, message): (&str, Severity, Message)| {
            message.at_beginning(severity, name(subscription), field)
        };
        findings.extend(found.chain(refused).map(finding));
    }
    findings
}

/// Why a subscription does not suit its topic, and which secrets it may not send, whoever described them.
#[must_use]
pub fn problems(subscription: &Subscription, topic: &Topic, secrets: &SecretPolicy) -> Vec<String> {
    let messages =
        impossible(subscription, topic).into_iter().chain(refused(subscription, secrets));
    messages.map(|message| message.to_string()).collect()
}

/// The secrets that it may not send.
fn refused(subscription: &Subscription, secrets: &SecretPolicy) -> impl Iterator<Item = Message> {
    let destination = &subscription.destination;
    let refused =
        destination.secrets_with_addresses().filter_map(|(name, to)| secrets.refusal(name, to));
    refused.map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Source, read};

    /// The findings about documents of several owners, each read without the others.
    fn found(owners: &[&str]) -> Vec<String> {
        let mut catalogue = Catalogue::default();
        let all = owners.iter().map(|text| read(&[Source { name: "f", text }]).catalogue);
        let all: Vec<Catalogue> = all.collect();
        all.iter().flat_map(Catalogue::topics).for_each(|topic| {
            // One that is only named must not replace one that is described.
            if catalogue.topic(&topic.name).is_none() || *topic != Topic::new(topic.name.clone()) {
                catalogue.add_topic(topic.clone());
            }
        });
        let subscriptions = all.iter().flat_map(Catalogue::subscriptions);
        subscriptions.for_each(|it| catalogue.add_subscription((**it).clone()));
        let findings = mismatches(&catalogue, |of| of.name.to_string());
        findings.iter().map(ToString::to_string).collect()
    }

    fn subscription(topic: &str, spec: &str) -> String {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: {topic}, name: s}}\n\
             spec: {{destination: {{url: 'https://example.com/', schema: cloudevents-structured}}{spec}}}\n"
        )
    }

    fn topic(name: &str, spec: &str) -> String {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: n, name: {name}}}\nspec: {{{spec}}}\n"
        )
    }

    #[test]
    fn a_subscription_has_to_suit_the_topic_that_another_owner_describes() {
        let (batched, opaque) =
            (subscription("t", ", batch: {maxEvents: 10}"), topic("t", "input: opaque"));
        assert_eq!(found(&[&batched]), [""; 0]);
        let findings = found(&[&batched, &opaque]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        for (finding, part) in findings.iter().zip([
            "n/t/s:1:1: error: schema: the topic n/t has input opaque",
            "n/t/s:1:1: warning: batch: not used: the topic n/t has input opaque",
        ]) {
            assert!(finding.starts_with(part), "{finding}");
        }
    }

    #[test]
    fn dead_letters_need_a_way_to_their_topic() {
        let sink = format!(
            "{}---\n{}",
            subscription("t", ", deadLetter: {sink: {topic: n/lost}}"),
            topic("lost", "")
        );
        let warned = "n/t/s:1:1: warning: deadLetter.sink: n/lost has no subscription: its dead letters go to the default container";
        assert_eq!(found(&[&sink]), [warned]);
        assert_eq!(found(&[&sink, &subscription("lost", "")]), [""; 0]);
        let mut catalogue = Catalogue::default();
        let reading = read(&[Source { name: "f", text: &sink }]).catalogue;
        reading.subscriptions().for_each(|it| catalogue.add_subscription((**it).clone()));
        let findings = mismatches(&catalogue, |of| of.name.to_string());
        let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings, ["n/t/s:1:1: error: deadLetter.sink: there is no topic n/lost"]);
    }
}
