//! The brokers and channels of all files, with a look-up for references.
//!
//! Separate because objects of different kinds may share a name in a cluster, while here each name
//! is one topic. If objects of several kinds share a name, each has its own topic, and all except
//! the first have their kind in the topic's name. Some channels do not become topics: a Knative
//! Channel is backed by a channel of a different kind with the same name, and an export of a
//! cluster contains both.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::class::Class;
use super::object::Object;
use super::role::Role;
use super::topic_kind::TopicKind;
use delivery::document::findings::Message;
use delivery::document::reader::Cursor;
use delivery::subscription::name::TopicName;

/// Kind of channels that are backed by other channels.
pub(super) const PLAIN: &str = "Channel";

#[derive(Default)]
pub(super) struct Topics {
    /// Kind and topic of each broker or channel, by its name in the cluster.
    named: BTreeMap<(TopicKind, TopicName), Vec<(String, TopicName)>>,
    /// Kind of the object that owns each topic. An owner may be an event source.
    owners: RefCell<BTreeMap<TopicName, String>>,
    /// Class of the channel that backs each Channel, if the class is known.
    backed: BTreeMap<TopicName, Class>,
}

impl Topics {
    /// Finds the topics of all objects. A channel that backs another channel does not become a
    /// topic, and gets a different role.
    pub(super) fn collect(objects: &mut [(Role, Object<'_>)]) -> Self {
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

    /// Returns the topic of an object. It has the name of the object, unless an object of a
    /// different kind owns that topic.
    pub(super) fn topic_of(&self, object: &Object<'_>) -> TopicName {
        let owners = self.owners.borrow();
        if owners.get(&object.name).is_none_or(|owner| owner == object.kind) {
            return object.name.clone();
        }
        let qualified = format!("{}.{}", object.name.topic, object.kind.to_ascii_lowercase());
        TopicName { topic: qualified, ..object.name.clone() }
    }

    /// Makes an object the owner of its topic, and returns the topic. Adds a warning if an object
    /// of a different kind already owns the topic with the object's name.
    pub(super) fn take(&self, object: &Object<'_>) -> TopicName {
        let qualified = self.topic_of(object);
        let mut owners = self.owners.borrow_mut();
        let owner = owners.entry(object.name.clone()).or_insert_with(|| object.kind.to_owned());
        if qualified == object.name {
            return qualified;
        }
        let message = format!(
            "a {owner} already uses the topic {}: this object uses {qualified}",
            object.name
        );
        let at = object.document.peek("metadata.name");
        at.as_ref().unwrap_or(&object.document).warn(
            Message::new(message)
                .help("publish the events of this object there, or rename the object"),
        );
        owners.entry(qualified.clone()).or_insert_with(|| object.kind.to_owned());
        qualified
    }

    /// Finds the topic of an object with this name. Prefers objects of `kind`, else returns any
    /// with the same topic kind.
    pub(super) fn find(
        &self,
        topic_kind: TopicKind,
        kind: &str,
        name: &TopicName,
    ) -> Option<&TopicName> {
        let named = self.named.get(&(topic_kind, name.clone()))?;
        let of_kind = named.iter().find(|(named_kind, _)| named_kind == kind);
        of_kind.or_else(|| named.first()).map(|(_, topic)| topic)
    }

    /// True if a broker or channel has this name.
    pub(super) fn has(&self, name: &TopicName) -> bool {
        [TopicKind::Broker, TopicKind::Channel]
            .into_iter()
            .any(|kind| self.named.contains_key(&(kind, name.clone())))
    }

    /// Returns the class of the channel that backs the Channel with this name.
    pub(super) fn class_of_backing(&self, name: &TopicName) -> Option<Class> {
        self.backed.get(name).copied()
    }
}

/// True if the object is a channel that backs a Channel: both have the same name, and either a
/// Channel owns the object, or the Channel's template states the object's kind. `plain` contains
/// the kind in the template of each Channel.
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
