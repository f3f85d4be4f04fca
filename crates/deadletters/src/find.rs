//! Finds single dead letters by id, by a prefix of an id, by key, or by the event's id.
//!
//! Separate because the keys alone suffice for most of these look-ups, without reading a blob. Only
//! event ids require reading every blob.

use std::collections::{HashMap, HashSet};

use adapters::storage::Entry;
use delivery::deadletter::stored::{StoredDeadLetter, id_of_key};
use delivery::subscription::name::{SubscriptionName, TopicName};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::dead_letters::{DeadLetters, READS_AT_ONCE, identity, sort_newest_first};
use crate::filter::Filter;
use crate::walk::ReadAhead;

/// Minimum length of a prefix of an id. Shorter prefixes would match by accident.
const ID_PREFIX_MIN: usize = 8;

/// Maximum number of blobs, newest first, that are read to find further dead letters of an event.
/// Keys do not contain event ids, so this search reads blobs.
pub const SAME_EVENT_READS_MAX: usize = 1_000;

type Found = HashMap<(SubscriptionName, Uuid), StoredDeadLetter>;

/// Dead letters that have the same event as a given dead letter, excluding the given one.
#[derive(Debug, Default)]
pub struct SameEvent {
    /// The dead letters that were found, newest first.
    pub letters: Vec<StoredDeadLetter>,
    /// True if all dead letters of the topic were read.
    pub is_whole: bool,
}

impl DeadLetters {
    /// Finds dead letters by ids, prefixes of ids, keys or event ids. Returns each dead letter
    /// once.
    ///
    /// # Errors
    /// Fails if the container cannot be read, or has no blob with a given key.
    pub async fn find(&self, wanted: &[String]) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let mut found = Found::new();
        let mut missing: HashSet<&str> = HashSet::new();
        for wanted in wanted {
            match self.as_key(wanted) {
                Some(key) => {
                    let letter = self.of_key(&key).await?;
                    found.insert(identity(&letter), letter);
                }
                None => _ = missing.insert(wanted),
            }
        }
        if !missing.is_empty() {
            self.find_by_id(&mut missing, &mut found).await?;
        }
        if !missing.is_empty() {
            // This search is last because it reads every blob.
            self.find_by_event(&missing, &mut found).await?;
        }
        let mut found: Vec<StoredDeadLetter> = found.into_values().collect();
        sort_newest_first(&mut found);
        Ok(found)
    }

    /// Returns the other dead letters with the same topic, event id and source, newest first.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn of_same_event(&self, letter: &StoredDeadLetter) -> anyhow::Result<SameEvent> {
        let Some(event_id) = &letter.event_id else { return Ok(SameEvent::default()) };
        let TopicName { namespace, topic } = letter.subscription.topic.clone();
        let of_topic =
            Filter { namespace: Some(namespace), topic: Some(topic), ..Filter::default() };
        let blobs = self.walked(&of_topic, ReadAhead::ManyHours).take(SAME_EVENT_READS_MAX + 1);
        let blobs: Vec<Entry> = blobs.try_collect().await?;
        let is_whole = blobs.len() <= SAME_EVENT_READS_MAX;
        let reads = stream::iter(&blobs).take(SAME_EVENT_READS_MAX).map(|blob| self.read(blob));
        let read: Vec<_> = reads.buffered(READS_AT_ONCE).try_collect().await?;
        let mut seen = HashSet::from([identity(letter)]);
        let mut letters: Vec<StoredDeadLetter> = read.into_iter().flatten().collect();
        letters.retain(|other| {
            let is_same =
                other.event_id.as_ref() == Some(event_id) && other.source == letter.source;
            is_same && seen.insert(identity(other))
        });
        sort_newest_first(&mut letters);
        Ok(SameEvent { letters, is_whole })
    }

    /// Finds dead letters by their ids, using only the keys.
    async fn find_by_id(
        &self,
        missing: &mut HashSet<&str>,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let all = Filter::default();
        let mut blobs = std::pin::pin!(self.blobs(&all));
        let mut named = HashSet::new();
        while let Some(blob) = blobs.try_next().await? {
            let id = id_of_key(&blob.key).to_string();
            let Some(wanted) = missing.iter().find(|wanted| matches_id(wanted, &id)) else {
                continue;
            };
            named.insert(*wanted);
            if let Some(letter) = self.read(&blob).await? {
                found.entry(identity(&letter)).or_insert(letter);
            }
        }
        missing.retain(|wanted| !named.contains(wanted));
        Ok(())
    }

    /// Finds dead letters by the ids of their events, by reading every blob.
    async fn find_by_event(
        &self,
        missing: &HashSet<&str>,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let all = Filter::default();
        let mut summaries = self.summaries(&all);
        while let Some(summary) = summaries.try_next().await? {
            if summary.event_id.as_deref().is_some_and(|event| missing.contains(event)) {
                let letter = self.of_key(&summary.key).await?;
                found.insert(identity(&letter), letter);
            }
        }
        Ok(())
    }

    /// Returns the key that the text contains: `s3://bucket/key`, the path of a file in the
    /// container, or the key itself. Returns `None` if the text is not a key.
    fn as_key(&self, wanted: &str) -> Option<String> {
        let container = &self.container;
        let bucket = container
            .name
            .strip_suffix(&container.prefix)
            .unwrap_or(&container.name)
            .trim_end_matches('/');
        let key = wanted.strip_prefix(bucket).map_or(wanted, |key| key.trim_start_matches('/'));
        let key = key.strip_prefix("./").unwrap_or(key);
        // Event ids may contain slashes too, so the extension is required.
        (key.contains('/') && key.ends_with(".json")).then(|| key.to_owned())
    }
}

/// True if `wanted` is the id, or a sufficiently long prefix of the id.
#[must_use]
pub fn matches_id(wanted: &str, id: &str) -> bool {
    // Ids are lower case, but people may paste them in upper case.
    wanted == id || (wanted.len() >= ID_PREFIX_MIN && id.starts_with(&wanted.to_ascii_lowercase()))
}
