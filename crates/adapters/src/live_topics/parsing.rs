//! Requests and parses the objects of topics, within a memory limit.
//!
//! A namespace may have many large objects, and other namespaces share the process. Therefore large
//! objects are requested one after the other. They are parsed on another thread, and only while
//! enough memory is free.

use std::sync::Arc;

use delivery::ports::Clock;
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{self, Content, OBJECT_MAX_BYTES, ObjectError};

use super::LiveTopics;
use super::kept::{Kept, LARGE_BYTES};
use crate::storage::{Fetched, StorageError};

/// Size up to which objects are requested concurrently.
const SMALL_MAX_BYTES: usize = 64 * 1_024;
/// Typical memory of a parsed topic, as a multiple of its object's size.
const MEMORY_OF_TEXT: usize = 3;
/// Additional memory that only small objects may use, so that large topics cannot block them.
const MEMORY_FOR_SMALL: usize = 24 * 1_024 * 1_024;
/// Maximum number of checks for free memory for a large topic, [`MEMORY_LOOK_EVERY_MS`] apart.
const MEMORY_LOOKS: usize = 4;
const MEMORY_LOOK_EVERY_MS: u64 = 250;

/// The version of an object that a caller requests.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'w> {
    /// The newest version, unless it still has this ETag.
    Newest(Option<&'w str>),
    /// The earlier version with this id.
    Earlier(&'w str),
}

/// The result of requesting and parsing an object.
pub(super) enum Object {
    /// The topic, or the marker of a removed topic.
    Parsed(Kept),
    /// The object still has the known ETag.
    Unchanged,
    /// The object does not exist.
    Missing,
    /// The object was received, but is unusable.
    Unusable {
        /// The ETag of the unusable object; `None` if an earlier version was requested.
        etag: Option<String>,
        /// The reason why the object is unusable.
        problem: String,
    },
    /// Topics in use occupy the memory that this object needs.
    NoMemory,
    /// The request to the storage failed.
    Failed(StorageError),
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Requests and parses a version of a topic's object. If memory is short, first drops
    /// `replaced`, the large topic that the object would replace.
    pub(super) async fn request(
        &self,
        name: &TopicName,
        wanted: Wanted<'_>,
        replaced: &mut Option<Kept>,
    ) -> Object {
        // The semaphore is never closed.
        let permit = self.reads.acquire().await.ok();
        let small = self.received(SMALL_MAX_BYTES, name, wanted).await;
        drop(permit);
        let Received::TooLarge(_) = small else {
            return self.object(name, small, replaced).await;
        };
        // Hold the lock until the object is parsed, even while it waits for memory. Otherwise
        // smaller topics would take all memory that becomes free.
        let _turn = self.large.lock().await;
        let meanwhile = self.read_meanwhile(name, wanted);
        let wanted = meanwhile.as_ref().map_or(wanted, |kept| Wanted::Newest(kept.etag.as_deref()));
        let received = self.received(OBJECT_MAX_BYTES, name, wanted).await;
        match (received, meanwhile) {
            (Received::Other(Object::Unchanged), Some(kept)) => {
                Object::Parsed(kept.confirmed_at(self.clock.now_ms()))
            }
            (received, _) => self.object(name, received, replaced).await,
        }
    }

    /// Returns the cached topic, if another request has read a newer version since this request
    /// began.
    fn read_meanwhile(&self, name: &TopicName, wanted: Wanted<'_>) -> Option<Kept> {
        let Wanted::Newest(known) = wanted else { return None };
        let mut state = self.state();
        let kept = state.topics.get(name)?;
        (kept.etag.as_deref() != known && kept.not_before_ms == 0).then(|| kept.clone())
    }

    /// Parses the object that a request returned.
    async fn object(
        &self,
        name: &TopicName,
        received: Received,
        replaced: &mut Option<Kept>,
    ) -> Object {
        let (bytes, etag) = match received {
            Received::Object(bytes, etag) => (Arc::new(bytes), etag),
            Received::TooLarge(bytes) => {
                let problem = ObjectError::TooLarge(bytes).to_string();
                return Object::Unusable { etag: None, problem };
            }
            Received::Other(object) => return object,
        };
        let mut parsed = self.parse(name, &bytes).await;
        // The topic in use occupies memory too, so drop it to free memory for its successor.
        if matches!(parsed, Err(ObjectError::NoMemory))
            && replaced.take_if(|kept| kept.is_large()).is_some()
        {
            parsed = self.parse(name, &bytes).await;
        }
        match parsed {
            Ok(topic) => {
                let kept = Kept::read(topic, etag, bytes.len(), self.clock.now_ms());
                // Record the memory before releasing the lock, because the next request depends on
                // it.
                self.state().topics.note_in_memory(&kept);
                Object::Parsed(kept)
            }
            Err(ObjectError::NoMemory) => Object::NoMemory,
            Err(error) => Object::Unusable { etag, problem: error.to_string() },
        }
    }

    /// Parses an object within the memory limit. A large object is parsed on another thread. If
    /// topics in use occupy the memory, waits up to [`MEMORY_LOOKS`] times,
    /// [`MEMORY_LOOK_EVERY_MS`] each.
    async fn parse(&self, name: &TopicName, bytes: &Arc<Vec<u8>>) -> Parsed {
        let (mut needed, mut tried) = (bytes.len() * MEMORY_OF_TEXT, 0);
        if bytes.len() <= SMALL_MAX_BYTES {
            let limit = self.memory_bytes.saturating_add(MEMORY_FOR_SMALL);
            let room = self.state().topics.make_room(needed, limit);
            // Topics up to [`LARGE_BYTES`] are not counted, so they may always use that much
            // memory.
            return parsed_within(room.max(LARGE_BYTES), name, bytes);
        }
        for _ in 0..MEMORY_LOOKS {
            let room = self.state().topics.make_room(needed, self.memory_bytes);
            if room <= tried {
                self.clock.sleep(MEMORY_LOOK_EVERY_MS).await;
                continue;
            }
            match parsed_beside(room, name, bytes).await {
                // The estimate was too low. Retry only with more memory than in this try.
                Err(ObjectError::NoMemory) => (needed, tried) = (usize::MAX, room),
                parsed => return parsed,
            }
        }
        Err(ObjectError::NoMemory)
    }

    /// Requests an object of at most `max_bytes`.
    async fn received(&self, max_bytes: usize, name: &TopicName, wanted: Wanted<'_>) -> Received {
        let (key, max_bytes) = (self.objects.key_of(name), max_bytes as u64);
        let answer = match wanted {
            Wanted::Newest(known) => self.objects.get_at_most(max_bytes, &key, known).await,
            Wanted::Earlier(id) => {
                let version = self.objects.storage().get_version(max_bytes, &key, id).await;
                return match version {
                    Ok(Some(version)) => Received::Object(version.bytes, None),
                    Ok(None) => Received::Other(Object::Missing),
                    Err(error) => error.into(),
                };
            }
        };
        match answer {
            Ok(Fetched::Changed { bytes, etag, .. }) => Received::Object(bytes, Some(etag)),
            Ok(Fetched::Unchanged) => Received::Other(Object::Unchanged),
            Ok(Fetched::Missing) => Received::Other(Object::Missing),
            Err(error) => error.into(),
        }
    }
}

/// The result of a request, before the object is parsed.
enum Received {
    /// The bytes of the object, and its ETag.
    Object(Vec<u8>, Option<String>),
    /// The object was not read, because its size exceeds the caller's limit. The value is the size.
    TooLarge(usize),
    /// A result without an object to parse.
    Other(Object),
}

impl From<StorageError> for Received {
    fn from(error: StorageError) -> Self {
        if let StorageError::TooLarge { bytes, .. } = error {
            return Self::TooLarge(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        Self::Other(Object::Failed(error))
    }
}

/// The result of parsing an object: its topic, or `None` for the marker of a removed topic.
type Parsed = Result<Option<Arc<TopicSubscriptions>>, ObjectError>;

/// Parses a topic that needs at most `most_bytes` of memory. Does not apply the secret policy,
/// which may change without the topics. The policy is applied to each request.
fn parsed_within(most_bytes: usize, name: &TopicName, bytes: &[u8]) -> Parsed {
    let Content::Topic(object) = Content::parse(bytes)? else { return Ok(None) };
    let topic = topic_object::read_within(most_bytes, name, &object, &SecretPolicy::default())?;
    for (subscription, why) in topic.unusable() {
        tracing::error!(subscription = %format!("{name}/{subscription}"), problem = %why, "subscription.unusable");
    }
    Ok(Some(Arc::new(topic)))
}

/// Parses an object and builds its index on another thread.
async fn parsed_beside(most_bytes: usize, name: &TopicName, bytes: &Arc<Vec<u8>>) -> Parsed {
    let (name, bytes) = (name.clone(), Arc::clone(bytes));
    let parsing = tokio::task::spawn_blocking(move || {
        let topic = parsed_within(most_bytes, &name, &bytes)?;
        topic.iter().for_each(|topic| topic.build_index());
        Ok(topic)
    });
    parsing.await.unwrap_or_else(|error| Err(ObjectError::Malformed(error.to_string())))
}
