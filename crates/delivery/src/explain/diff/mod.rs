//! What changes when one set of subscriptions replaces another.
//!
//! Two catalogues in, changes out, by subscription and field by field. It compares effective
//! values, so writing out a default is not a change.
//!
//! Promises: two subscriptions that differ in anything yield a change, and of a new one is shown what
//! leaves with its requests and where to. Values of headers, queries and credentials of addresses are
//! never shown, since they may be secrets, only that they changed; secrets are shown by name, with the
//! host that receives them. A changed mapping is shown at its topic, not again at every subscription.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::event::mapping::{Field, Mapping};
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::filter::Filter;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::policy::{reply, settings, sink_text};
use crate::subscription::secret_policy::{NamePattern, SecretRule};
use crate::subscription::{Subscription, host_of};
use crate::time::moment::rfc3339;

/// What changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The secrets of this name or beginning, and the hosts that may have them.
    Secrets(NamePattern),
    /// A topic.
    Topic(TopicName),
    /// A subscription.
    Subscription(SubscriptionName),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secrets(name) => write!(f, "secret {name}"),
            Self::Topic(name) => write!(f, "topic {name}"),
            Self::Subscription(name) => write!(f, "subscription {name}"),
        }
    }
}

/// How it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is new: what a reader has to know of it, by field. A value that is usual is left out.
    Added(Vec<(&'static str, String)>),
    /// It has other values.
    Changed(Vec<FieldChange>),
    /// It is gone.
    Removed,
}

/// One field with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Its name.
    pub field: String,
    /// What it was.
    pub old: String,
    /// What it will be.
    pub new: String,
}

/// Every change from the old catalogue to the new one: where secrets may be sent, topics by name, then
/// subscriptions by name.
#[must_use]
pub fn diff(old: &Catalogue, new: &Catalogue) -> Vec<(Subject, Change)> {
    let topics: BTreeSet<&TopicName> =
        old.topics().chain(new.topics()).map(|topic| &topic.name).collect();
    let both = old.subscriptions().chain(new.subscriptions());
    let subscriptions: BTreeSet<&SubscriptionName> =
        both.map(|subscription| &subscription.name).collect();
    let of_topics = topics.into_iter().filter_map(|name| {
        let change = change(
            old.topic(name),
            new.topic(name),
            topic_added,
            |old, new| old == new,
            topic_changes,
        )?;
        Some((Subject::Topic(name.clone()), change))
    });
    let of_subscriptions = subscriptions.into_iter().filter_map(|name| {
        let (before, after) = (old.subscription(name), new.subscription(name));
        let change = change(before, after, added, same, changes)?;
        Some((Subject::Subscription(name.clone()), change))
    });
    of_secrets(old, new).into_iter().chain(of_topics).chain(of_subscriptions).collect()
}

fn of_secrets(old: &Catalogue, new: &Catalogue) -> Vec<(Subject, Change)> {
    let [old, new] = [old, new].map(|of| of.settings().secrets.rules().unwrap_or_default());
    let names: BTreeSet<&NamePattern> = old.iter().chain(new).map(|rule| &rule.name).collect();
    let hosts = |rule: &SecretRule| listed(rule.hosts.iter().map(ToString::to_string));
    let changes = names.into_iter().filter_map(|name| {
        let [old, new] = [old, new].map(|rules| rules.iter().find(|rule| rule.name == *name));
        let changes = |old: &SecretRule, new: &SecretRule| {
            vec![FieldChange { field: "hosts".to_owned(), old: hosts(old), new: hosts(new) }]
        };
        let change = change(old, new, |new| vec![("hosts", hosts(new))], |a, b| a == b, changes)?;
        Some((Subject::Secrets(name.clone()), change))
    });
    changes.collect()
}

fn change<T>(
    old: Option<&T>,
    new: Option<&T>,
    added: impl FnOnce(&T) -> Vec<(&'static str, String)>,
    same: impl FnOnce(&T, &T) -> bool,
    changes: impl FnOnce(&T, &T) -> Vec<FieldChange>,
) -> Option<Change> {
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some(Change::Added(added(new))),
        (Some(_), None) => Some(Change::Removed),
        (Some(old), Some(new)) => (!same(old, new)).then(|| Change::Changed(changes(old, new))),
    }
}

fn topic_added(new: &Topic) -> Vec<(&'static str, String)> {
    let from = listed(new.from.iter().map(ToString::to_string));
    if new.from.is_empty() { Vec::new() } else { vec![("from", from)] }
}

fn topic_changes(old: &Topic, new: &Topic) -> Vec<FieldChange> {
    let texts = |topic: &Topic| {
        [
            ("input", topic.input.as_str().to_owned()),
            ("maxReplies", topic.max_replies.to_string()),
            ("from", listed(topic.from.iter().map(ToString::to_string))),
            ("mapping", mapping_text(&topic.mapping)),
        ]
    };
    let both = texts(old).into_iter().zip(texts(new));
    let differing = both.filter(|((_, old), (_, new))| old != new);
    let changed = |((field, old), (_, new)): ((&str, String), (&str, String))| FieldChange {
        field: field.to_owned(),
        old,
        new,
    };
    differing.map(changed).collect()
}

