//! The subscriptions of a deployment. Each topic is an object, which is read when its first event
//! arrives.
//!
//! A topic stays in use until a check shows that its object has changed. The last usable version
//! stays in use while a newer one cannot be read or used. A process without any version of a topic
//! uses the newest usable earlier version. If there is none, only the events of this topic wait.
//!
//! Promises: a name counts as missing only after the current invocation has requested its object.

mod earlier;
mod kept;
mod location;
mod looking;
mod objects;
mod parsing;
mod reading;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_s3::Client;
use delivery::ports::{Clock, SubscriptionSource};
use delivery::subscription::catalogue::{Catalogue, Found};
use delivery::subscription::name::TopicName;
use futures::stream::{FuturesUnordered, StreamExt as _};

use tokio::sync::Semaphore;

use self::kept::{Kept, KeptTopics};
pub use self::location::Location;
use self::looking::Listing;
pub use self::looking::{FEW_TOPICS, LOOK_EVERY_MS};
pub use self::objects::{DESTINATIONS, PUBLISHERS, SETTINGS, TopicObjects, can_exist};
use self::reading::Read;
use self::settings::WatchedSettings;
use crate::machine::Machine;

/// Interval between checks of a local folder, in place of [`LOOK_EVERY_MS`]. Short, because people
/// who save a file wait for the effect, and a check needs no request.
const LOCAL_LOOK_EVERY_MS: u64 = 100;
/// Interval between reads of an object that has no usable version.
const UNKNOWN_EVERY_MS: u64 = 1_000;
const READS_AT_ONCE: usize = 16;
/// Approximate memory limit of all large topics together. A single large topic may exceed it.
const MEMORY_BYTES: usize = 72 * 1_024 * 1_024;

/// Reads the subscriptions of a deployment on demand.
#[derive(Debug)]
pub struct LiveTopics<C = Machine> {
    objects: TopicObjects,
    clock: C,
    /// Interval between checks for new settings and topics.
    look_every_ms: u64,
    /// Memory limit of all large topics together.
    memory_bytes: usize,
    settings: tokio::sync::Mutex<WatchedSettings>,
    /// Lock that is held while a large object is read, so that only one is read at a time.
    large: tokio::sync::Mutex<()>,
    reads: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    topics: KeptTopics,
    /// The failures of topics that have no usable version, by topic.
    failures: BTreeMap<TopicName, Failure>,
    listing: Listing,
    /// Time of the latest notification about each changed topic, in milliseconds. A notification
    /// with the same time is ignored.
    announced: BTreeMap<TopicName, u64>,
}

/// The reason why a topic could not be read.
#[derive(Debug, Clone)]
struct Failure {
    problem: String,
    /// Time of the next try to read the topic.
    until_ms: u64,
}

/// The freshness that a caller requires of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// The last usable version is sufficient, unless the listing shows a change.
    LastGood,
    /// The newest version is required, because a name must not count as missing by mistake. If that
    /// version is unknown, the result is an error.
    Newest,
}

impl LiveTopics {
    /// Creates the reader for a location. The client is used only for a bucket.
    #[must_use]
    pub fn at(location: &Location, client: Client) -> Self {
        let topics = Self::new(TopicObjects::below(&location.folder(client)), Machine);
        match location {
            // A folder belongs to one person, whose subscriptions may use any amount of memory.
            Location::Folder(_) => {
                topics.with_memory(usize::MAX).looking_every(LOCAL_LOOK_EVERY_MS)
            }
            Location::Bucket { .. } => topics,
        }
    }
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Creates the reader for these objects. Intervals are measured with `clock`.
    #[must_use]
    pub fn new(objects: TopicObjects, clock: C) -> Self {
        let (settings, large, state) = Default::default();
        let (look_every_ms, memory_bytes) = (LOOK_EVERY_MS, MEMORY_BYTES);
        let reads = Semaphore::new(READS_AT_ONCE);
        Self { objects, clock, look_every_ms, memory_bytes, settings, large, reads, state }
    }

    /// Sets the interval between checks for new settings and topics.
    #[must_use]
    pub fn looking_every(self, look_every_ms: u64) -> Self {
        Self { look_every_ms, ..self }
    }

