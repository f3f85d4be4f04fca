//! Topics and their subscriptions, looked up by name, or by the event to deliver.
//!
//! A [`Catalogue`] never changes once it is in use: that of some files is built each time they are read.
//! One that is read by need holds the topics of the records at hand, and tells what it has not read
//! from what does not exist.

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

/// A topic that a document names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Namespace and topic.
    pub name: TopicName,
    /// How its events are read.
    pub settings: TopicSettings,
}

impl Topic {
    /// A topic with automatic input that no document describes.
    #[must_use]
    pub fn new(name: TopicName) -> Self {
        Self { name, settings: TopicSettings::default() }
    }
}

/// A topic with all of its subscriptions.
#[derive(Debug, Clone)]
pub struct TopicSubscriptions {
    topic: Topic,
    /// By their names within the topic.
    subscriptions: BTreeMap<String, Arc<Subscription>>,
    /// The names of subscriptions that are there and cannot be used, each with the reason.
    unusable: BTreeMap<String, String>,
    /// Made for the first event: most topics of a process have none.
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
    /// A topic without subscriptions.
    #[must_use]
    pub fn new(topic: Topic) -> Self {
        let (subscriptions, unusable) = Default::default();
        Self { topic, subscriptions, unusable, index: OnceLock::new() }
    }

    /// The same with these subscriptions, which are there and cannot be used, and the reason for each.
    #[must_use]
    pub fn with_unusable(self, unusable: BTreeMap<String, String>) -> Self {
        Self { unusable, ..self }
    }

    /// Those that are there and cannot be used, each with the reason.
    #[must_use]
    pub fn unusable(&self) -> &BTreeMap<String, String> {
        &self.unusable
    }

    /// Adds a subscription of this topic; one of the same name is replaced.
    pub fn add(&mut self, mut subscription: Subscription) {
        subscription.mapping = Arc::clone(&self.topic.settings.mapping);
        let name = subscription.name.name.clone();
        self.subscriptions.insert(name, Arc::new(subscription));
        self.index.take();
    }

    /// What is said of the topic itself.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Its subscriptions, by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.subscriptions.values()
    }

    /// Whether it has no subscription.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// The ranges of these names in which nothing else is usable: as few as have no usable subscription between them.
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

    /// Builds the index now, so that the first event need not wait for it.
    pub fn build_index(&self) {
        self.index();
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.subscriptions.values().cloned().collect()))
    }
}

/// What a deployment has beside its topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The topics of publishers that cannot name one.
    pub publishers: BTreeMap<Publisher, TopicName>,
    /// Where notices about destinations are published, if anybody wants them.
    pub notices: Option<TopicName>,
    /// Where secrets may be sent.
    pub secrets: SecretPolicy,
}

/// Topics with their subscriptions: all of a deployment, or those that were read so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    settings: Arc<Settings>,
    topics: BTreeMap<TopicName, Arc<TopicSubscriptions>>,
    /// Where topics are read by need, what was found of those that were read; `None` means that all are here.
    read: Option<BTreeMap<TopicName, Found>>,
    /// The topics whose newest state was requested since this catalogue was begun.
    asked: BTreeSet<TopicName>,
    /// The newest settings were requested since then.
    has_newest_settings: bool,
}

/// What was found of a topic that was read by need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is among the topics.
    Topic,
    /// Somebody removed it on purpose.
    Removed,
    /// Nothing is there, and nobody removed it on purpose.
    Nothing,
    /// Its subscriptions are not known, for this reason.
    Unreadable(String),
}

impl Catalogue {
    /// A catalogue whose topics are read by need: it knows none.
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

    /// The same topics with these settings.
    #[must_use]
    pub fn with_settings(&self, settings: impl Into<Arc<Settings>>) -> Self {
        Self { settings: settings.into(), ..self.clone() }
    }

    /// The same topics with the newest settings.
    #[must_use]
    pub fn with_newest_settings(&self, settings: impl Into<Arc<Settings>>) -> Self {
        Self { has_newest_settings: true, ..self.with_settings(settings) }
    }

    /// Whether the newest settings were requested since this catalogue was begun.
    #[must_use]
    pub fn are_settings_newest(&self) -> bool {
        self.has_newest_settings
    }

