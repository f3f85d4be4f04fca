//! Compares two sets of subscriptions, and returns the changed fields of their native documents.
//!
//! The module compares the effective values of two catalogues, document by document and field by
//! field, so stating a default is not a change. A new document is listed with the values that it
//! states. A changed input mapping is listed once, at its topic, and not at each subscription.
//!
//! Header values may be secret, and so may the query and the credentials of an address. The result
//! contains only the fact that they changed. Secrets are listed by name, with the hosts that
//! receive them.

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

/// The document that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The secrets with this name or prefix, and the hosts that may receive them.
    Secrets(NamePattern),
    /// The topic to which notices about destinations are published.
    Notifications,
    /// The settings of the topic with this name.
    Topic(TopicName),
    /// The subscription with this name.
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

/// The change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The document is new. The list has the fields that it states, without defaults.
    Added(Vec<(String, String)>),
    /// The document has different values in these fields.
    Changed(Vec<FieldChange>),
    /// The document was removed.
    Removed,
}

/// A field of a document whose value changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Path of the field, with dots between names.
    pub field: String,
    /// The old value as text, without secrets.
    pub old: String,
    /// The new value as text, without secrets.
    pub new: String,
}

/// Returns every change from the old catalogue to the new one: first the hosts of secrets and the
/// topic of notices, then topics by name, then subscriptions by name.
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
            // Compares the structs first, because most are equal and comparing documents is slow.
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

/// Returns the change of the Notifications document; `None` if both catalogues publish notices to
/// the same topic.
fn of_notices(old: &Catalogue, new: &Catalogue) -> Option<(Subject, Change)> {
    let [old, new] = [old, new].map(|catalogue| catalogue.settings().notices.as_ref());
    let field = || "topic".to_owned();
    let changes = |old: &TopicName, new: &TopicName| {
        vec![FieldChange { field: field(), old: old.to_string(), new: new.to_string() }]
    };
    let added = |new: &TopicName| vec![(field(), new.to_string())];
    let change = change(old, new, added, |old, new| old == new, changes)?;
    Some((Subject::Notifications, change))
}

fn of_secrets(old: &Catalogue, new: &Catalogue) -> Vec<(Subject, Change)> {
    let [old, new] =
        [old, new].map(|catalogue| catalogue.settings().secrets.rules().unwrap_or_default());
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

/// Returns the values of a topic document, none of which is secret.
fn topic(topic: &Topic) -> Values {
    let shown = flat(&Json::Object(topic.settings.shown()));
    Values { written: flat(&canonical::topic_spec(topic)), shown }
}

/// The values of a document, by the paths of their fields.
struct Values {
    /// The values that the document states, which may be secret.
    written: BTreeMap<String, Json>,
    /// The values that the document states, without secrets, for display.
    shown: BTreeMap<String, Json>,
}

impl Values {
    /// Returns the value at a path as text, without secrets.
    fn text(&self, path: &str) -> String {
        match self.shown.get(path) {
            None | Some(Json::Null) => "not set".to_owned(),
            Some(value) => flow(value),
        }
    }
}

/// Returns the parts of a value that are not displayed: credentials and query of an address, and
/// header values by name.
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

/// Formats a value for people on one line, like YAML in flow style. Strings are not quoted.
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

fn values(subscription: &Subscription) -> Values {
    let (destination, dead_letter) = (&subscription.destination, &subscription.dead_letter);
    let mut shown = flat(&canonical::shown_spec(subscription));
    // URLs are replaced by their display form, because their paths may be credentials too.
    shown.insert("destination.url".to_owned(), json!(destination.display()));
    if let Sink::Address(_) = dead_letter.sink {
        shown.insert("deadLetter.sink".to_owned(), json!(sink_text(dead_letter)));
    }
    Values { written: flat(&canonical::whole_spec(subscription)), shown }
}

/// Flattens nested mappings into values by the paths of their fields.
fn flat(document: &Json) -> BTreeMap<String, Json> {
    fn add(path: String, node: &Json, found: &mut BTreeMap<String, Json>) {
        match node {
            Json::Object(fields) => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    add(format!("{path}{dot}{name}"), value, found);
                }
            }
            Json::Null => {}
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                found.insert(path, node.clone());
            }
        }
    }
    let mut found = BTreeMap::new();
    add(String::new(), document, &mut found);
    found
}

/// Returns all fields of a document as text, without secrets.
fn stated(values: &Values) -> Vec<(String, String)> {
    values.written.keys().map(|path| (path.clone(), values.text(path))).collect()
}

/// Returns the fields in which two documents differ.
fn changes(old: &Values, new: &Values) -> Vec<FieldChange> {
    let paths: BTreeSet<&String> = old.written.keys().chain(new.written.keys()).collect();
    let differing =
        paths.into_iter().filter(|path| old.written.get(*path) != new.written.get(*path));
    let changed = differing.map(|path| {
        let (before, after) = (old.text(path), new.text(path));
        let [was, is] =
            [old, new].map(|values| values.written.get(path).map(hidden).unwrap_or_default());
        let is_hidden = before == after || !is.is_empty() && was != is;
        let hidden = if is_hidden { " (a hidden part changed)" } else { "" };
        FieldChange { field: path.clone(), old: before, new: format!("{after}{hidden}") }
    });
    changed.collect()
}

/// Returns the fields that a new subscription states, and the hosts that receive its secrets.
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

/// Returns the fields in which two subscriptions of the same name differ. A change of the hosts
/// that receive the secrets also counts.
fn subscription_changes(old: &Subscription, new: &Subscription) -> Vec<FieldChange> {
    let mut changes = changes(&values(old), &values(new));
    if old.destination.host() != new.destination.host() && secrets(old) != secrets(new) {
        let field = "secrets".to_owned();
        changes.push(FieldChange { field, old: secrets(old), new: secrets(new) });
    }
    changes
}

/// Joins texts with commas; returns `none` if there are no texts.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// Returns the names of the secrets that requests contain, and the hosts that receive them.
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
