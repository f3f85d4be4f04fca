//! The topics that were read lately, within a bound of memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;

/// The objects of all topics that are kept have together at most so many bytes, without the largest of them. In memory
/// they take about three times as much.
pub(super) const KEPT_BYTES: usize = 8 * 1_024 * 1_024;
/// The bytes that a topic counts beside its object.
const TOPIC_BYTES: usize = 512;

/// A topic as it was read last.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// `None`: it was removed.
    pub(super) topic: Option<Arc<TopicSubscriptions>>,
    /// The ETag of the object that it was read from.
    pub(super) etag: Option<String>,
    /// The ETag of a newer object that cannot be used.
    pub(super) unusable_etag: Option<String>,
    /// The size of the object.
    pub(super) bytes: usize,
    /// Its object may be another one by now.
    pub(super) is_stale: bool,
    /// When the object is read again that could not be read or used; 0 if it could.
    pub(super) not_before_ms: u64,
}

impl Kept {
    /// A topic that was read from an object with this ETag and so many bytes.
    pub(super) const fn read(
        topic: Option<Arc<TopicSubscriptions>>,
        etag: Option<String>,
        bytes: usize,
    ) -> Self {
        Self { topic, etag, unusable_etag: None, bytes, is_stale: false, not_before_ms: 0 }
    }

    /// True if it may be used as it is.
    pub(super) const fn is_current(&self, now_ms: u64) -> bool {
        if self.not_before_ms > 0 { now_ms < self.not_before_ms } else { !self.is_stale }
    }
}

/// The topics by name. If there is no room, the one that was not used for longest is forgotten.
#[derive(Debug, Default)]
pub(super) struct KeptTopics {
    topics: HashMap<TopicName, (u64, Kept)>,
    /// By when they were used last.
    order: BTreeMap<u64, TopicName>,
    uses: u64,
    bytes: usize,
}

impl KeptTopics {
    /// The topic, if it is kept.
    pub(super) fn get(&mut self, name: &TopicName) -> Option<&Kept> {
        let (used, kept) = self.topics.get_mut(name)?;
        self.uses += 1;
        let name = self.order.remove(used)?;
        *used = self.uses;
        self.order.insert(self.uses, name);
        Some(kept)
    }

    /// Keeps a topic in place of what was known of it.
    pub(super) fn keep(&mut self, name: TopicName, kept: Kept) {
        self.forget(&name);
        self.uses += 1;
        self.bytes += kept.bytes + TOPIC_BYTES;
        self.order.insert(self.uses, name.clone());
        self.topics.insert(name, (self.uses, kept));
        // The largest does not count: otherwise one that is larger than all may be, and another one, would be read
        // again for each event.
        while self.bytes > KEPT_BYTES && self.bytes - self.largest() > KEPT_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.forget(&oldest);
        }
    }

    /// Marks as stale what a page of the listing shows to have changed: `listed` has the ETag of each topic on it, and
    /// `is_on_page` says which topics it would show.
    pub(super) fn compare(
        &mut self,
        listed: &BTreeMap<TopicName, &str>,
        is_on_page: impl Fn(&TopicName) -> bool,
    ) -> BTreeSet<TopicName> {
        let mut changed = BTreeSet::new();
        for (name, (_, kept)) in &mut self.topics {
            let listed = listed.get(name).copied();
            if is_on_page(name) && listed != kept.etag.as_deref() {
                kept.is_stale = true;
                changed.insert(name.clone());
            }
        }
        changed
    }

    fn largest(&self) -> usize {
        self.topics.values().map(|(_, kept)| kept.bytes + TOPIC_BYTES).max().unwrap_or_default()
    }

    fn forget(&mut self, name: &TopicName) {
        if let Some((used, kept)) = self.topics.remove(name) {
            self.order.remove(&used);
            self.bytes -= kept.bytes + TOPIC_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize, etag: &str) -> Kept {
        let etag = Some(etag.to_owned());
        Kept { topic: None, etag, unusable_etag: None, bytes, is_stale: false, not_before_ms: 0 }
    }

    fn names<const N: usize>(names: [&str; N]) -> [TopicName; N] {
        names.map(|name| name.parse().expect("a name"))
    }

    #[test]
    fn the_topic_that_was_not_used_for_longest_makes_room() {
        let [a, b, c, d] = names(["n/a", "n/b", "n/c", "n/d"]);
        let half = KEPT_BYTES / 2 - TOPIC_BYTES;
        let mut topics = KeptTopics::default();
        // The largest does not count, so three halves have room.
        for name in [&a, &b, &c] {
            topics.keep(name.clone(), of(half, "1"));
        }
        assert!(topics.get(&a).is_some());
        topics.keep(d.clone(), of(half, "1"));
        let kept =
            |topics: &mut KeptTopics| [&a, &b, &c, &d].map(|name| topics.get(name).is_some());
        assert_eq!(kept(&mut topics), [true, false, true, true]);
        // One that is larger than all may be stays beside small ones, also when these are read again.
        topics.keep(a.clone(), of(10 * KEPT_BYTES, "1"));
        topics.keep(c.clone(), of(1, "1"));
        topics.keep(d.clone(), of(1, "1"));
        assert_eq!(kept(&mut topics), [true, false, true, true]);
        // But not two such.
        topics.keep(b.clone(), of(10 * KEPT_BYTES, "1"));
        assert_eq!(kept(&mut topics), [false, true, true, true]);
        topics.keep(b.clone(), of(1, "1"));
        assert_eq!(topics.bytes, 3 * (1 + TOPIC_BYTES));
        assert_eq!((topics.topics.len(), topics.order.len()), (3, 3));
    }

    #[test]
    fn what_a_page_shows_differently_or_no_longer_is_stale() {
        let [same, changed, gone, later] = names(["n/a", "n/b", "n/c", "n/z"]);
        let mut topics = KeptTopics::default();
        for name in [&same, &changed, &gone, &later] {
            topics.keep(name.clone(), of(1, "1"));
        }
        let listed = BTreeMap::from([(same.clone(), "1"), (changed.clone(), "2")]);
        let found = topics.compare(&listed, |name| *name < later);
        assert_eq!(found, BTreeSet::from([changed.clone(), gone.clone()]));
        let current =
            [&same, &changed, &gone, &later].map(|name| topics.get(name).unwrap().is_current(1));
        assert_eq!(current, [true, false, false, true]);
    }
}
