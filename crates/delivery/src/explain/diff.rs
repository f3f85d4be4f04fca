//! Changes from one set of subscriptions to another, in the native form.
//!
//! Two catalogues in, changes out, by document and field by field. It compares effective values, so writing out a default
//! is not a change.
//!
//! Promises: two documents that differ in anything yield a change, and of a new one is shown what it states. Values of
//! headers, queries and credentials of addresses are never shown, since they may be secrets, only that they changed;
//! secrets are shown by name, with the host that receives them. A changed mapping is shown at its topic, not again at every
//! subscription.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use url::Url;

use crate::document::record::Record as _;
use crate::native::canonical;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::secret_policy::{NamePattern, SecretRule};
use crate::subscription::sink::Sink;
use crate::subscription::sink_text;
use crate::subscription::{Subscription, host_of};

/// What changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The secrets of this name or beginning, and the hosts that may have them.
    Secrets(NamePattern),
    /// Where notices go.
    Notifications,
    /// A topic.
    Topic(TopicName),
    /// A subscription.
    Subscription(SubscriptionName),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secrets(name) => write!(f, "secret {name}"),
            Self::Notifications => f.write_str("Notifications"),
            Self::Topic(name) => write!(f, "topic {name}"),
            Self::Subscription(name) => write!(f, "subscription {name}"),
        }
    }
}

/// How it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is new: what it states, by field. A default is left out.
    Added(Vec<(String, String)>),
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
            |new| stated(&topic(new)),
            |old, new| old == new,
            |old, new| changes(&topic(old), &topic(new)),
        )?;
        Some((Subject::Topic(name.clone()), change))
    });
    let of_subscriptions = subscriptions.into_iter().filter_map(|name| {
        let (before, after) = (old.subscription(name), new.subscription(name));
        let is_same = |old: &Arc<Subscription>, new: &Arc<Subscription>| {
            // Most are the same, and comparing them as documents takes long.
            old == new || values(old).written == values(new).written
        };
        let change = change(
            before,
            after,
            |new| added(new),
            is_same,
            |old, new| subscription_changes(old, new),
        )?;
        Some((Subject::Subscription(name.clone()), change))
    });
    let of_deployment = of_secrets(old, new).into_iter().chain(of_notices(old, new));
    of_deployment.chain(of_topics).chain(of_subscriptions).collect()
}

/// The change of the topic that notices go to.
fn of_notices(old: &Catalogue, new: &Catalogue) -> Option<(Subject, Change)> {
    let [old, new] = [old, new].map(|of| of.settings().notices.as_ref());
    let field = || "topic".to_owned();
    let changes = |old: &TopicName, new: &TopicName| {
        vec![FieldChange { field: field(), old: old.to_string(), new: new.to_string() }]
    };
    let added = |new: &TopicName| vec![(field(), new.to_string())];
    let change = change(old, new, added, |old, new| old == new, changes)?;
    Some((Subject::Notifications, change))
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
        let change =
            change(old, new, |new| vec![("hosts".to_owned(), hosts(new))], |a, b| a == b, changes)?;
        Some((Subject::Secrets(name.clone()), change))
    });
    changes.collect()
}

