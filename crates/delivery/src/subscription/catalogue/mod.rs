//! [`Catalogue`]: topics and their subscriptions, for lookup by name and by event.
//!
//! A catalogue does not change while it is in use. If it comes from files, a new one is built
//! whenever the files are read. A catalogue whose topics are read on demand contains only the
//! topics of the current records. It distinguishes topics that do not exist from topics that were
//! not read.

mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use index::Index;

use crate::event::Event;
use crate::event::envelope::Publisher;
use crate::subscription::Subscription;
use crate::subscription::name::{NameRange, SubscriptionName, TopicName, after};
use crate::subscription::secret_policy::SecretPolicy;
use crate::subscription::topic_settings::TopicSettings;

/// A topic, without its subscriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The full name, written `namespace/topic`.
    pub name: TopicName,
    /// The settings that determine how events of the topic are read.
    pub settings: TopicSettings,
}

impl Topic {
    /// Returns a topic that no document describes. Its input format is `auto`.
    #[must_use]
    pub fn new(name: TopicName) -> Self {
        Self { name, settings: TopicSettings::default() }
    }
}

/// A topic with all of its subscriptions.
#[derive(Debug, Clone)]
pub struct TopicSubscriptions {
    topic: Topic,
    /// The usable subscriptions, by their names within the topic.
    subscriptions: BTreeMap<String, Arc<Subscription>>,
    /// The names of subscriptions that exist but are unusable, with the reason for each.
    unusable: BTreeMap<String, String>,
    /// The index of the usable subscriptions. It is built for the first event, because a process
    /// receives no events for most of its topics.
    index: OnceLock<Index>,
}

impl PartialEq for TopicSubscriptions {
    fn eq(&self, other: &Self) -> bool {
        self.topic == other.topic
            && self.subscriptions == other.subscriptions
            && self.unusable == other.unusable
    }
}

impl TopicSubscriptions {
    /// Returns a topic without subscriptions.
    #[must_use]
    pub fn new(topic: Topic) -> Self {
        let (subscriptions, unusable) = Default::default();
        Self { topic, subscriptions, unusable, index: OnceLock::new() }
    }

    /// Sets the names of unusable subscriptions, with the reason for each.
    #[must_use]
    pub fn with_unusable(self, unusable: BTreeMap<String, String>) -> Self {
        Self { unusable, ..self }
    }

    /// Returns the names of subscriptions that exist but are unusable, with the reason for each.
    #[must_use]
    pub fn unusable(&self) -> &BTreeMap<String, String> {
        &self.unusable
    }

    /// Adds a subscription of this topic. It replaces a subscription with the same name.
    pub fn add(&mut self, mut subscription: Subscription) {
        subscription.mapping = Arc::clone(&self.topic.settings.mapping);
        let name = subscription.name.name.clone();
        self.subscriptions.insert(name, Arc::new(subscription));
        self.index.take();
    }

    /// Returns the topic itself, without its subscriptions.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Lists the usable subscriptions, sorted by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.subscriptions.values()
    }

    /// Returns true if the topic has no usable subscription.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Returns name ranges that contain all `names`, as few as possible. No range contains a usable
    /// subscription whose name is not in `names`.
    fn ranges_without_usable(&self, names: &BTreeSet<&str>) -> Vec<NameRange> {
        let mut ranges: Vec<NameRange> = Vec::new();
        let mut last: Option<&str> = None;
        for name in names.iter().copied() {
            let between = last.map(|last| (Bound::Excluded(last), Bound::Excluded(name)));
            let is_next = between.is_some_and(|between| {
                let mut others = self.subscriptions.range::<str, _>(between);
                others.all(|(other, _)| names.contains(other.as_str()))
            });
            let before = Some(after(name));
            match ranges.last_mut().filter(|_| is_next) {
                Some(range) => range.before = before,
                None => ranges.push(NameRange { from: name.to_owned(), before }),
            }
            last = Some(name);
        }
        ranges
    }

    /// Builds the index now, so that the first event does not have to wait.
    pub fn build_index(&self) {
        self.index();
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self.subscriptions.values().cloned().collect()))
    }
}

