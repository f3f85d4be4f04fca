//! The topics and subscriptions of one set of files.
//!
//! Looked up by name, or by the event to deliver. It is built each time the files are read and
//! never changes afterwards.

mod index;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use index::Index;

use crate::event::envelope::Publisher;
use crate::event::mapping::Mapping;
use crate::event::{Event, Input};
use crate::subscription::Subscription;
use crate::subscription::name::{NameRange, SubscriptionName, TopicName};

/// How many deliveries replies may lead to from the second generation on, for one published event, unless
/// its topic says otherwise.
pub const REPLIES_MAX: u32 = 64;

/// A topic that a document names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: TopicName,
    /// How its records are read.
    pub input: Input,
    /// Which fields of its custom events are its attributes.
    pub mapping: Arc<Mapping>,
    /// Publishers that cannot set the `topic` attribute.
    pub from: Vec<Publisher>,
    /// How many deliveries replies may lead to from the second generation on, for each of its events.
    pub max_replies: u32,
}

impl Topic {
    /// A topic with automatic input that no document describes.
    #[must_use]
    pub fn new(name: TopicName) -> Self {
        let max_replies = REPLIES_MAX;
        Self { name, input: Input::Auto, mapping: Arc::default(), from: Vec::new(), max_replies }
    }
}

/// All topics and subscriptions of one set of files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    topics: BTreeMap<TopicName, Subscribed>,
    notices: Option<TopicName>,
}

/// A topic and its subscriptions.
#[derive(Debug, Clone)]
struct Subscribed {
    topic: Topic,
    /// By their names within the topic.
    subscriptions: BTreeMap<String, Arc<Subscription>>,
    /// Made for the first event: most topics of a process have none.
    index: OnceLock<Index>,
}

impl PartialEq for Subscribed {
    fn eq(&self, other: &Self) -> bool {
        self.topic == other.topic && self.subscriptions == other.subscriptions
    }
}

impl Subscribed {
    fn new(topic: Topic) -> Self {
        Self { topic, subscriptions: BTreeMap::new(), index: OnceLock::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.subscriptions.values().cloned().collect()))
    }
}

impl Catalogue {
    /// Adds a topic; a second one of the same name replaces the first. The manifest checks
    /// uniqueness, since it can report positions.
    pub fn add_topic(&mut self, topic: Topic) {
        self.topics.insert(topic.name.clone(), Subscribed::new(topic));
    }

    /// Adds a subscription, and its topic with automatic input when no document describes that. Add
    /// described topics first: their mapping becomes the subscription's.
    pub fn add_subscription(&mut self, mut subscription: Subscription) {
        let SubscriptionName { topic, name } = subscription.name.clone();
        let new = || Subscribed::new(Topic::new(topic.clone()));
        let of = self.topics.entry(topic.clone()).or_insert_with(new);
        subscription.mapping = Arc::clone(&of.topic.mapping);
        of.subscriptions.insert(name, Arc::new(subscription));
        of.index.take();
    }

    /// Notices about destinations are published to this topic.
    pub fn notices_go_to(&mut self, topic: TopicName) {
        self.notices = Some(topic);
    }

    /// The topic to which notices about destinations are published, if anybody wants them.
    #[must_use]
    pub fn topic_of_notices(&self) -> Option<&TopicName> {
        self.notices.as_ref()
    }

    /// The topic of this name, if any document names it.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&Topic> {
        self.topics.get(name).map(|of| &of.topic)
    }

    /// The topic that lists this publisher in its `from`; if several do, the first by name.
    #[must_use]
    pub fn topic_from(&self, publisher: &Publisher) -> Option<&Topic> {
        self.topics().find(|topic| topic.from.contains(publisher))
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

    /// The subscriptions of a topic with a name in the range that have not expired and whose filter
    /// matches the event, by name.
    pub fn matching(
        &self,
        topic: &TopicName,
        names: &NameRange,
        event: &Event,
        now_ms: u64,
    ) -> impl Iterator<Item = &Arc<Subscription>> {
        let of = self.topics.get(topic);
        let found = of.map(|of| of.index().matching(&event.members(), names));
        found.into_iter().flatten().filter(move |subscription| {
            subscription.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
        })
    }
}

#[cfg(test)]
mod tests;