    /// Adds a topic that was read by need.
    pub fn add_found(&mut self, name: TopicName, topic: Arc<TopicSubscriptions>) {
        self.topics.insert(name.clone(), topic);
        self.read.get_or_insert_default().insert(name, Found::Topic);
    }

    /// Adds why there is no topic of this name here.
    pub fn add_missing(&mut self, name: TopicName, found: Found) {
        self.topics.remove(&name);
        self.read.get_or_insert_default().insert(name, found);
    }

    /// What was found of a topic that was read by need; `None` if it was not read.
    #[must_use]
    pub fn found(&self, topic: &TopicName) -> Option<&Found> {
        self.read.as_ref()?.get(topic)
    }

    /// Notes that the newest state of a topic was requested.
    pub fn note_asked(&mut self, topic: TopicName) {
        self.asked.insert(topic);
    }

    /// Whether the newest state of a topic was requested since this catalogue was begun.
    #[must_use]
    pub fn was_asked(&self, topic: &TopicName) -> bool {
        self.asked.contains(topic)
    }

    /// Whether this topic was read, and there is none.
    #[must_use]
    pub fn lacks(&self, topic: &TopicName) -> bool {
        matches!(self.found(topic), Some(Found::Removed | Found::Nothing))
    }

    /// A topic with all of its subscriptions.
    #[must_use]
    pub fn topic_subscriptions(&self, name: &TopicName) -> Option<&Arc<TopicSubscriptions>> {
        self.topics.get(name)
    }