/// Deployment-wide settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The topics of publishers whose service cannot name a topic.
    pub publishers: BTreeMap<Publisher, TopicName>,
    /// The topic to which notices about destinations are published; `None` disables notices.
    pub notices: Option<TopicName>,
    /// The policy that determines the hosts to which each secret may be sent.
    pub secrets: SecretPolicy,
}

/// Topics with their subscriptions: all topics of a set of files or of a deployment, or the topics
/// that have been read on demand so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    settings: Arc<Settings>,
    topics: BTreeMap<TopicName, Arc<TopicSubscriptions>>,
    /// The results of reading topics on demand; `None` if the catalogue contains all topics.
    read: Option<BTreeMap<TopicName, Found>>,
    /// The topics whose newest state was requested since this catalogue was created.
    asked: BTreeSet<TopicName>,
    /// True if the newest settings were requested since this catalogue was created.
    has_newest_settings: bool,
}

/// The result of reading a topic on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The topic exists, and its subscriptions are in the catalogue.
    Topic,
    /// The topic was removed, and the removal is recorded.
    Removed,
    /// The topic does not exist, and no removal is recorded.
    Nothing,
    /// The topic could not be read, for this reason.
    Unreadable(String),
}

impl Catalogue {
    /// Returns a catalogue without topics. Topics are read on demand and added.
    #[must_use]
    pub fn by_need(settings: impl Into<Arc<Settings>>) -> Self {
        Self {
            settings: settings.into(),
            topics: BTreeMap::new(),
            read: Some(BTreeMap::new()),
            asked: BTreeSet::new(),
            has_newest_settings: false,
        }
    }

    /// Returns a copy of this catalogue with these settings.
    #[must_use]
    pub fn with_settings(&self, settings: impl Into<Arc<Settings>>) -> Self {
        Self { settings: settings.into(), ..self.clone() }
    }

    /// Returns a copy of this catalogue with these settings, and marks them as the newest.
    #[must_use]
    pub fn with_newest_settings(&self, settings: impl Into<Arc<Settings>>) -> Self {
        Self { has_newest_settings: true, ..self.with_settings(settings) }
    }

    /// Returns true if the newest settings were requested since this catalogue was created.
    #[must_use]
    pub fn are_settings_newest(&self) -> bool {
        self.has_newest_settings
    }

    /// Adds a topic that was read on demand, with its subscriptions.
    pub fn add_found(&mut self, name: TopicName, topic: Arc<TopicSubscriptions>) {
        self.topics.insert(name.clone(), topic);
        self.read.get_or_insert_default().insert(name, Found::Topic);
    }

    /// Records that a topic was read on demand, and why it is not in the catalogue.
    pub fn add_missing(&mut self, name: TopicName, found: Found) {
        self.topics.remove(&name);
        self.read.get_or_insert_default().insert(name, found);
    }

    /// Returns the result of reading a topic on demand; `None` if it was not read.
    #[must_use]
    pub fn found(&self, topic: &TopicName) -> Option<&Found> {
        self.read.as_ref()?.get(topic)
    }

    /// Records that the newest state of a topic was requested.
    pub fn note_asked(&mut self, topic: TopicName) {
        self.asked.insert(topic);
    }

    /// Returns true if the newest state of a topic was requested since this catalogue was created.
    #[must_use]
    pub fn was_asked(&self, topic: &TopicName) -> bool {
        self.asked.contains(topic)
    }

    /// Returns true if the topic was read and does not exist.
    #[must_use]
    pub fn lacks(&self, topic: &TopicName) -> bool {
        matches!(self.found(topic), Some(Found::Removed | Found::Nothing))
    }

