//! Caches recently used topics, within a memory limit.
//!
//! Separate from reading because eviction and memory limits need no storage. Small topics share one
//! limit. Large topics have another limit, which also counts topics that are no longer cached but
//! still in use.
//!
//! Promises: evicts the least recently used topic. The largest topic never evicts the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;
use delivery::topic_object::memory_bytes;

/// Memory limit of all cached topics except the largest one: enough for a thousand topics with ten
/// subscriptions each.
pub(super) const KEPT_BYTES: usize = 32 * 1_024 * 1_024;
/// Memory of a topic without its subscriptions.
const TOPIC_BYTES: usize = 512;
/// Memory above which a topic counts as large.
pub(super) const LARGE_BYTES: usize = 128 * 1_024;
/// Duration for which a confirmation by a request or the listing is valid. Afterwards the topic is
/// requested before its next use. Without this limit, a process with few events would use old
/// topics, because its checks take longer than this to reach every topic of a long listing.
const CONFIRMED_FOR_MS: u64 = 5 * 60 * 1_000;

/// A cached topic, as it was last read.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// The topic; `None` if it was removed.
    pub(super) topic: Option<Arc<TopicSubscriptions>>,
    /// The ETag of the object from which the topic was read.
    pub(super) etag: Option<String>,
    /// The ETag of a newer version of the object that is unusable.
    pub(super) unusable_etag: Option<String>,
    /// The memory that the topic occupies.
    pub(super) bytes: usize,
    /// Time at which the cached version was last confirmed to be the newest.
    pub(super) confirmed_ms: u64,
    /// True if the topic's object may have changed.
    pub(super) is_stale: bool,
    /// Earliest time of the next read, if the last read failed or returned an unusable object; 0
    /// after a successful read.
    pub(super) not_before_ms: u64,
}

impl Kept {
    /// Creates the entry of a topic that was read at `confirmed_ms`.
    pub(super) fn read(
        topic: Option<Arc<TopicSubscriptions>>,
        etag: Option<String>,
        object_bytes: usize,
        confirmed_ms: u64,
    ) -> Self {
        let subscriptions = || topic.iter().flat_map(|topic| topic.subscriptions());
        let conditions = subscriptions().map(|subscription| subscription.filter.size()).sum();
        let bytes = memory_bytes(object_bytes, subscriptions().count(), conditions) + TOPIC_BYTES;
        let (unusable_etag, is_stale, not_before_ms) = Default::default();
        Self { topic, etag, unusable_etag, bytes, confirmed_ms, is_stale, not_before_ms }
    }

    /// Returns the entry, confirmed to be the newest version at `confirmed_ms`.
    pub(super) fn confirmed_at(self, confirmed_ms: u64) -> Self {
        Self { is_stale: false, not_before_ms: 0, confirmed_ms, ..self }
    }

    pub(super) const fn is_large(&self) -> bool {
        self.bytes > LARGE_BYTES
    }

    /// True if the topic may be used without another request to storage.
    pub(super) const fn is_current(&self, now_ms: u64) -> bool {
        if self.not_before_ms > 0 {
            return now_ms < self.not_before_ms;
        }
        !self.is_stale && now_ms.abs_diff(self.confirmed_ms) < CONFIRMED_FOR_MS
    }
}

/// Cached topics by name. A full cache evicts the least recently used topic.
#[derive(Debug, Default)]
pub(super) struct KeptTopics {
    topics: HashMap<TopicName, (u64, Kept)>,
    /// Names of the topics in order of last use.
    order: BTreeMap<u64, TopicName>,
    uses: u64,
    bytes: usize,
    /// The large topics in memory, cached or only in use, with their sizes.
    large: Vec<(Weak<TopicSubscriptions>, usize)>,
}

impl KeptTopics {
    /// Returns the cached entry of a topic, and marks it as used.
    pub(super) fn get(&mut self, name: &TopicName) -> Option<&Kept> {
        let (used, kept) = self.topics.get_mut(name)?;
        self.uses += 1;
        let name = self.order.remove(used)?;
        *used = self.uses;
        self.order.insert(self.uses, name);
        Some(kept)
    }

