//! What readers ask: one topic, one entry, all entries, earlier versions.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{Stream, stream};

use crate::error::ReadError;
use crate::format::{Entry, Id, Node, Reference, Version};
use crate::namespace::{Namespace, Snapshot, entries_of};
use crate::objects::Objects;

/// What a topic was read from. As long as it stays the same, so do the topic's entries; it may change although they
/// do not, because topics share leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicFingerprint(Id);

/// The keys from one on, up to another.
#[derive(Debug, Clone)]
struct KeyRange {
    from: String,
    before: String,
}

impl KeyRange {
    /// The entries of a topic: `topic/` and all keys that begin with it.
    fn of_topic(topic: &str) -> Self {
        // The byte after the slash.
        Self { from: format!("{topic}/"), before: format!("{topic}0") }
    }

    fn of_key(key: &str) -> Self {
        Self { from: key.to_owned(), before: format!("{key}\0") }
    }

    fn has(&self, key: &str) -> bool {
        *self.from <= *key && *key < *self.before
    }

    /// Whether a node may have keys of this range.
    fn meets(&self, place: &Reference) -> bool {
        *place.first < *self.before && place.before.as_ref().is_none_or(|end| **end > *self.from)
    }
}

impl<O: Objects> Namespace<'_, O> {
    /// The entries of a topic in the order of their keys, its own first; none if there is no such topic.
    ///
    /// # Errors
    /// [`ReadError`] when a node cannot be read.
    pub async fn topic(&self, snapshot: &Snapshot, topic: &str) -> Result<Vec<Entry>, ReadError> {
        self.entries_in(snapshot, &KeyRange::of_topic(topic)).await
    }

    /// What [`Namespace::topic`] would read, without reading a leaf.
    ///
    /// # Errors
    /// [`ReadError`] when a node cannot be read.
    pub async fn topic_fingerprint(
        &self,
        snapshot: &Snapshot,
        topic: &str,
    ) -> Result<TopicFingerprint, ReadError> {
        let leaves = self.leaves_in(snapshot, &KeyRange::of_topic(topic)).await?;
        Ok(TopicFingerprint(Id::of_all(leaves.iter().map(|(place, _)| &place.id))))
    }

    /// The value of one entry.
    ///
    /// # Errors
    /// [`ReadError`] when a node cannot be read.
    pub async fn entry(
        &self,
        snapshot: &Snapshot,
        key: &str,
    ) -> Result<Option<Arc<str>>, ReadError> {
        let found = self.entries_in(snapshot, &KeyRange::of_key(key)).await?;
        Ok(found.into_iter().next().map(|entry| entry.value))
    }

    /// All entries in the order of their keys, of which those of one leaf are held at a time. They pass through the
    /// cache, so a reader of topics uses another one for this.
    pub fn entries(&self, snapshot: &Snapshot) -> impl Stream<Item = Result<Entry, ReadError>> {
        let places = snapshot.root().map(|(_, place)| place).into_iter().collect::<Vec<_>>();
        let root = snapshot.root.clone();
        stream::try_unfold((places, VecDeque::new(), root), async move |state| {
            let (mut places, mut entries, mut root) = state;
            loop {
                if let Some(entry) = entries.pop_front() {
                    return Ok(Some((entry, (places, entries, root))));
                }
                let Some(place) = places.pop() else { return Ok(None) };
                let node = match root.take() {
                    Some((_, node)) => node,
                    None => self.node(place.clone()).await?,
                };
                places.extend(node.references(place.before.as_ref()).into_iter().rev());
                entries = entries_of(&node).to_vec().into();
            }
        })
    }

    /// The newest versions, newest first; fewer where older ones were removed.
    ///
    /// # Errors
    /// [`ReadError`] when a version cannot be read.
    pub async fn history(&self, at_most: usize) -> Result<Vec<Version>, ReadError> {
        let mut versions: Vec<Version> = Vec::new();
        let mut next = self.load(None).await?.and_then(|snapshot| snapshot.version);
        while let Some(id) = next.filter(|_| versions.len() < at_most) {
            let version = match self.version(id).await {
                // The first one has to be there, and an older one that is not was garbage.
                Err(ReadError::Missing { .. }) if !versions.is_empty() => break,
                read => read?,
            };
            next = version.previous;
            versions.push(version);
        }
        Ok(versions)
    }

    async fn entries_in(
        &self,
        snapshot: &Snapshot,
        range: &KeyRange,
    ) -> Result<Vec<Entry>, ReadError> {
        let leaves = self.leaves_in(snapshot, range).await?;
        let unread = leaves.iter().filter(|(_, node)| node.is_none());
        let mut read =
            self.nodes(unread.map(|(place, _)| place.clone()).collect()).await?.into_iter();
        let nodes = leaves.into_iter().filter_map(|(_, node)| node.or_else(|| read.next()));
        let in_range = |node: Arc<Node>| {
            let entries = entries_of(&node).iter().filter(|entry| range.has(&entry.key));
            entries.cloned().collect::<Vec<_>>()
        };
        Ok(nodes.flat_map(in_range).collect())
    }

    /// The leaves that may have keys of this range; of them only the root has been read.
    async fn leaves_in(
        &self,
        snapshot: &Snapshot,
        range: &KeyRange,
    ) -> Result<Vec<(Reference, Option<Arc<Node>>)>, ReadError> {
        let Some((root, place)) = snapshot.root() else { return Ok(Vec::new()) };
        let mut level = place.level;
        let mut places = vec![(place, Some(root.clone()))];
        while level > 0 {
            let unread = places.iter().filter(|(_, node)| node.is_none());
            let mut read =
                self.nodes(unread.map(|(place, _)| place.clone()).collect()).await?.into_iter();
            let below = places.into_iter().flat_map(|(place, node)| {
                let node = node.or_else(|| read.next());
                node.map_or_else(Vec::new, |node| node.references(place.before.as_ref()))
            });
            places = below.filter(|place| range.meets(place)).map(|place| (place, None)).collect();
            level -= 1;
        }
        Ok(places)
    }
}
