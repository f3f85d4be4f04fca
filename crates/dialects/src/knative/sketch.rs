//! Sketches of subscriptions: the name and the references of each, before its object is read.
//!
//! Separate because a subscription with an error has a name too, and a reference may be the reason for the error.
//! Reports nothing.

use std::collections::BTreeMap;

use super::cluster::ClusterDefault;
use super::object::Object;
use super::role::Role;
use super::topic_kind::TopicKind;
use super::topics::Topics;
use delivery::document::reader::Cursor;
use delivery::subscription::name::{SubscriptionName, TopicName};

/// The broker of a Trigger that names none.
pub(super) const BROKER: &str = "default";

/// An object that another one refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    /// The `kind` without its API, since references to one object have several versions.
    pub(super) kind: String,
    /// Its namespace and name.
    pub(super) name: TopicName,
}

impl Reference {
    /// The reference that a mapping is, if it has a kind and a name.
    pub(super) fn at(at: &Cursor<'_>, namespace: &str) -> Option<Self> {
        let [kind, name] = [text(at, "kind"), text(at, "name")];
        Some(Self { kind: kind?.to_owned(), name: named(at, name?, namespace) })
    }

    /// The reference to this object.
    pub(super) fn to(object: &Object<'_>) -> Self {
        Self { kind: object.kind.to_owned(), name: object.name.clone() }
    }

    /// The reference in a destination: its `ref`, or the fields beside each other as in older versions.
    fn in_destination(at: &Cursor<'_>, namespace: &str) -> Option<Self> {
        Self::at(&at.peek("ref").unwrap_or_else(|| at.clone()), namespace)
    }

    /// The ConfigMap or another object that a `config` names.
    fn in_config(at: &Cursor<'_>, namespace: &str) -> Option<Self> {
        let kind = text(at, "kind").unwrap_or("ConfigMap").to_owned();
        Some(Self { kind, name: named(at, text(at, "name")?, namespace) })
    }
}

/// A subscription.
pub(super) struct Sketch {
    /// Parts of it may be empty.
    pub(super) name: SubscriptionName,
    /// The broker or channel, by its name in the cluster; a source has none.
    pub(super) parent: Option<(TopicKind, TopicName)>,
    /// The objects that it refers to, with the field of each.
    pub(super) references: Vec<(&'static str, Reference)>,
    /// The settings of its broker or channel that the files do not state.
    pub(super) left_to_cluster: Vec<ClusterDefault>,
}

/// The names and the paths of the fields with a destination.
const DESTINATIONS: [(&str, &str); 5] = [
    ("subscriber", "spec.subscriber"),
    ("reply", "spec.reply"),
    ("sink", "spec.sink"),
    (SINK, "spec.delivery.deadLetterSink"),
    (SINK, "spec.delivery.errorSink"),
];
const SINK: &str = "deadLetterSink";

impl Sketch {
    /// All subscriptions of these objects.
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

/// The name of the subscription that an object is, if it is one.
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

/// The broker of a Trigger, or the channel of a Subscription, by its name in the cluster.
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

/// The objects that a subscription refers to, by itself and by its broker or channel.
fn references(object: &Object<'_>, parent: Option<&Object<'_>>) -> Vec<(&'static str, Reference)> {
    let destinations = |of: &Object<'_>| {
        let found = DESTINATIONS.into_iter().filter_map(|(field, path)| {
            let at = of.document.peek(path)?;
            Some((field, Reference::in_destination(&at, &of.name.namespace)?))
        });
        found.collect::<Vec<_>>()
    };
    let mut found = destinations(object);
    let Some(parent) = parent else { return found };
    let has_sink = found.iter().any(|(field, _)| *field == SINK);
    found.extend(destinations(parent).into_iter().filter(|(field, _)| *field == SINK && !has_sink));
    // A template in the Broker itself replaces the one in its config.
    let has_template = parent.states("spec.channelTemplateSpec");
    let config = parent.document.peek("spec.config").filter(|_| !has_template);
    let config = config.and_then(|at| Reference::in_config(&at, &parent.name.namespace));
    found.extend(config.map(|config| ("config of its Broker", config)));
    found
}

/// The text at a path, if there is any.
fn text<'a>(at: &Cursor<'a>, path: &str) -> Option<&'a str> {
    Some(at.text_at(path)).filter(|text| !text.is_empty())
}

/// A name in the namespace that the cursor states, or else in this one.
fn named(at: &Cursor<'_>, name: &str, namespace: &str) -> TopicName {
    let namespace = text(at, "namespace").unwrap_or(namespace).to_owned();
    TopicName { namespace, topic: name.to_owned() }
}
