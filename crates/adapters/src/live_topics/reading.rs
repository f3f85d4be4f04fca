//! Requests for the object of a topic, and the version that is used if the newest one cannot be.
//!
//! A namespace may have many large objects, and other namespaces share the process. So large objects are read one after
//! the other, beside everything else, and only while the process has memory for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use delivery::ports::Clock;
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{self, Content, ObjectError};
use tokio::sync::MutexGuard;

use super::earlier::{self, Earlier};
use super::kept::{Kept, LARGE_BYTES};
use super::{LOOK_EVERY_MS, LiveTopics, UNKNOWN_EVERY_MS};
use crate::storage::{Fetched, StorageError};

/// A topic whose newest object cannot be used is requested again after this long if something earlier is in use.
const BROKEN_EVERY_MS: u64 = LOOK_EVERY_MS;
/// The problem of a topic that is not there and that nobody removed with `apply`.
const GONE: &str = "its object is gone, and it was not removed";
/// Objects that are not larger are read at once.
const SMALL_MAX_BYTES: usize = 64 * 1_024;
/// A topic usually takes so many times the length of its object.
const MEMORY_OF_TEXT: usize = 3;
/// Small objects have this memory beside the limit, so that large topics of others are not in their way.
const MEMORY_FOR_SMALL: usize = 24 * 1_024 * 1_024;
/// The number of looks whether there is memory for a large topic, and the time from one to the next.
const MEMORY_LOOKS: usize = 4;
const MEMORY_LOOK_EVERY_MS: u64 = 250;

/// The turn to read a large object, until it is dropped.
type Turn<'t> = MutexGuard<'t, ()>;

