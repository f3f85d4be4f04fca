//! Sketches of subscriptions: the name and the references of each, before its object is read.
//!
//! Separate because a subscription with an error needs a sketch too. A reference to an unsupported
//! object may be the cause of the error. Reports nothing.

use std::collections::BTreeMap;

use super::cluster::ClusterDefault;
use super::object::Object;
use super::role::Role;
use super::topic_kind::TopicKind;
use super::topics::Topics;
use delivery::document::reader::Cursor;
use delivery::subscription::name::{SubscriptionName, TopicName};

/// Name of the broker of a Trigger that names no broker.
pub(super) const BROKER: &str = "default";

/// A reference from one object to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    /// The `kind` of the object, without its API version, because references to one object may have
    /// several versions.
    pub(super) kind: String,
    pub(super) name: TopicName,
}

impl Reference {
    /// Reads a reference from a mapping with a kind and a name; returns `None` if either is
    /// missing.
    pub(super) fn at(at: &Cursor<'_>, namespace: &str) -> Option<Self> {
        let [kind, name] = [text(at, "kind"), text(at, "name")];
        Some(Self { kind: kind?.to_owned(), name: named(at, name?, namespace) })
    }

    /// Creates a reference to this object.
    pub(super) fn to(object: &Object<'_>) -> Self {
        Self { kind: object.kind.to_owned(), name: object.name.clone() }
    }

    /// Reads the reference in a destination: its `ref`, or the same fields without `ref`, as in
    /// older versions.
    fn in_destination(at: &Cursor<'_>, namespace: &str) -> Option<Self> {
        Self::at(&at.peek("ref").unwrap_or_else(|| at.clone()), namespace)
    }

    /// Reads the reference in a broker's `config`, where the default kind is ConfigMap.
    fn in_config(at: &Cursor<'_>, namespace: &str) -> Option<Self> {
        let kind = text(at, "kind").unwrap_or("ConfigMap").to_owned();
        Some(Self { kind, name: named(at, text(at, "name")?, namespace) })
    }
}

/// The name and the references of a subscription.
pub(super) struct Sketch {
    /// Name of the subscription, in which parts may be empty.
    pub(super) name: SubscriptionName,
    /// Broker or channel of the subscription, by its name in the cluster; `None` for a source.
    pub(super) parent: Option<(TopicKind, TopicName)>,
    /// Objects to which the subscription refers, with the field of each reference.
    pub(super) references: Vec<(&'static str, Reference)>,
    /// Settings of the broker or channel that the files leave to the cluster.
    pub(super) left_to_cluster: Vec<ClusterDefault>,
}

/// Names and paths of the fields that contain a destination.
const DESTINATIONS: [(&str, &str); 5] = [
    ("subscriber", "spec.subscriber"),
    ("reply", "spec.reply"),
    ("sink", "spec.sink"),
    (SINK, "spec.delivery.deadLetterSink"),
    (SINK, "spec.delivery.errorSink"),
];
const SINK: &str = "deadLetterSink";

impl Sketch {
    /// Returns the sketches of all subscriptions among these objects.
    pub(super) fn all(objects: &[(Role, Object<'_>)], topics: &Topics) -> Vec<Self> {
        let parents = objects.iter().filter_map(|(role, object)| {
            let Role::Topic(kind) = role else { return None };
            Some(((*kind, &object.name), object))
        });
        let parents: BTreeMap<(TopicKind, &TopicName), &Object<'_>> = parents.collect();
        let sketch = |(role, object): &(Role, Object<'_>)| {
            let name = name_of(*role, object, topics)?;
            let parent = parent_of(*role, object);
            let found = parent.as_ref().and_then(|(kind, name)| parents.get(&(*kind, name)));
            let found = found.copied();
            let left_to_cluster = parent
                .as_ref()
                .map(|(kind, _)| ClusterDefault::left_by(object, *kind, found, topics));
            Some(Self {
                name,
                references: references(object, found),
                left_to_cluster: left_to_cluster.unwrap_or_default(),
                parent,
            })
        };
        objects.iter().filter_map(sketch).collect()
    }
}

/// Returns the name of the subscription that an object describes; `None` if the object is not a
/// subscription.
pub(super) fn name_of(
    role: Role,
    object: &Object<'_>,
    topics: &Topics,
) -> Option<SubscriptionName> {
    let topic = match (role, parent_of(role, object)) {
        (Role::Source, _) => topics.topic_of(object),
        (_, Some((topic_kind, name))) => {
            let kind = object.document.text_at("spec.channel.kind");
            topics.find(topic_kind, kind, &name).cloned().unwrap_or(name)
        }
        (_, None) => return None,
    };
    Some(SubscriptionName { topic, name: object.name.topic.clone() })
}

/// Returns the broker of a Trigger, or the channel of a Subscription, by its name in the cluster.
fn parent_of(role: Role, object: &Object<'_>) -> Option<(TopicKind, TopicName)> {
    let (document, namespace) = (&object.document, &object.name.namespace);
    match role {
        Role::Trigger => {
            let name =
                text(document, "spec.broker").or_else(|| text(document, "spec.brokerRef.name"));
            let namespace = text(document, "spec.brokerRef.namespace").unwrap_or(namespace);
            let topic = name.unwrap_or(BROKER).to_owned();
            Some((TopicKind::Broker, TopicName { namespace: namespace.to_owned(), topic }))
        }
        Role::Subscription => {
            let topic = document.text_at("spec.channel.name").to_owned();
            let namespace = text(document, "spec.channel.namespace").unwrap_or(namespace);
            Some((TopicKind::Channel, TopicName { namespace: namespace.to_owned(), topic }))
        }
        Role::Topic(_)
        | Role::BackingChannel
        | Role::Source
        | Role::BrokerConfig
        | Role::Ignored
        | Role::Unread
        | Role::Unknown => None,
    }
}

/// Returns the references in a subscription, and in its broker or channel.
fn references(object: &Object<'_>, parent: Option<&Object<'_>>) -> Vec<(&'static str, Reference)> {
    let destinations = |owner: &Object<'_>| {
        let found = DESTINATIONS.into_iter().filter_map(|(field, path)| {
            let at = owner.document.peek(path)?;
            Some((field, Reference::in_destination(&at, &owner.name.namespace)?))
        });
        found.collect::<Vec<_>>()
    };
    let mut found = destinations(object);
    let Some(parent) = parent else { return found };
    let has_sink = found.iter().any(|(field, _)| *field == SINK);
    found.extend(destinations(parent).into_iter().filter(|(field, _)| *field == SINK && !has_sink));
    // A template in the Broker replaces the template in its config.
    let has_template = parent.states("spec.channelTemplateSpec");
    let config = parent.document.peek("spec.config").filter(|_| !has_template);
    let config = config.and_then(|at| Reference::in_config(&at, &parent.name.namespace));
    found.extend(config.map(|config| ("config of its Broker", config)));
    found
}

/// Returns the text at a path, unless it is empty.
fn text<'a>(at: &Cursor<'a>, path: &str) -> Option<&'a str> {
    Some(at.text_at(path)).filter(|text| !text.is_empty())
}

/// Returns the full name of an object. Its namespace is the one that the mapping at the cursor
/// states, otherwise `namespace`.
fn named(at: &Cursor<'_>, name: &str, namespace: &str) -> TopicName {
    let namespace = text(at, "namespace").unwrap_or(namespace).to_owned();
    TopicName { namespace, topic: name.to_owned() }
}
