//! Requests for the object of a topic, which is parsed within the memory that there is.
//!
//! A namespace may have many large objects, and other namespaces share the process. So large objects are requested one
//! after the other, each once there is memory for it, and parsed beside everything else.

use std::sync::Arc;

use delivery::ports::Clock;
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{self, Content, OBJECT_MAX_BYTES, ObjectError};

use super::LiveTopics;
use super::kept::{Kept, LARGE_BYTES};
use crate::storage::{Fetched, StorageError};

/// Objects that are not larger are requested many at once.
const SMALL_MAX_BYTES: usize = 64 * 1_024;
/// A topic usually takes so many times the length of its object.
const MEMORY_OF_TEXT: usize = 3;
/// Small objects have this memory beside the limit, so that large topics of others are not in their way.
const MEMORY_FOR_SMALL: usize = 24 * 1_024 * 1_024;
/// The number of looks whether there is memory for a large topic, and the time from one to the next.
const MEMORY_LOOKS: usize = 4;
const MEMORY_LOOK_EVERY_MS: u64 = 250;

/// The version of an object that is requested.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'w> {
    /// The newest, unless it still has this ETag.
    Newest(Option<&'w str>),
    /// The earlier version with this id.
    Earlier(&'w str),
}

/// The answer to a request.
pub(super) enum Object {
    /// The topic, or the mark of its removal.
    Parsed(Kept),
    /// It still has the known ETag.
    Unchanged,
    /// It is not there.
    Missing,
    /// It was received and cannot be used.
    Unusable {
        /// Its ETag, unless it is too large to be received.
        etag: Option<String>,
        /// The reason.
        problem: String,
    },
    /// Topics in use take the memory that it needs.
    NoMemory,
    /// It could not be requested.
    Failed(StorageError),
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Requests a version of a topic's object. If there is not enough memory, the large topic that it would replace is
    /// dropped first.
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
        let object_bytes = match small {
            Received::Object(bytes, etag) => {
                let limit = self.memory_bytes.saturating_add(MEMORY_FOR_SMALL);
                let room = self.state().topics.make_room(bytes.len() * MEMORY_OF_TEXT, limit);
                // Topics that are not large take memory that nobody counts.
                let parsed = parse(room.max(LARGE_BYTES), name, &bytes);
                if let Some(object) = self.parsed(parsed, etag, bytes.len()) {
                    return object;
                }
                bytes.len()
            }
            Received::TooLarge(bytes) if bytes <= OBJECT_MAX_BYTES => bytes,
            Received::TooLarge(bytes) => return too_large(bytes),
            Received::Other(object) => return object,
        };
        self.request_large(name, wanted, object_bytes, replaced).await
    }

    /// Requests a large object as soon as it is its turn and there is memory for it.
    async fn request_large(
        &self,
        name: &TopicName,
        wanted: Wanted<'_>,
        object_bytes: usize,
        replaced: &mut Option<Kept>,
    ) -> Object {
        // The estimate may be wrong: then it is tried again only with more memory than before.
        let (mut needed, mut tried) = (object_bytes * MEMORY_OF_TEXT, 0);
        for _ in 0..MEMORY_LOOKS {
            let turn = self.large.lock().await;
            if let Some(kept) = self.read_meanwhile(name, wanted) {
                return Object::Parsed(kept);
            }
            let room = self.state().topics.make_room(needed, self.memory_bytes);
            if room > tried {
                if let Some(object) = self.request_within(room, name, wanted).await {
                    return object;
                }
                (needed, tried) = (usize::MAX, room);
                // The topic in use takes memory too, and would be in the way of its own successor.
                if replaced.take_if(|kept| kept.is_large()).is_some() {
                    continue;
                }
            }
            // Others have their turn while this one waits.
            drop(turn);
            self.clock.sleep(MEMORY_LOOK_EVERY_MS).await;
        }
        Object::NoMemory
    }

    /// The topic, if somebody else has read its newest object while this request waited for its turn.
    fn read_meanwhile(&self, name: &TopicName, wanted: Wanted<'_>) -> Option<Kept> {
        let Wanted::Newest(known) = wanted else { return None };
        let mut state = self.state();
        let kept = state.topics.get(name)?;
        (kept.etag.as_deref() != known && kept.not_before_ms == 0).then(|| kept.clone())
    }

    /// Requests an object that may take so much memory; `None` if it takes more. It is parsed on another thread, which also
    /// builds the index.
    async fn request_within(
        &self,
        room: usize,
        name: &TopicName,
        wanted: Wanted<'_>,
    ) -> Option<Object> {
        let (bytes, etag) = match self.received(OBJECT_MAX_BYTES, name, wanted).await {
            Received::Object(bytes, etag) => (bytes, etag),
            Received::TooLarge(bytes) => return Some(too_large(bytes)),
            Received::Other(object) => return Some(object),
        };
        let (name, object_bytes) = (name.clone(), bytes.len());
        let parsing = tokio::task::spawn_blocking(move || {
            let topic = parse(room, &name, &bytes)?;
            topic.iter().for_each(|topic| topic.build_index());
            Ok(topic)
        });
        let parsed =
            parsing.await.unwrap_or_else(|error| Err(ObjectError::Malformed(error.to_string())));
        self.parsed(parsed, etag, object_bytes)
    }

    /// The answer for an object that was parsed now; `None` if it takes more memory than it may.
    fn parsed(&self, parsed: Parsed, etag: Option<String>, object_bytes: usize) -> Option<Object> {
        match parsed {
            Ok(topic) => {
                let kept = Kept::read(topic, etag, object_bytes, self.clock.now_ms());
                // Before the turn ends: the next one has to know of it.
                self.state().topics.note_in_memory(&kept);
                Some(Object::Parsed(kept))
            }
            Err(ObjectError::NoMemory) => None,
            Err(error) => Some(Object::Unusable { etag, problem: error.to_string() }),
        }
    }

    /// Requests an object of at most so many bytes.
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

/// The answer before it is parsed.
enum Received {
    /// The object and its ETag.
    Object(Vec<u8>, Option<String>),
    /// It has so many bytes, which are more than the caller accepts.
    TooLarge(usize),
    /// Nothing that can be parsed.
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

fn too_large(bytes: usize) -> Object {
    Object::Unusable { etag: None, problem: ObjectError::TooLarge(bytes).to_string() }
}

/// The topic of an object; `None` if it was removed.
type Parsed = Result<Option<Arc<TopicSubscriptions>>, ObjectError>;

/// Parses an object, unless its topic takes more than so much memory. The policy of secrets is applied to each request
/// instead, so that it may change without the topics.
fn parse(most_bytes: usize, name: &TopicName, bytes: &[u8]) -> Parsed {
    let Content::Topic(object) = Content::parse(bytes)? else { return Ok(None) };
    let topic = topic_object::read_within(most_bytes, name, &object, &SecretPolicy::default())?;
    for (subscription, why) in topic.unusable() {
        tracing::error!(subscription = %format!("{name}/{subscription}"), problem = %why, "subscription.unusable");
    }
    Ok(Some(Arc::new(topic)))
}
