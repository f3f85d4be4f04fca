//! The brokers and channels of all files, as references find them.
//!
//! Separate because a cluster has a name for each kind, and here a name is one topic: of objects of several kinds with
//! one name each has a topic, and all but the first one's has its kind in the name. Nor is each object a topic: a
//! Channel of Knative is backed by a channel of another kind with its name, which an export of a cluster has too.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::class::Class;
use super::object::Object;
use super::role::Role;
use super::topic_kind::TopicKind;
use delivery::document::findings::Message;
use delivery::document::reader::Cursor;
use delivery::subscription::name::TopicName;

/// The kind of channels that are backed by others.
pub(super) const PLAIN: &str = "Channel";

/// The brokers and channels of all files.
#[derive(Default)]
pub(super) struct Topics {
    /// By name in the cluster: the kind of each, and its topic.
    named: BTreeMap<(TopicKind, TopicName), Vec<(String, TopicName)>>,
    /// The kinds of the objects that have these topics, also of event sources.
    owners: RefCell<BTreeMap<TopicName, String>>,
    /// Of channels that are backed by another: its class, where it is known.
    backed: BTreeMap<TopicName, Class>,
}

impl Topics {
    /// Finds them. What backs another channel is no topic of its own, and its role changes.
    pub(super) fn of(objects: &mut [(Role, Object<'_>)]) -> Self {
        let is_plain = |(role, object): &&(Role, Object<'_>)| {
            *role == Role::Topic(TopicKind::Channel) && object.kind == PLAIN
        };
        let plain = objects.iter().filter(is_plain).map(|(_, object)| {
            let template = object.document.text_at("spec.channelTemplate.kind");
            (object.name.clone(), template.to_owned())
        });
        let plain: BTreeMap<TopicName, String> = plain.collect();
        let mut topics = Self::default();
        for (role, object) in objects {
            let Role::Topic(topic_kind) = *role else { continue };
            if topic_kind == TopicKind::Channel && backs_one(object, &plain) {
                *role = Role::BackingChannel;
                let class = Class::of_channel(object.api_version, object.kind);
                topics.backed.extend(class.map(|class| (object.name.clone(), class)));
            } else {
                object.topic = topics.take(object);
                let key = (topic_kind, object.name.clone());
                let named = topics.named.entry(key).or_default();
                named.push((object.kind.to_owned(), object.topic.clone()));
            }
        }
        topics
    }

    /// The topic of an object: its name, unless an object of another kind has that already.
    pub(super) fn topic_of(&self, object: &Object<'_>) -> TopicName {
        let owners = self.owners.borrow();
        if owners.get(&object.name).is_none_or(|owner| owner == object.kind) {
            return object.name.clone();
        }
        let qualified = format!("{}.{}", object.name.topic, object.kind.to_ascii_lowercase());
        TopicName { topic: qualified, ..object.name.clone() }
    }

    /// Gives the object this topic. Reports a name that another object has.
    pub(super) fn take(&self, object: &Object<'_>) -> TopicName {
        let qualified = self.topic_of(object);
        let mut owners = self.owners.borrow_mut();
        let owner = owners.entry(object.name.clone()).or_insert_with(|| object.kind.to_owned());
        if qualified == object.name {
            return qualified;
        }
        let message =
            format!("a {owner} has the topic {}: that of this object is {qualified}", object.name);
        let at = object.document.peek("metadata.name");
        at.as_ref()
            .unwrap_or(&object.document)
            .warn(Message::new(message).help("publish its events there, or give it another name"));
        owners.entry(qualified.clone()).or_insert_with(|| object.kind.to_owned());
        qualified
    }

    /// The topic of the object that is so called: of this kind, or of any that is such a topic.
    pub(super) fn find(
        &self,
        topic_kind: TopicKind,
        kind: &str,
        name: &TopicName,
    ) -> Option<&TopicName> {
        let named = self.named.get(&(topic_kind, name.clone()))?;
        let of_kind = named.iter().find(|(of, _)| of == kind);
        of_kind.or_else(|| named.first()).map(|(_, topic)| topic)
    }

    /// Whether a broker or channel has this name.
    pub(super) fn has(&self, name: &TopicName) -> bool {
        [TopicKind::Broker, TopicKind::Channel]
            .into_iter()
            .any(|kind| self.named.contains_key(&(kind, name.clone())))
    }

    /// The class of the channel that backs this one.
    pub(super) fn class_of_backing(&self, name: &TopicName) -> Option<Class> {
        self.backed.get(name).copied()
    }
}

/// Whether a channel backs one of these, which are given with the kind in their template: it has its name, and either
/// it is owned by it or it is of that kind.
fn backs_one(object: &Object<'_>, plain: &BTreeMap<TopicName, String>) -> bool {
    if object.kind == PLAIN {
        return false;
    }
    let Some(template) = plain.get(&object.name) else { return false };
    let owners = object.document.peek("metadata.ownerReferences");
    let owners = owners.filter(Cursor::is_list).and_then(|owners| owners.list());
    let is_owner = |owner: &Cursor<'_>| owner.text_at("kind") == PLAIN;
    template == object.kind || owners.unwrap_or_default().iter().any(is_owner)
}
