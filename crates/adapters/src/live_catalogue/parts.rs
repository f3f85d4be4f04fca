//! A topic is read in parts: of one that was read before, only the leaves that are new.
//!
//! Separate because a topic may have a hundred thousand subscriptions, of which one changes every minute.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalogue::{Entry, Id, Namespace, Snapshot, TOPIC_LEAVES_MAX, TopicLeaf};
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;

use super::entries::{own_of, subscriptions_of, topic_of};
use super::objects::CatalogueObjects;
use super::told;
use super::topics::ReadTopic;

/// The topic in a snapshot; `before` is what was read of it earlier.
///
/// # Errors
/// Why it cannot be read.
pub(super) async fn read_topic(
    namespace: &Namespace<'_, CatalogueObjects>,
    name: &TopicName,
    snapshot: &Snapshot,
    before: Option<&ReadTopic>,
) -> Result<ReadTopic, String> {
    let version = snapshot.version();
    let leaves = namespace.topic_leaves(snapshot, &name.topic).await.map_err(|it| told(&it))?;
    if leaves.len() > TOPIC_LEAVES_MAX {
        let are = leaves.len();
        return Err(format!(
            "it is in {are} leaves, and at most {TOPIC_LEAVES_MAX} are read: divide it"
        ));
    }
    let read = async |leaves: &[&TopicLeaf]| {
        let read = namespace.leaf_entries(snapshot, &name.topic, leaves).await;
        read.map_err(|error| told(&error))
    };
    if let Some(before) = before {
        if before.is_from(&leaves) {
            return Ok(ReadTopic { version, not_before_ms: 0, ..before.clone() });
        }
        let known: HashSet<Id> = before.bytes_of().map(|(id, _)| id).collect();
        let new: Vec<&TopicLeaf> =
            leaves.iter().filter(|leaf| !known.contains(&leaf.id())).collect();
        if new.len() < leaves.len() {
            let entries = read(&new).await?;
            let bytes: HashMap<Id, usize> =
                bytes_of(&new, &entries).chain(before.bytes_of()).collect();
            if let Some(topic) = joined(name, before, &leaves, &new, &entries.concat())? {
                return Ok(ReadTopic::new(Some(Arc::new(topic)), version, leaves, &bytes));
            }
        }
    }
    let all: Vec<&TopicLeaf> = leaves.iter().collect();
    let entries = read(&all).await?;
    let bytes = bytes_of(&all, &entries).collect();
    let topic = topic_of(name, &entries.concat())?.map(Arc::new);
    Ok(ReadTopic::new(topic, version, leaves, &bytes))
}

fn bytes_of(leaves: &[&TopicLeaf], entries: &[Vec<Entry>]) -> impl Iterator<Item = (Id, usize)> {
    let bytes = |entry: &Entry| entry.key.len() + entry.value.len();
    let bytes = entries.iter().map(move |entries| entries.iter().map(bytes).sum());
    leaves.iter().map(|leaf| leaf.id()).zip(bytes)
}

/// What was read before, with these entries of the leaves that are new. `None`: all of the topic has to be
/// read, because how it is read has changed, and so all of its subscriptions; or it may be gone.
fn joined(
    name: &TopicName,
    before: &ReadTopic,
    leaves: &[TopicLeaf],
    new: &[&TopicLeaf],
    entries: &[Entry],
) -> Result<Option<TopicSubscriptions>, String> {
    let Some(topic) = before.topic.as_deref() else { return Ok(None) };
    let now: HashSet<Id> = leaves.iter().map(TopicLeaf::id).collect();
    let gone = before.leaves.iter().map(|(leaf, _)| leaf);
    let gone: Vec<&TopicLeaf> = gone.filter(|leaf| !now.contains(&leaf.id())).collect();
    let (own, subscriptions) = own_of(name, entries)?;
    if gone.iter().chain(new).any(|leaf| leaf.may_have_own()) && own != *topic.topic() {
        return Ok(None);
    }
    let subscriptions = subscriptions_of(name, &topic.topic().settings.mapping, subscriptions)?;
    let joined = topic.replaced(gone.into_iter().map(|leaf| &leaf.names), subscriptions);
    Ok(Some(joined).filter(|joined| !joined.is_empty()))
}

#[cfg(test)]
mod tests {
    use catalogue::NodeCache;
    use delivery::subscription::catalogue::Topic;

    use super::super::entries::plain_topic;
    use super::super::objects::tests::{in_folder, with_entry};
    use super::*;

    #[tokio::test]
    async fn a_topic_that_is_read_whole_has_the_bytes_of_its_entries() {
        let folder = tempfile::tempdir().expect("a folder");
        let (objects, nodes) = (in_folder(folder.path()), NodeCache::new(1_000_000));
        let namespace = Namespace::new(&objects, &nodes, "shop");
        let name: TopicName = "shop/orders".parse().expect("a topic");
        let mut before = None;
        // Names of two lengths, so that the bytes differ.
        for owner in ["one", "other"] {
            let (key, value) = plain_topic(owner, &Topic::new(name.clone()));
            let bytes = key.len() + value.len();
            let snapshot = with_entry(&namespace, (key, value)).await;
            let read = read_topic(&namespace, &name, &snapshot, before.as_ref()).await;
            let read = read.expect("a topic");
            let of_leaves: Vec<usize> = read.bytes_of().map(|(_, bytes)| bytes).collect();
            assert_eq!((read.bytes, of_leaves), (bytes, vec![bytes]), "{owner}");
            before = Some(read);
        }
    }
}
