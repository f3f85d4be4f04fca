//! The topics that were read lately, within a bound of memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalogue::{Id, TopicLeaf};
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;

/// The texts of all topics that are kept have together at most so many bytes, without those of the largest.
/// In memory they take about three times as much.
pub(super) const KEPT_BYTES: usize = 8 * 1_024 * 1_024;
/// What a topic counts beside its texts.
const TOPIC_BYTES: usize = 512;

/// A topic as it was read.
#[derive(Debug, Clone)]
pub(super) struct ReadTopic {
    /// `None`: there is none of this name.
    pub(super) topic: Option<Arc<TopicSubscriptions>>,
    /// The version of its namespace in which it was found last.
    pub(super) version: Option<Id>,
    /// What it was read from, and the bytes of its texts there.
    pub(super) leaves: Arc<[(TopicLeaf, usize)]>,
    /// All of these bytes.
    pub(super) bytes: usize,
    /// When something newer, which could not be read, is read again; 0 if there was none.
    pub(super) not_before_ms: u64,
}

impl ReadTopic {
    /// From these leaves, whose bytes these are by id.
    pub(super) fn new(
        topic: Option<Arc<TopicSubscriptions>>,
        version: Option<Id>,
        leaves: Vec<TopicLeaf>,
        bytes_of: &HashMap<Id, usize>,
    ) -> Self {
        let bytes = |leaf: &TopicLeaf| bytes_of.get(&leaf.id()).copied().unwrap_or_default();
        let leaves = leaves.into_iter().map(|leaf| (bytes(&leaf), leaf));
        let leaves: Arc<[_]> = leaves.map(|(bytes, leaf)| (leaf, bytes)).collect();
        let bytes = leaves.iter().map(|(_, bytes)| bytes).sum();
        Self { topic, version, leaves, bytes, not_before_ms: 0 }
    }

    /// The bytes of its texts in each leaf.
    pub(super) fn bytes_of(&self) -> impl Iterator<Item = (Id, usize)> {
        self.leaves.iter().map(|(leaf, bytes)| (leaf.id(), *bytes))
    }

    /// Whether it was read from these leaves.
    pub(super) fn is_from(&self, leaves: &[TopicLeaf]) -> bool {
        self.leaves.iter().map(|(leaf, _)| leaf.id()).eq(leaves.iter().map(TopicLeaf::id))
    }
}

/// The topics by name; when there is no room, the one that was not used for longest is forgotten.
#[derive(Debug, Default)]
pub(super) struct Topics {
    topics: HashMap<TopicName, (u64, ReadTopic)>,
    /// By when they were used last.
    order: BTreeMap<u64, TopicName>,
    uses: u64,
    bytes: usize,
}

impl Topics {
    /// The topic, if it is kept.
    pub(super) fn get(&mut self, name: &TopicName) -> Option<&ReadTopic> {
        let (used, topic) = self.topics.get_mut(name)?;
        self.uses += 1;
        let name = self.order.remove(used)?;
        *used = self.uses;
        self.order.insert(self.uses, name);
        Some(topic)
    }

    /// Keeps a topic in place of what was known of it.
    pub(super) fn keep(&mut self, name: TopicName, topic: ReadTopic) {
        self.forget(&name);
        self.uses += 1;
        self.bytes += topic.bytes + TOPIC_BYTES;
        self.order.insert(self.uses, name.clone());
        self.topics.insert(name, (self.uses, topic));
        // The largest does not count: otherwise one that is larger than all may be, and another one, would be read
        // again for each event.
        while self.bytes > KEPT_BYTES && self.bytes - self.largest() > KEPT_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.forget(&oldest);
        }
    }

    fn largest(&self) -> usize {
        self.topics.values().map(|(_, topic)| topic.bytes + TOPIC_BYTES).max().unwrap_or_default()
    }

    fn forget(&mut self, name: &TopicName) {
        if let Some((used, topic)) = self.topics.remove(name) {
            self.order.remove(&used);
            self.bytes -= topic.bytes + TOPIC_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: usize) -> ReadTopic {
        ReadTopic { topic: None, version: None, leaves: Arc::default(), bytes, not_before_ms: 0 }
    }

    #[test]
    fn the_topic_that_was_not_used_for_longest_makes_room() {
        let [a, b, c, d] =
            ["n/a", "n/b", "n/c", "n/d"].map(|name| name.parse::<TopicName>().expect("a name"));
        // Of eight megabytes.
        let half = 4 * 1_024 * 1_024 - TOPIC_BYTES;
        let mut topics = Topics::default();
        // The largest does not count, so three halves have room.
        for name in [&a, &b, &c] {
            topics.keep(name.clone(), read(half));
        }
        assert!(topics.get(&a).is_some());
        topics.keep(d.clone(), read(half));
        let kept = |topics: &mut Topics| [&a, &b, &c, &d].map(|name| topics.get(name).is_some());
        assert_eq!(kept(&mut topics), [true, false, true, true]);
        // One that is larger than all may be stays beside small ones, also when these are read again.
        topics.keep(a.clone(), read(10 * KEPT_BYTES));
        topics.keep(c.clone(), read(1));
        topics.keep(d.clone(), read(1));
        assert_eq!(kept(&mut topics), [true, false, true, true]);
        // But not two such.
        topics.keep(b.clone(), read(10 * KEPT_BYTES));
        assert_eq!(kept(&mut topics), [false, true, true, true]);
        topics.keep(b.clone(), read(1));
        assert_eq!(topics.bytes, 3 * (1 + TOPIC_BYTES));
        assert_eq!((topics.topics.len(), topics.order.len()), (3, 3));
    }
}