/// The result of a request for a topic.
pub(super) enum Read {
    /// The topic as it is used from now on, and why the newest object is not used, if so.
    Known(Kept, Option<String>),
    /// There is no object, and never was one.
    Nothing,
    /// Nothing is known of it.
    Unknown(String),
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Requests a topic's object.
    pub(super) async fn read<'n>(
        &self,
        name: &'n TopicName,
        kept: Option<Kept>,
    ) -> (&'n TopicName, Read) {
        let key = self.objects.key_of(name);
        let known = kept.as_ref().and_then(|kept| kept.unusable_etag.clone().or(kept.etag.clone()));
        let small = SMALL_MAX_BYTES as u64;
        // It is never closed.
        let permit = self.reads.acquire().await.ok();
        let fetched = self.objects.get_at_most(small, &key, known.as_deref()).await;
        drop(permit);
        let Err(StorageError::TooLarge { .. }) = fetched else {
            return (name, self.fetched(name, kept, fetched, None).await);
        };
        let turn = self.large.lock().await;
        // Somebody else may have read it meanwhile.
        if let Some(read) = self
            .state()
            .topics
            .get(name)
            .filter(|of| of.etag != known && of.not_before_ms == 0)
            .cloned()
        {
            return (name, Read::Known(read, None));
        }
        let fetched = self.objects.get(&key, known.as_deref()).await;
        (name, self.fetched(name, kept, fetched, Some(turn)).await)
    }

    /// Topics in use take the memory that the newest object needs.
    fn without_memory(&self, name: &TopicName, kept: Option<Kept>) -> Read {
        let problem = ObjectError::NoMemory.to_string();
        match kept {
            Some(kept) => {
                let not_before_ms = self.clock.now_ms().saturating_add(UNKNOWN_EVERY_MS);
                let problem = report(name, &problem, true);
                Read::Known(Kept { not_before_ms, ..kept }, Some(problem))
            }
            None => Read::Unknown(report(name, &problem, false)),
        }
    }

    /// The topic that is used from now on, by the answer to a request for its object.
    async fn fetched(
        &self,
        name: &TopicName,
        kept: Option<Kept>,
        fetched: Result<Fetched, StorageError>,
        turn: Option<Turn<'_>>,
    ) -> Read {
        match fetched {
            Ok(Fetched::Unchanged) => self.unchanged(name, kept),
            Ok(Fetched::Changed { bytes, etag, .. }) => {
                let size = bytes.len();
                let bytes = Arc::new(bytes);
                let parsed = self.parsed(name, &bytes).await;
                let (kept, parsed) = match parsed {
                    // What was read before takes memory too, and would be in the way of its own successor.
                    Err(ObjectError::NoMemory) if kept.as_ref().is_some_and(Kept::is_large) => {
                        drop(kept);
                        (None, self.parsed(name, &bytes).await)
                    }
                    parsed => (kept, parsed),
                };
                match parsed {
                    Ok(topic) => Read::Known(self.as_read(topic, Some(etag), size), None),
                    Err(ObjectError::NoMemory) => self.without_memory(name, kept),
                    Err(error) => {
                        self.unusable(name, kept, Some(etag), error.to_string(), turn).await
                    }
                }
            }
            // The mark of a removed topic expires.
            Ok(Fetched::Missing) if kept.as_ref().is_none_or(|kept| kept.topic.is_none()) => {
                self.missing(name, turn).await
            }
            Ok(Fetched::Missing) => self.unusable(name, kept, None, GONE.to_owned(), turn).await,
            // It may be right: an earlier version may lack a subscription.
            Err(error) if kept.is_none() && !matches!(error, StorageError::TooLarge { .. }) => {
                Read::Unknown(report(name, &error.to_string(), false))
            }
            Err(error) => self.unusable(name, kept, None, error.to_string(), turn).await,
        }
    }

    /// The object that was asked about is the one that was read before: it can be used, or still cannot be.
    fn unchanged(&self, name: &TopicName, kept: Option<Kept>) -> Read {
        match kept {
            Some(kept) if kept.unusable_etag.is_none() => {
                let confirmed_ms = self.clock.now_ms();
                Read::Known(Kept { is_stale: false, not_before_ms: 0, confirmed_ms, ..kept }, None)
            }
            Some(kept) => {
                let problem = report(name, "its newest version still cannot be used", true);
                Read::Known(Kept { not_before_ms: self.broken_until_ms(), ..kept }, Some(problem))
            }
            None => Read::Unknown(report(name, "storage did not send it", false)),
        }
    }

    /// There is no object. If there was one, it was not removed with `apply`, which leaves a mark.
    async fn missing(&self, name: &TopicName, turn: Option<Turn<'_>>) -> Read {
        match self.earlier(name, turn).await {
            Ok(Earlier::Version(topic, bytes)) => {
                let is_removed = topic.is_none();
                let not_before_ms = self.broken_until_ms();
                let kept = Kept { not_before_ms, ..self.as_read(topic, None, bytes) };
                // The mark of a removal may be what somebody deleted.
                let problem = (!is_removed).then(|| report(name, GONE, true));
                Read::Known(kept, problem)
            }
            Ok(Earlier::NoneUsable) => Read::Unknown(report(name, GONE, false)),
            Ok(Earlier::None) => Read::Nothing,
            Err(error) => Read::Unknown(report(name, &error, false)),
        }
    }

    /// The newest object cannot be read or used: what was read before is used, or the newest earlier version that can be.
    async fn unusable(
        &self,
        name: &TopicName,
        kept: Option<Kept>,
        etag: Option<String>,
        problem: String,
        turn: Option<Turn<'_>>,
    ) -> Read {
        let kept = match kept {
            Some(kept) => Ok(Some(kept)),
            None => self.earlier(name, turn).await.map(|earlier| match earlier {
                Earlier::Version(topic, bytes) => Some(self.as_read(topic, None, bytes)),
                Earlier::NoneUsable | Earlier::None => None,
            }),
        };
        match kept {
            Ok(Some(kept)) => {
                let problem = report(name, &problem, true);
                let unusable_etag = etag.or(kept.unusable_etag);
                let not_before_ms = self.broken_until_ms();
                Read::Known(Kept { unusable_etag, not_before_ms, ..kept }, Some(problem))
            }
            Ok(None) => Read::Unknown(report(name, &problem, false)),
            Err(error) => Read::Unknown(report(name, &format!("{problem}; {error}"), false)),
        }
    }

    fn broken_until_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add(BROKEN_EVERY_MS)
    }

    /// The newest earlier version of a topic that can be used.
    async fn earlier(
        &self,
        name: &TopicName,
        turn: Option<Turn<'_>>,
    ) -> Result<Earlier<Option<Arc<TopicSubscriptions>>>, String> {
        let key = self.objects.key_of(name);
        let listed = earlier::versions(&self.objects, &key).await;
        let versions = listed.map_err(|error| format!("its versions cannot be listed: {error}"))?;
        if versions.is_empty() {
            return Ok(Earlier::None);
        }
        // Any of them may be large.
        let _turn = match turn {
            Some(turn) => turn,
            None => self.large.lock().await,
        };
        let lacks_memory = AtomicBool::new(false);
        let parse = |bytes: Vec<u8>| {
            let lacks_memory = &lacks_memory;
            async move {
                // An older version would be used although this one is right.
                if lacks_memory.load(Ordering::Relaxed) {
                    return None;
                }
                let parsed = self.parsed(name, &Arc::new(bytes)).await;
                let is_lacking =
                    parsed.as_ref().is_err_and(|error| *error == ObjectError::NoMemory);
                lacks_memory.fetch_or(is_lacking, Ordering::Relaxed);
                parsed.ok()
            }
        };
        let found = earlier::newest_usable(&self.objects, &key, versions, parse).await;
        if lacks_memory.load(Ordering::Relaxed) {
            return Err(ObjectError::NoMemory.to_string());
        }
        found.map_err(|error| format!("no earlier version can be read: {error}"))
    }

    /// The topic that an object has; `None` if it was removed. A large one is parsed on another thread, within the memory
    /// that there is. While topics in use take that memory, this waits for some time.
    async fn parsed(&self, name: &TopicName, bytes: &Arc<Vec<u8>>) -> Parsed {
        if bytes.len() <= SMALL_MAX_BYTES {
            let limit = self.memory_bytes.saturating_add(MEMORY_FOR_SMALL);
            let room = self.state().topics.make_room(bytes.len() * MEMORY_OF_TEXT, limit);
            // Topics that are not large take memory that nobody counts.
            return topic_in(room.max(LARGE_BYTES), name, bytes);
        }
        let (mut wanted, mut tried) = (bytes.len() * MEMORY_OF_TEXT, 0);
        for _ in 0..MEMORY_LOOKS {
            let room = self.state().topics.make_room(wanted, self.memory_bytes);
            if room <= tried {
                self.clock.sleep(MEMORY_LOOK_EVERY_MS).await;
                continue;
            }
            match parsed_beside(room, name, bytes).await {
                Err(ObjectError::NoMemory) => (wanted, tried) = (usize::MAX, room),
                parsed => return parsed,
            }
        }
        Err(ObjectError::NoMemory)
    }

    /// A topic that was read just now.
    fn as_read(
        &self,
        topic: Option<Arc<TopicSubscriptions>>,
        etag: Option<String>,
        object_bytes: usize,
    ) -> Kept {
        let kept = Kept::read(topic, etag, object_bytes, self.clock.now_ms());
        // Before the turn ends: the next one has to know of it.
        self.state().topics.note_in_memory(&kept);
        kept
    }
}