    pub(super) fn len(&self) -> usize {
        self.topics.len()
    }

    /// Marks all topics as stale, so that each is requested before its next use.
    pub(super) fn make_all_stale(&mut self) {
        self.topics.values_mut().for_each(|(_, kept)| kept.is_stale = true);
    }

    /// Marks a topic as stale, so that it is requested before its next use.
    pub(super) fn make_stale(&mut self, name: &TopicName) {
        if let Some((_, kept)) = self.topics.get_mut(name) {
            kept.is_stale = true;
        }
    }

    /// Caches a topic, and replaces its previous entry.
    pub(super) fn keep(&mut self, name: TopicName, kept: Kept) {
        self.forget(&name);
        self.uses += 1;
        self.bytes += kept.bytes;
        self.order.insert(self.uses, name.clone());
        self.topics.insert(name, (self.uses, kept));
        // Exclude the largest topic. Otherwise a topic above the limit would displace all others,
        // and events of two topics would make the process read both again each time.
        while self.bytes > KEPT_BYTES && self.bytes - self.largest() > KEPT_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.forget(&oldest);
        }
    }

    /// Tracks the memory of a large topic until its last user drops it.
    pub(super) fn note_in_memory(&mut self, kept: &Kept) {
        self.large.retain(|(topic, _)| topic.strong_count() > 0);
        if let Some(topic) = kept.topic.as_ref().filter(|_| kept.is_large()) {
            self.large.push((Arc::downgrade(topic), kept.bytes));
        }
    }

    /// Evicts large topics until `bytes` bytes of memory are free, or all remaining ones are in
    /// use. Returns the free memory, which is unlimited if no large topic is in memory.
    pub(super) fn make_room(&mut self, bytes: usize, limit: usize) -> usize {
        loop {
            self.large.retain(|(topic, _)| topic.strong_count() > 0);
            let used: usize = self.large.iter().map(|(_, bytes)| bytes).sum();
            let room = if used == 0 { usize::MAX } else { limit.saturating_sub(used) };
            if room >= bytes {
                return room;
            }
            let is_large =
                |name: &&TopicName| self.topics.get(*name).is_some_and(|(_, kept)| kept.is_large());
            let Some(oldest) = self.order.values().find(is_large).cloned() else { return room };
            self.forget(&oldest);
        }
    }

    /// Compares the cached topics with a page of the listing: changed topics become stale, the
    /// others are confirmed. `listed` has the ETag of each topic on the page. `is_on_page` is true
    /// for a name within the range of the page. If such a topic is not listed, its object is gone.
    pub(super) fn compare(
        &mut self,
        listed: &BTreeMap<TopicName, &str>,
        is_on_page: impl Fn(&TopicName) -> bool,
        now_ms: u64,
    ) -> BTreeSet<TopicName> {
        let mut changed = BTreeSet::new();
        for (name, (_, kept)) in &mut self.topics {
            let listed = listed.get(name).copied();
            if !is_on_page(name) {
                continue;
            }
            if listed == kept.etag.as_deref() {
                kept.confirmed_ms = now_ms;
            } else {
                kept.is_stale = true;
                changed.insert(name.clone());
            }
        }
        changed
    }

    fn largest(&self) -> usize {
        self.topics.values().map(|(_, kept)| kept.bytes).max().unwrap_or_default()
    }

    fn forget(&mut self, name: &TopicName) {
        if let Some((used, kept)) = self.topics.remove(name) {
            self.order.remove(&used);
            self.bytes -= kept.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use delivery::subscription::catalogue::Topic;

    use super::*;

    fn kept_topic(bytes: usize, etag: &str) -> Kept {
        let etag = Some(etag.to_owned());
        Kept { bytes, ..Kept::read(None, etag, 0, 0) }
    }

    fn names<const N: usize>(names: [&str; N]) -> [TopicName; N] {
        names.map(|name| name.parse().expect("a name"))
    }

    #[test]
    fn the_topic_that_was_not_used_for_longest_makes_room() {
        let [a, b, c, d] = names(["n/a", "n/b", "n/c", "n/d"]);
        let half = KEPT_BYTES / 2;
        let mut topics = KeptTopics::default();
        // The largest topic does not count, so three topics of half the limit fit.
        for name in [&a, &b, &c] {
            topics.keep(name.clone(), kept_topic(half, "1"));
        }
        assert!(topics.get(&a).is_some());
        topics.keep(d.clone(), kept_topic(half, "1"));
        let kept =
            |topics: &mut KeptTopics| [&a, &b, &c, &d].map(|name| topics.get(name).is_some());
        assert_eq!(kept(&mut topics), [true, false, true, true]);
        // A topic above the limit stays cached beside small topics, even if the small topics are
        // read again.
        topics.keep(a.clone(), kept_topic(10 * KEPT_BYTES, "1"));
        topics.keep(c.clone(), kept_topic(1, "1"));
        topics.keep(d.clone(), kept_topic(1, "1"));
        assert_eq!(kept(&mut topics), [true, false, true, true]);
        // Two topics above the limit do not fit together.
        topics.keep(b.clone(), kept_topic(10 * KEPT_BYTES, "1"));
        assert_eq!(kept(&mut topics), [false, true, true, true]);
        topics.keep(b.clone(), kept_topic(1, "1"));
        assert_eq!(topics.bytes, 3);
        assert_eq!((topics.topics.len(), topics.order.len()), (3, 3));
    }

    #[test]
    fn what_a_page_shows_differently_or_no_longer_is_stale() {
        let [same, changed, gone, later] = names(["n/a", "n/b", "n/c", "n/z"]);
        let mut topics = KeptTopics::default();
        for name in [&same, &changed, &gone, &later] {
            topics.keep(name.clone(), kept_topic(1, "1"));
        }
        let listed = BTreeMap::from([(same.clone(), "1"), (changed.clone(), "2")]);
        let found = topics.compare(&listed, |name| *name < later, CONFIRMED_FOR_MS);
        assert_eq!(found, BTreeSet::from([changed.clone(), gone.clone()]));
        let current =
            [&same, &changed, &gone, &later].map(|name| topics.get(name).unwrap().is_current(1));
        assert_eq!(current, [true, false, false, true]);
        // The last topic has not been confirmed for too long.
        let current =
            [&same, &later].map(|name| topics.get(name).unwrap().is_current(CONFIRMED_FOR_MS));
        assert_eq!(current, [true, false]);
    }

    #[test]
    fn a_large_topic_has_room_once_those_in_use_are_dropped() {
        let [a, b] = names(["n/a", "n/b"]);
        let large = |name: &TopicName| {
            let topic = TopicSubscriptions::new(Topic::new(name.clone()));
            Kept { topic: Some(Arc::new(topic)), ..kept_topic(2 * LARGE_BYTES, "1") }
        };
        let mut topics = KeptTopics::default();
        let limit = 3 * LARGE_BYTES;
        assert_eq!(topics.make_room(2 * limit, limit), usize::MAX, "it is the only one");
        let in_use = large(&a);
        topics.note_in_memory(&in_use);
        topics.keep(a.clone(), in_use.clone());
        assert_eq!(topics.make_room(LARGE_BYTES, limit), LARGE_BYTES);
        assert!(topics.get(&a).is_some());
        assert_eq!(topics.make_room(2 * LARGE_BYTES, limit), LARGE_BYTES);
        assert!(topics.get(&a).is_none(), "it is forgotten, but still in use");
        drop(in_use);
        assert_eq!(topics.make_room(2 * LARGE_BYTES, limit), usize::MAX);
        // A large topic that is cached but not in use is evicted.
        let kept = large(&b);
        topics.note_in_memory(&kept);
        topics.keep(b.clone(), kept);
        assert_eq!(topics.make_room(2 * LARGE_BYTES, limit), usize::MAX);
        assert!(topics.get(&b).is_none());
    }
}