    /// Returns the topic with this name and its subscriptions; `None` if it is not in the
    /// catalogue.
    #[must_use]
    pub fn topic_subscriptions(&self, name: &TopicName) -> Option<&Arc<TopicSubscriptions>> {
        self.topics.get(name)
    }

    /// Returns the deployment-wide settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns true if the catalogue contains all topics, like a catalogue from files.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.read.is_none()
    }

    /// Returns true if the topic was read, whatever the result, or if the catalogue contains all
    /// topics.
    #[must_use]
    pub fn knows(&self, topic: &TopicName) -> bool {
        self.read.as_ref().is_none_or(|read| read.contains_key(topic))
    }

    /// Adds a topic without subscriptions. It replaces a topic with the same name. The reader of
    /// documents reports duplicates, because it has their positions.
    pub fn add_topic(&mut self, topic: Topic) {
        for publisher in &topic.settings.from {
            let owner = Arc::make_mut(&mut self.settings).publishers.entry(publisher.clone());
            // If several topics list the publisher, its records belong to the first topic by name.
            let owner = owner.or_insert_with(|| topic.name.clone());
            *owner = topic.name.clone().min(owner.clone());
        }
        self.topics.insert(topic.name.clone(), Arc::new(TopicSubscriptions::new(topic)));
    }

    /// Adds a topic with all of its subscriptions.
    pub fn add_whole_topic(&mut self, topic: TopicSubscriptions) {
        self.topics.insert(topic.topic.name.clone(), Arc::new(topic));
    }

    /// Replaces the deployment-wide settings. Adds each publisher in the settings to the field
    /// `from` of its topic, if the topic exists.
    pub fn set_settings(&mut self, settings: Settings) {
        for (publisher, topic) in &settings.publishers {
            if let Some(entry) = self.topics.get_mut(topic) {
                let from = &mut Arc::make_mut(entry).topic.settings.from;
                // The topic may already list the publisher.
                if !from.contains(publisher) {
                    from.push(publisher.clone());
                }
            }
        }
        self.settings = Arc::new(settings);
    }

    /// Adds a subscription. If its topic is missing, it adds a topic with the input format `auto`.
    /// Topics must be added before their subscriptions, because a subscription copies the mapping
    /// of its topic.
    pub fn add_subscription(&mut self, subscription: Subscription) {
        let topic = &subscription.name.topic;
        let new = || Arc::new(TopicSubscriptions::new(Topic::new(topic.clone())));
        let entry = self.topics.entry(topic.clone()).or_insert_with(new);
        Arc::make_mut(entry).add(subscription);
    }

    /// Removes all subscriptions of a topic, and returns them.
    pub fn take_subscriptions(&mut self, topic: &TopicName) -> Vec<Subscription> {
        let entry = self.topics.get_mut(topic).map(Arc::make_mut);
        let subscriptions =
            entry.map(|entry| std::mem::take(&mut entry.subscriptions)).unwrap_or_default();
        subscriptions.into_values().map(Arc::unwrap_or_clone).collect()
    }

    /// Sets the topic to which notices about destinations are published.
    pub fn notices_go_to(&mut self, topic: TopicName) {
        Arc::make_mut(&mut self.settings).notices = Some(topic);
    }

    /// Sets the policy that determines the hosts to which each secret may be sent.
    pub fn restrict_secrets(&mut self, policy: SecretPolicy) {
        Arc::make_mut(&mut self.settings).secrets = policy;
    }

    /// Returns the topic to which notices about destinations are published; `None` if notices are
    /// disabled.
    #[must_use]
    pub fn topic_of_notices(&self) -> Option<&TopicName> {
        self.settings.notices.as_ref()
    }

    /// Returns the topic with this name, without its subscriptions.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&Topic> {
        self.topics.get(name).map(|entry| &entry.topic)
    }

    /// Returns the topic that lists this publisher in its field `from`.
    #[must_use]
    pub fn topic_from(&self, publisher: &Publisher) -> Option<&TopicName> {
        self.settings.publishers.get(publisher)
    }

    /// Returns the reason why a topic could not be read. Returns `None` if it was read, does not
    /// exist, or was not requested.
    #[must_use]
    pub fn unreadable(&self, topic: &TopicName) -> Option<&str> {
        match self.found(topic) {
            Some(Found::Unreadable(why)) => Some(why),
            Some(Found::Topic | Found::Removed | Found::Nothing) | None => None,
        }
    }

    /// Returns the reason why an existing subscription is unusable; `None` if it is usable or does
    /// not exist.
    #[must_use]
    pub fn unusable(&self, name: &SubscriptionName) -> Option<&str> {
        let topic = self.topics.get(&name.topic)?;
        let unusable = topic.unusable.get(&name.name).map(String::as_str);
        unusable.or_else(|| self.waits_for(topic.subscriptions.get(&name.name)?))
    }

    /// Checks the topics to which the subscription sends events, replies or dead letters. Returns
    /// the reason why one of them could not be read, if there is one.
    fn waits_for(&self, subscription: &Subscription) -> Option<&str> {
        subscription.other_topics().find_map(|topic| self.unreadable(&topic))
    }

    /// Returns true if some topic could not be read.
    fn has_unreadable(&self) -> bool {
        let found = self.read.iter().flat_map(BTreeMap::values);
        found.into_iter().any(|found| matches!(found, Found::Unreadable(_)))
    }

    /// Returns name ranges that contain all unusable subscriptions of a topic whose name is in
    /// `names`, as few as possible. No range contains a usable subscription.
    #[must_use]
    pub fn unusable_ranges(&self, topic: &TopicName, names: &NameRange) -> Vec<NameRange> {
        let Some(topic) = self.topics.get(topic) else { return Vec::new() };
        let mut unusable: BTreeSet<&str> = topic.unusable.keys().map(String::as_str).collect();
        if self.has_unreadable() {
            let waiting = topic
                .subscriptions
                .iter()
                .filter(|(_, subscription)| self.waits_for(subscription).is_some());
            unusable.extend(waiting.map(|(name, _)| name.as_str()));
        }
        unusable.retain(|name| names.contains(name));
        topic.ranges_without_usable(&unusable)
    }

    /// Returns true if a topic has a usable subscription whose name is in the range.
    #[must_use]
    pub fn has_usable(&self, topic: &TopicName, names: &NameRange) -> bool {
        let subscriptions =
            self.topics.get(topic).into_iter().flat_map(|entry| &entry.subscriptions);
        let mut in_range = subscriptions.filter(|(name, _)| names.contains(name));
        in_range.any(|(_, subscription)| self.waits_for(subscription).is_none())
    }

    /// Returns the subscription with this name; `None` if it is not in the catalogue.
    #[must_use]
    pub fn subscription(&self, name: &SubscriptionName) -> Option<&Arc<Subscription>> {
        self.topics.get(&name.topic)?.subscriptions.get(&name.name)
    }

    /// Lists the subscriptions of all topics, sorted by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.topics.values().flat_map(|entry| entry.subscriptions.values())
    }

    /// Lists all topics, sorted by name.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values().map(|entry| &entry.topic)
    }

    /// Returns the subscriptions of a topic to which an event is delivered, sorted by name. Their
    /// name is in the range, they are usable and not expired, and their filter matches the event.
    pub fn matching(
        &self,
        topic: &TopicName,
        names: &NameRange,
        event: &Event,
        now_ms: u64,
    ) -> impl Iterator<Item = &Arc<Subscription>> {
        let entry = self.topics.get(topic);
        let found = entry.map(|entry| entry.index().matching(&event.members(), names));
        let some_wait = self.has_unreadable();
        found.into_iter().flatten().filter(move |subscription| {
            subscription.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
                && !(some_wait && self.waits_for(subscription).is_some())
        })
    }
}

#[cfg(test)]
mod tests;