/// The topic of an object; `None` if it was removed.
type Parsed = Result<Option<Arc<TopicSubscriptions>>, ObjectError>;

/// The topic that an object has, if it takes so much memory at most. The policy of secrets counts for each request instead,
/// so that it may change without the topics.
fn topic_in(most_bytes: usize, name: &TopicName, bytes: &[u8]) -> Parsed {
    let Content::Topic(object) = Content::parse(bytes)? else { return Ok(None) };
    let topic = topic_object::read_within(most_bytes, name, &object, &SecretPolicy::default())?;
    for (subscription, why) in topic.unusable() {
        tracing::error!(subscription = %format!("{name}/{subscription}"), problem = %why, "subscription.unusable");
    }
    Ok(Some(Arc::new(topic)))
}

/// Parses an object on another thread, which also builds the index.
async fn parsed_beside(most_bytes: usize, name: &TopicName, bytes: &Arc<Vec<u8>>) -> Parsed {
    let (name, bytes) = (name.clone(), Arc::clone(bytes));
    let parsing = tokio::task::spawn_blocking(move || {
        let topic = topic_in(most_bytes, &name, &bytes)?;
        topic.iter().for_each(|topic| topic.build_index());
        Ok(topic)
    });
    parsing.await.unwrap_or_else(|error| Err(ObjectError::Malformed(error.to_string())))
}

/// Logs that the newest state of a topic cannot be used; returns what is wrong.
fn report(name: &TopicName, why: &str, last_good_kept: bool) -> String {
    let problem = format!("the topic {name} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}
