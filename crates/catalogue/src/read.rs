//! What readers ask: one topic, one entry, all entries, earlier versions.

use std::collections::VecDeque;
use std::sync::Arc;

use delivery::subscription::name::NameRange;
use futures::{Stream, stream};

use crate::error::ReadError;
use crate::format::{Entry, Id, KeyRange, Node, Reference, Version};
use crate::namespace::{Namespace, REQUESTS_MAX, Snapshot, entries_of};
use crate::objects::Objects;

/// A leaf that may have entries of a topic: which one, and of which subscriptions.
///
/// A leaf never changes. So of a topic that was read before, only those leaves have to be read that it did not have
/// then, in the place of those that it no longer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicLeaf {
    place: Reference,
    /// The names of the subscriptions that it may have.
    pub names: NameRange,
}

impl TopicLeaf {
    fn new(topic: &str, place: Reference) -> Self {
        let name = |key: &str| Some(key.strip_prefix(topic)?.strip_prefix('/')?.to_owned());
        // Where a neighbouring topic begins or ends, so does this one.
        let names = NameRange {
            from: name(&place.first).unwrap_or_default(),
            before: place.before.as_deref().and_then(name),
        };
        Self { place, names }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> Id {
        self.place.id
    }

    /// Whether the topic's own entry may be in it.
    #[must_use]
    pub fn may_have_own(&self) -> bool {
        self.names.from.is_empty()
    }
}

/// Takes the next places off the end of a list, as many as are read at once: those of one level.
fn next_places(places: &mut Vec<Reference>) -> Vec<Reference> {
    let Some(level) = places.last().map(|place| place.level) else { return Vec::new() };
    let others = places.iter().rev().take_while(|place| place.level == level).take(REQUESTS_MAX);
    let at = places.len() - others.count();
    places.split_off(at).into_iter().rev().collect()
}

impl<O: Objects> Namespace<'_, O> {
    /// The entries of a topic in the order of their keys, its own first; none if there is no such topic.
    ///
    /// # Errors
    /// [`ReadError`] when a node cannot be read.
    pub async fn topic(&self, snapshot: &Snapshot, topic: &str) -> Result<Vec<Entry>, ReadError> {
        self.entries_in(snapshot, &KeyRange::of_topic(topic)).await
    }

    /// The leaves of which [`Namespace::topic`] returns the entries, in their order, without reading one.
    ///
    /// # Errors
    /// [`ReadError`] when a node cannot be read.
    pub async fn topic_leaves(
        &self,
        snapshot: &Snapshot,
        topic: &str,
    ) -> Result<Vec<TopicLeaf>, ReadError> {
        let leaves = self.leaves_in(snapshot, &KeyRange::of_topic(topic)).await?;
        Ok(leaves.into_iter().map(|(place, _)| TopicLeaf::new(topic, place)).collect())
    }

    /// The topic's entries in each of these leaves of it.
    ///
    /// # Errors
    /// [`ReadError`] when one cannot be read.
    pub async fn leaf_entries(
        &self,
        snapshot: &Snapshot,
        topic: &str,
        leaves: &[&TopicLeaf],
    ) -> Result<Vec<Vec<Entry>>, ReadError> {
        let nodes = match (&snapshot.root, leaves) {
            // The only one, which nobody has to read.
            (Some((id, root)), [leaf]) if *id == leaf.id() => vec![root.clone()],
            _ => self.nodes(leaves.iter().map(|leaf| leaf.place.clone()).collect()).await?,
        };
        let range = KeyRange::of_topic(topic);
        let in_range = |node: &Arc<Node>| {
            entries_of(node).iter().filter(|entry| range.has(&entry.key)).cloned().collect()
        };
        Ok(nodes.iter().map(in_range).collect())
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

    /// All entries in the order of their keys, of which those of some leaves are held at a time. They pass through
    /// the cache, so a reader of topics uses another one for this.
    pub fn entries(&self, snapshot: &Snapshot) -> impl Stream<Item = Result<Entry, ReadError>> {
        let places = snapshot.root().map(|(_, place)| place).into_iter().collect::<Vec<_>>();
        let root = snapshot.root.clone();
        stream::try_unfold((places, VecDeque::new(), root), async move |state| {
            let (mut places, mut entries, mut root): (Vec<Reference>, VecDeque<Entry>, _) = state;
            loop {
                if let Some(entry) = entries.pop_front() {
                    return Ok(Some((entry, (places, entries, root))));
                }
                let read = next_places(&mut places);
                if read.is_empty() {
                    return Ok(None);
                }
                let nodes = match root.take() {
                    Some((_, node)) => vec![node],
                    None => self.nodes(read.clone()).await?,
                };
                let below = nodes.iter().zip(&read);
                let below = below.flat_map(|(node, place)| node.references(place.before.as_ref()));
                places.extend(below.collect::<Vec<_>>().into_iter().rev());
                entries.extend(nodes.iter().flat_map(|node| entries_of(node)).cloned());
            }
        })
    }

    /// The newest versions, newest first; fewer where older ones were removed.
    ///
    /// # Errors
    /// [`ReadError`] when a version cannot be read.
    pub async fn history(&self, at_most: usize) -> Result<Vec<Version>, ReadError> {
        self.history_while(|versions| versions.len() < at_most).await
    }

    /// The versions from the newest one down to this number, newest first; fewer where older ones were removed.
    ///
    /// # Errors
    /// [`ReadError`] when a version cannot be read.
    pub async fn history_down_to(&self, number: u64) -> Result<Vec<Version>, ReadError> {
        let is_after = |version: &Version| version.number > number;
        self.history_while(|versions| versions.last().is_none_or(is_after)).await
    }

    async fn history_while(
        &self,
        goes_on: impl Fn(&[Version]) -> bool,
    ) -> Result<Vec<Version>, ReadError> {
        let mut versions: Vec<Version> = Vec::new();
        let mut next = self.load(None).await?.and_then(|snapshot| snapshot.version);
        while let Some(id) = next.filter(|_| goes_on(&versions)) {
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
        while level > 0 && !places.is_empty() {
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
