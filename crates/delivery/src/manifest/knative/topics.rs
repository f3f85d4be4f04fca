//! The brokers and channels of all files, as references find them.
//!
//! Separate because not each object is a topic: a Channel of Knative is backed by a channel of another kind with its
//! name, which an export of a cluster has too.

use std::collections::{BTreeMap, BTreeSet};

use super::super::reader::Cursor;
use super::address::TopicKind;
use super::class::Class;
use super::object::Object;
use super::role::Role;
use crate::subscription::name::TopicName;

/// The kind of channels that are backed by others.
const PLAIN: &str = "Channel";

/// The brokers and channels of all files.
#[derive(Default)]
pub(super) struct Topics {
    names: BTreeSet<(TopicKind, TopicName)>,
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
                topics.names.insert((topic_kind, object.name.clone()));
            }
        }
        topics
    }

    /// Whether this is one of them.
    pub(super) fn contains(&self, topic: &(TopicKind, TopicName)) -> bool {
        self.names.contains(topic)
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
    let owners = owners.filter(|owners| owners.is_list()).and_then(|owners| owners.list());
    let is_owner = |owner: &Cursor<'_>| owner.text_at("kind") == PLAIN;
    template == object.kind || owners.unwrap_or_default().iter().any(is_owner)
}
