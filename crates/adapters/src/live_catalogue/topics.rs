//! The topics that were read lately, within a bound of memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalogue::{Id, TopicFingerprint};
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;

/// The texts of all topics that are kept have together at most so many bytes. In memory they take about
/// three times as much.
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
    /// What it was read from.
    pub(super) fingerprint: Option<TopicFingerprint>,
    /// The bytes of its texts.
    pub(super) bytes: usize,
    /// When something newer, which could not be read, is read again; 0 if there was none.
    pub(super) not_before_ms: u64,
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
        // The newest stays, however large it is.
        while self.bytes > KEPT_BYTES && self.topics.len() > 1 {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.forget(&oldest);
        }
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
        ReadTopic { topic: None, version: None, fingerprint: None, bytes, not_before_ms: 0 }
    }

    #[test]
    fn the_topic_that_was_not_used_for_longest_makes_room() {
        let [a, b, c] =
            ["n/a", "n/b", "n/c"].map(|name| name.parse::<TopicName>().expect("a name"));
        let mut topics = Topics::default();
        topics.keep(a.clone(), read(KEPT_BYTES / 2 - TOPIC_BYTES));
        topics.keep(b.clone(), read(KEPT_BYTES / 2 - TOPIC_BYTES));
        assert!(topics.get(&a).is_some());
        topics.keep(c.clone(), read(0));
        assert!(topics.get(&a).is_some() && topics.get(&b).is_none() && topics.get(&c).is_some());
        topics.keep(b.clone(), read(2 * KEPT_BYTES));
        assert!(topics.get(&a).is_none() && topics.get(&b).is_some());
        topics.keep(b.clone(), read(1));
        assert_eq!(topics.bytes, 1 + TOPIC_BYTES);
        assert_eq!((topics.topics.len(), topics.order.len()), (1, 1));
    }
}