fn mapping_text(mapping: &Mapping) -> String {
    listed(mapping.fields().into_iter().filter_map(|(name, field)| field_text(name, field)))
}

fn field_text(name: &str, field: &Field) -> Option<String> {
    match (&field.path, &field.default) {
        (Some(path), Some(default)) => Some(format!("{name} from {path}, else {default:?}")),
        (Some(path), None) => Some(format!("{name} from {path}")),
        (None, Some(default)) => Some(format!("{name} {default:?}")),
        (None, None) => None,
    }
}

/// Whether two subscriptions of one name are the same but for the mapping of their topic.
fn same(old: &Arc<Subscription>, new: &Arc<Subscription>) -> bool {
    **old == Subscription { mapping: Arc::clone(&old.mapping), ..Subscription::clone(new) }
}

/// Where requests and dead letters of a new subscription go, and what requests carry.
fn added(new: &Arc<Subscription>) -> Vec<(&'static str, String)> {
    let (destination, dead_letter) = (&new.destination, &new.dead_letter);
    let mut shown = vec![("destination.url", destination.display())];
    let usual = [
        ("headers", !destination.headers.is_empty(), text_of(new, "headers")),
        ("auth", destination.auth.is_some(), text_of(new, "auth")),
        ("signing", destination.signing.is_some(), text_of(new, "signing")),
        ("secrets", destination.secrets().next().is_some(), secrets(new)),
        ("filter", new.filter != Filter::EVERYTHING, new.filter.to_string()),
        ("paused", new.paused, new.paused.to_string()),
        ("reply", new.reply.is_some(), reply(new).text),
    ];
    shown.extend(usual.into_iter().filter(|of| of.1).map(|(field, _, text)| (field, text)));
    shown.push(("deadLetter.sink", sink_text(dead_letter)));
    shown
}

/// The setting of this name as it is shown.
fn text_of(subscription: &Subscription, field: &str) -> String {
    let found = settings(subscription).into_iter().find(|setting| setting.field == field);
    found.map(|setting| setting.text).unwrap_or_default()
}

/// Texts with commas between, or `none`.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// The names of the secrets that requests use, and the hosts that receive them.
fn secrets(subscription: &Subscription) -> String {
    let destination = &subscription.destination;
    let names: BTreeSet<String> = destination.secrets().map(ToString::to_string).collect();
    if names.is_empty() {
        return listed(names.into_iter());
    }
    let hosts: BTreeSet<String> =
        destination.secrets_with_addresses().map(|(_, to)| host_of(to)).collect();
    format!("{} to {}", listed(names.into_iter()), listed(hosts.into_iter()))
}

/// The fields in which two different subscriptions of one name differ; never empty.
fn changes(old: &Arc<Subscription>, new: &Arc<Subscription>) -> Vec<FieldChange> {
    let mut changes = own_changes(old, new);
    for (before, after) in settings(old).into_iter().zip(settings(new)) {
        if before.value != after.value && !changes.iter().any(|change| change.field == before.field)
        {
            changes.push(FieldChange { field: before.field, old: before.text, new: after.text });
        }
    }
    if changes.is_empty() {
        let [old, new] = ["as it was", "otherwise"]
            .map(|when| format!("{when}, in a field that has no name here"));
        changes.push(FieldChange { field: "other".to_owned(), old, new });
    }
    changes
}

/// The fields that are not part of the policy.
fn own_changes(old: &Subscription, new: &Subscription) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let mut compare = |field: &str, differ: bool, show: fn(&Subscription) -> String| {
        if differ {
            let (before, after) = (show(old), show(new));
            let hidden = if before == after { " (what is not shown changed)" } else { "" };
            let (field, new) = (field.to_owned(), format!("{after}{hidden}"));
            changes.push(FieldChange { field, old: before, new });
        }
    };
    compare("dialect", old.dialect != new.dialect, |of| of.dialect.as_str().to_owned());
    let (from, to) = (&old.destination, &new.destination);
    compare("destination.url", from.url != to.url, |of| of.destination.display());
    // Another host receives secrets although nothing else of them changes.
    compare("secrets", from.host() != to.host() && secrets(old) != secrets(new), secrets);
    // Also what is not shown of it.
    compare("auth", from.auth != to.auth, |of| text_of(of, "auth"));
    compare("headers", from.headers != to.headers, |of| text_of(of, "headers"));
    compare("filter", old.filter != new.filter, |of| of.filter.to_string());
    compare("paused", old.paused != new.paused, |of| of.paused.to_string());
    compare("reply", old.reply != new.reply, |of| reply(of).text);
    compare("expires", old.expires_ms != new.expires_ms, |of| {
        of.expires_ms.map_or("never".to_owned(), rfc3339)
    });
    // A visible change is among the settings.
    let (from, to) = (&old.dead_letter, &new.dead_letter);
    compare("deadLetter.sink", from.sink != to.sink && sink_text(from) == sink_text(to), |of| {
        sink_text(&of.dead_letter)
    });
    compare("deadLetter.layout", old.dead_letter.layout != new.dead_letter.layout, |of| {
        format!("{:?}", of.dead_letter.layout).to_lowercase()
    });
    changes
}

#[cfg(test)]
mod tests;