    /// What it has beside its topics.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether it knows every topic, as that of a file does.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.read.is_none()
    }

    /// Whether it knows what there is of this topic, or that it does not exist.
    #[must_use]
    pub fn knows(&self, topic: &TopicName) -> bool {
        self.read.as_ref().is_none_or(|read| read.contains_key(topic))
    }

    /// Adds a topic; a second one of the same name replaces the first. The reader of documents checks
    /// uniqueness, since it can report positions.
    pub fn add_topic(&mut self, topic: Topic) {
        for publisher in &topic.settings.from {
            let of = Arc::make_mut(&mut self.settings).publishers.entry(publisher.clone());
            // If several topics list it, the first by name.
            let of = of.or_insert_with(|| topic.name.clone());
            *of = topic.name.clone().min(of.clone());
        }
        self.topics.insert(topic.name.clone(), Arc::new(TopicSubscriptions::new(topic)));
    }

    /// Adds a topic with all of its subscriptions.
    pub fn add_whole_topic(&mut self, topic: TopicSubscriptions) {
        self.topics.insert(topic.topic.name.clone(), Arc::new(topic));
    }

    /// Sets what it has beside its topics. A topic's own list of publishers follows.
    pub fn set_settings(&mut self, settings: Settings) {
        for (publisher, topic) in &settings.publishers {
            if let Some(of) = self.topics.get_mut(topic) {
                let from = &mut Arc::make_mut(of).topic.settings.from;
                // The topic may claim it too.
                if !from.contains(publisher) {
                    from.push(publisher.clone());
                }
            }
        }
        self.settings = Arc::new(settings);
    }

    /// Adds a subscription, and its topic with automatic input when no document describes that. Add
    /// described topics first: their mapping becomes the subscription's.
    pub fn add_subscription(&mut self, subscription: Subscription) {
        let topic = &subscription.name.topic;
        let new = || Arc::new(TopicSubscriptions::new(Topic::new(topic.clone())));
        let of = self.topics.entry(topic.clone()).or_insert_with(new);
        Arc::make_mut(of).add(subscription);
    }

    /// Takes the subscriptions of a topic out of it.
    pub fn take_subscriptions(&mut self, topic: &TopicName) -> Vec<Subscription> {
        let of = self.topics.get_mut(topic).map(Arc::make_mut);
        let subscriptions = of.map(|of| std::mem::take(&mut of.subscriptions)).unwrap_or_default();
        subscriptions.into_values().map(Arc::unwrap_or_clone).collect()
    }

    /// Notices about destinations are published to this topic.
    pub fn notices_go_to(&mut self, topic: TopicName) {
        Arc::make_mut(&mut self.settings).notices = Some(topic);
    }

    /// Secrets are sent where this policy allows it.
    pub fn restrict_secrets(&mut self, policy: SecretPolicy) {
        Arc::make_mut(&mut self.settings).secrets = policy;
    }

    /// The topic to which notices about destinations are published, if anybody wants them.
    #[must_use]
    pub fn topic_of_notices(&self) -> Option<&TopicName> {
        self.settings.notices.as_ref()
    }

    /// The topic of this name, if any document names it.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&Topic> {
        self.topics.get(name).map(|of| &of.topic)
    }

    /// The topic that lists this publisher in its `from`.
    #[must_use]
    pub fn topic_from(&self, publisher: &Publisher) -> Option<&TopicName> {
        self.settings.publishers.get(publisher)
    }

    /// The reason why the subscriptions of a topic that was read are not known, if they are not.
    #[must_use]
    pub fn unreadable(&self, topic: &TopicName) -> Option<&str> {
        match self.found(topic) {
            Some(Found::Unreadable(why)) => Some(why),
            Some(Found::Topic | Found::Removed | Found::Nothing) | None => None,
        }
    }

    /// Why the subscription of this name cannot be used, if it is there and cannot be.
    #[must_use]
    pub fn unusable(&self, name: &SubscriptionName) -> Option<&str> {
        let topic = self.topics.get(&name.topic)?;
        let unusable = topic.unusable.get(&name.name).map(String::as_str);
        unusable.or_else(|| self.waits_for(topic.subscriptions.get(&name.name)?))
    }

    /// The reason why another topic that a subscription uses is not known, if it was read and is not.
    fn waits_for(&self, subscription: &Subscription) -> Option<&str> {
        subscription.other_topics().find_map(|topic| self.unreadable(&topic))
    }

    /// Checks whether some topic was read and is not known.
    fn has_unreadable(&self) -> bool {
        let found = self.read.iter().flat_map(BTreeMap::values);
        found.into_iter().any(|found| matches!(found, Found::Unreadable(_)))
    }

    /// The ranges within this one whose subscriptions cannot be used: as few as have no usable one between them.
    #[must_use]
    pub fn unusable_ranges(&self, topic: &TopicName, names: &NameRange) -> Vec<NameRange> {
        let Some(topic) = self.topics.get(topic) else { return Vec::new() };
        let mut unusable: BTreeSet<&str> = topic.unusable.keys().map(String::as_str).collect();
        if self.has_unreadable() {
            let waiting = topic.subscriptions.iter().filter(|(_, of)| self.waits_for(of).is_some());
            unusable.extend(waiting.map(|(name, _)| name.as_str()));
        }
        unusable.retain(|name| names.contains(name));
        topic.ranges_without_usable(&unusable)
    }

    /// Whether a topic has a subscription in this range that can be used.
    #[must_use]
    pub fn has_usable(&self, topic: &TopicName, names: &NameRange) -> bool {
        let subscriptions = self.topics.get(topic).into_iter().flat_map(|of| &of.subscriptions);
        let mut in_range = subscriptions.filter(|(name, _)| names.contains(name));
        in_range.any(|(_, subscription)| self.waits_for(subscription).is_none())
    }

    /// The subscription of this name.
    #[must_use]
    pub fn subscription(&self, name: &SubscriptionName) -> Option<&Arc<Subscription>> {
        self.topics.get(&name.topic)?.subscriptions.get(&name.name)
    }

    /// Every subscription, by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.topics.values().flat_map(|of| of.subscriptions.values())
    }

    /// Every topic, by name.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values().map(|of| &of.topic)
    }

    /// The subscriptions of a topic with a name in the range that can be used, have not expired and whose filter matches
    /// the event, by name.
    pub fn matching(
        &self,
        topic: &TopicName,
        names: &NameRange,
        event: &Event,
        now_ms: u64,
    ) -> impl Iterator<Item = &Arc<Subscription>> {
        let of = self.topics.get(topic);
        let found = of.map(|of| of.index().matching(&event.members(), names));
        let some_wait = self.has_unreadable();
        found.into_iter().flatten().filter(move |subscription| {
            subscription.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
                && !(some_wait && self.waits_for(subscription).is_some())
        })
    }
}

#[cfg(test)]
mod tests;