fn change<T>(
    old: Option<&T>,
    new: Option<&T>,
    added: impl FnOnce(&T) -> Vec<(String, String)>,
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

/// The values of a topic; none of them is secret.
fn topic(topic: &Topic) -> Values {
    let shown = flat(&Json::Object(topic.settings.shown()));
    Values { written: flat(&canonical::topic_spec(topic)), shown }
}

/// The values of a document by the paths of their fields.
struct Values {
    /// As a document states them.
    written: BTreeMap<String, Json>,
    /// Without secrets.
    shown: BTreeMap<String, Json>,
}

impl Values {
    /// The text of a value.
    fn text(&self, path: &str) -> String {
        match self.shown.get(path) {
            None | Some(Json::Null) => "not set".to_owned(),
            Some(value) => flow(value),
        }
    }
}

/// The parts of a value that are not shown: credentials and query of an address, and values of headers by name.
fn hidden(value: &Json) -> Vec<(String, String)> {
    match value {
        Json::String(text) => {
            let Ok(url) = Url::parse(text) else { return Vec::new() };
            let user = format!("{}:{}", url.username(), url.password().unwrap_or_default());
            let query = url.query().unwrap_or_default().to_owned();
            let parts = [("user", user), ("query", query)].into_iter();
            let parts = parts.filter(|(_, part)| !matches!(part.as_str(), "" | ":"));
            parts.map(|(name, part)| (name.to_owned(), part)).collect()
        }
        Json::Array(elements) => {
            let of_header = |header: &Json| {
                Some((header.get("name")?.as_str()?.to_owned(), header.get("value")?.to_string()))
            };
            elements.iter().filter_map(of_header).collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => Vec::new(),
    }
}

/// A value as YAML writes it on one line.
fn flow(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(elements) => {
            format!("[{}]", elements.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
    }
}

/// All values of a subscription.
fn values(of: &Subscription) -> Values {
    let (destination, dead_letter) = (&of.destination, &of.dead_letter);
    let mut shown = flat(&canonical::shown_spec(of));
    // Their paths may be credentials too.
    shown.insert("destination.url".to_owned(), json!(destination.display()));
    if let Sink::Address(_) = dead_letter.sink {
        shown.insert("deadLetter.sink".to_owned(), json!(sink_text(dead_letter)));
    }
    Values { written: flat(&canonical::whole_spec(of)), shown }
}

/// The values in a mapping by the paths of their fields.
fn flat(of: &Json) -> BTreeMap<String, Json> {
    fn add(path: String, of: &Json, found: &mut BTreeMap<String, Json>) {
        match of {
            Json::Object(fields) => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    add(format!("{path}{dot}{name}"), value, found);
                }
            }
            Json::Null => {}
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                found.insert(path, of.clone());
            }
        }
    }
    let mut found = BTreeMap::new();
    add(String::new(), of, &mut found);
    found
}

/// All fields of a document with their texts.
fn stated(values: &Values) -> Vec<(String, String)> {
    values.written.keys().map(|path| (path.clone(), values.text(path))).collect()
}

/// The fields in which two documents differ.
fn changes(old: &Values, new: &Values) -> Vec<FieldChange> {
    let paths: BTreeSet<&String> = old.written.keys().chain(new.written.keys()).collect();
    let differing =
        paths.into_iter().filter(|path| old.written.get(*path) != new.written.get(*path));
    let changed = differing.map(|path| {
        let (before, after) = (old.text(path), new.text(path));
        let [was, is] = [old, new].map(|of| of.written.get(path).map(hidden).unwrap_or_default());
        let is_hidden = before == after || !is.is_empty() && was != is;
        let hidden = if is_hidden { " (what is not shown changed)" } else { "" };
        FieldChange { field: path.clone(), old: before, new: format!("{after}{hidden}") }
    });
    changed.collect()
}

/// The fields that a new subscription states, and the hosts that get its secrets.
fn added(new: &Subscription) -> Vec<(String, String)> {
    let values = values(new);
    let stated = flat(&canonical::spec(new)).into_keys();
    let mut shown: Vec<(String, String)> =
        stated.map(|path| (path.clone(), values.text(&path))).collect();
    if new.destination.secrets().next().is_some() {
        shown.push(("secrets".to_owned(), secrets(new)));
    }
    shown
}

/// The fields in which two subscriptions of one name differ. Another host receives secrets although nothing else of them
/// changes.
fn subscription_changes(old: &Subscription, new: &Subscription) -> Vec<FieldChange> {
    let mut changes = changes(&values(old), &values(new));
    if old.destination.host() != new.destination.host() && secrets(old) != secrets(new) {
        let field = "secrets".to_owned();
        changes.push(FieldChange { field, old: secrets(old), new: secrets(new) });
    }
    changes
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