    /// Sets the memory limit of all large topics together.
    #[must_use]
    pub fn with_memory(self, memory_bytes: usize) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Returns a catalogue with every topic of the deployment.
    ///
    /// # Errors
    /// Fails if the topics cannot be listed, or the settings cannot be read.
    pub async fn all(&self) -> Result<Arc<Catalogue>, String> {
        let known = self.current().await?;
        let entries = self.objects.all().await.map_err(|error| error.to_string())?;
        let names = entries.iter().filter_map(|entry| self.objects.topic_of(&entry.key));
        Ok(self.with_topics(known, &names.collect()).await)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds topics to the catalogue, and first reads those whose cached version does not suffice
    /// for `freshness`. A topic that cannot be read is added with the reason. The error is the
    /// first reason why the newest state of a topic is unknown.
    async fn add(
        &self,
        catalogue: &mut Catalogue,
        topics: impl IntoIterator<Item = &TopicName>,
        freshness: Freshness,
    ) -> Result<(), String> {
        let mut unread = Vec::new();
        for name in topics {
            if let Some(kept) = self.add_known(catalogue, name, freshness) {
                unread.push(self.read(name, kept));
            }
        }
        // Usually every topic is cached. An empty set would still allocate memory for one future of
        // 9 KiB.
        if unread.is_empty() {
            return Ok(());
        }
        let mut read = unread.into_iter().collect::<FuturesUnordered<_>>();
        let mut problems = Vec::new();
        while let Some((name, read)) = read.next().await {
            problems.extend(self.keep(catalogue, name.clone(), read));
        }
        problems.into_iter().next().map_or(Ok(()), Err)
    }

    /// Adds a topic to the catalogue if no request is needed. Otherwise returns the cached version
    /// for the request, if there is one.
    fn add_known(
        &self,
        catalogue: &mut Catalogue,
        name: &TopicName,
        freshness: Freshness,
    ) -> Option<Option<Kept>> {
        if !can_exist(name) {
            catalogue.add_missing(name.clone(), Found::Nothing);
            return None;
        }
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let kept = state.topics.get(name).cloned();
        let failed = state.failures.get(name).filter(|failed| now_ms < failed.until_ms);
        match (kept, failed) {
            (Some(kept), _) if freshness == Freshness::LastGood && kept.is_current(now_ms) => {
                add_kept(catalogue, name.clone(), &kept);
                None
            }
            (None, Some(failed)) => {
                catalogue.add_missing(name.clone(), Found::Unreadable(failed.problem.clone()));
                None
            }
            (kept, _) => Some(kept),
        }
    }

    /// Caches a topic after a read, and adds it to the catalogue. Returns the reason if the newest
    /// state of the topic is unknown.
    fn keep(&self, catalogue: &mut Catalogue, name: TopicName, read: Read) -> Option<String> {
        let mut state = self.state();
        state.failures.remove(&name);
        match read {
            Read::Known(kept, problem) => {
                add_kept(catalogue, name.clone(), &kept);
                if problem.is_none() {
                    catalogue.note_asked(name.clone());
                }
                state.topics.keep(name, kept);
                problem
            }
            Read::Nothing => {
                catalogue.note_asked(name.clone());
                catalogue.add_missing(name, Found::Nothing);
                None
            }
            Read::Unknown(problem) => {
                let until_ms = self.clock.now_ms().saturating_add(UNKNOWN_EVERY_MS);
                state.failures.retain(|_, failure| until_ms < failure.until_ms + LOOK_EVERY_MS);
                state.failures.insert(name.clone(), Failure { problem: problem.clone(), until_ms });
                catalogue.add_missing(name, Found::Unreadable(problem.clone()));
                Some(problem)
            }
        }
    }
}

fn add_kept(catalogue: &mut Catalogue, name: TopicName, kept: &Kept) {
    match &kept.topic {
        Some(topic) => catalogue.add_found(name, Arc::clone(topic)),
        None => catalogue.add_missing(name, Found::Removed),
    }
}

impl<C: Clock + Send + Sync> SubscriptionSource for LiveTopics<C> {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let now_ms = self.clock.now_ms();
        // Release the lock here, because the listing may take long.
        let settings =
            self.settings.lock().await.current(&self.objects, now_ms, self.look_every_ms).await?;
        self.look_for_changes().await;
        Ok(Arc::new(Catalogue::by_need(settings)))
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Arc<Catalogue> {
        let mut catalogue = Arc::unwrap_or_clone(known);
        // Ignore the error: the catalogue records each unreadable topic, and the others can be
        // used.
        drop(self.add(&mut catalogue, topics, Freshness::LastGood).await);
        Arc::new(catalogue)
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let mut catalogue = if known.are_settings_newest() {
            Arc::unwrap_or_clone(known)
        } else {
            let now_ms = self.clock.now_ms();
            let settings = self.settings.lock().await.newest(&self.objects, now_ms).await?;
            known.with_newest_settings(settings)
        };
        let unasked: Vec<TopicName> =
            topics.iter().filter(|topic| !catalogue.was_asked(topic)).cloned().collect();
        self.add(&mut catalogue, &unasked, Freshness::Newest).await?;
        Ok(Arc::new(catalogue))
    }

    fn were_changed(&self, topics: &BTreeMap<TopicName, u64>) {
        let mut guard = self.state();
        let State { topics: kept, announced, .. } = &mut *guard;
        // Skip known notifications. Compare times only for equality, because clocks may differ.
        for (name, _) in topics.iter().filter(|(name, at_ms)| announced.get(*name) != Some(*at_ms))
        {
            kept.make_stale(name);
        }
        announced.clone_from(topics);
    }
}
