//! Converts a topic and its subscriptions to the entries of a stored object.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::read::{METADATA, OWNER};
use super::settings::{NotificationsEntry, PublishersEntry, PublishersObject, SettingsObject};
use super::text::TopicObject;
use crate::document::kind::Kind as _;
use crate::native::canonical;
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::kinds::publishers::Publishers;
use crate::subscription::name::TopicName;
use crate::subscription::topic_settings::TopicSettings;

/// Returns the entry with a topic's settings. The entry belongs to this owner.
fn topic_entry(owner: &str, topic: &Topic) -> String {
    entry(owner, canonical::topic(topic))
}

/// Returns the entry of a topic with default settings. The entry belongs to this owner.
#[must_use]
pub fn plain_topic_entry(owner: &str) -> String {
    entry(owner, json!({ "spec": {} }))
}

/// Returns the entry of a subscription. The entry belongs to this owner.
fn subscription_entry(owner: &str, subscription: &Subscription) -> String {
    entry(owner, canonical::subscription(subscription))
}

/// Converts a native document to an entry of this owner. Removes `metadata`, `apiVersion` and
/// `kind`, which follow from the position of the entry.
fn entry(owner: &str, mut document: Json) -> String {
    if let Some(fields) = document.as_object_mut() {
        for name in [METADATA, "apiVersion", "kind"] {
            fields.remove(name);
        }
        fields.insert(OWNER.to_owned(), Json::from(owner));
    }
    document.to_string()
}

/// The stored objects of a deployment whose files all belong to one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeploymentObjects {
    /// The objects of topics, by name of the topic.
    pub topics: BTreeMap<TopicName, TopicObject<'static>>,
    /// The object with the policies and the topic of notices.
    pub settings: SettingsObject,
    /// The object with the publishers that cannot name a topic.
    pub publishers: PublishersObject,
}

impl DeploymentObjects {
    /// Converts a catalogue to objects that belong to this owner.
    #[must_use]
    pub fn new(owner: &str, catalogue: &Catalogue) -> Self {
        let mut objects = Self::default();
        for topic in catalogue.topics() {
            let of_topic = catalogue.topic_subscriptions(&topic.name);
            let subscriptions = of_topic.into_iter().flat_map(|found| found.subscriptions());
            let entries: BTreeMap<String, Cow<'static, str>> = subscriptions
                .map(|subscription| {
                    (subscription.name.name.clone(), subscription_entry(owner, subscription).into())
                })
                .collect();
            // Default settings need no entry, unless the object would be empty without one.
            let is_plain = topic.settings == TopicSettings::default() && !entries.is_empty();
            let own = (!is_plain).then(|| topic_entry(owner, topic).into());
            let object = TopicObject { topic: own, subscriptions: entries };
            objects.topics.insert(topic.name.clone(), object);
            if !topic.settings.from.is_empty() {
                let from = Publishers.write(&topic.settings.from);
                let entry = PublishersEntry { owner: owner.to_owned(), from };
                objects.publishers.topics.insert(topic.name.clone(), entry);
            }
        }
        let settings = catalogue.settings();
        let spec = |document: Json| document.get("spec").cloned().unwrap_or_default();
        objects.settings.notifications = settings.notices.clone().map(|topic| {
            let owner = owner.to_owned();
            NotificationsEntry { owner, spec: spec(canonical::notifications(topic)) }
        });
        let policy = settings.secrets.rules().map(|rules| spec(canonical::secret_policy(rules)));
        objects.settings.secret_policies.extend(policy.map(|policy| (owner.to_owned(), policy)));
        objects
    }
}
