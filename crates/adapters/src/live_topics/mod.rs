//! The subscriptions of a deployment, where each topic is an object that is read when its first event arrives.
//!
//! A topic stays in use until the listing shows another version of its object. Each look at the listing reads one page of it,
//! so a change is in use after as many looks as the deployment has thousands of topics. What was read last stays in use
//! while something newer cannot be read or used. A process that has nothing of a topic uses its newest earlier version that
//! can be used. If there is none, the events of this topic wait, and no others.
//!
//! A name counts as missing only after its object was requested for the invocation that asks.

mod earlier;
mod kept;
mod location;
mod objects;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_s3::Client;
use delivery::ports::{Clock, SubscriptionSource};
use delivery::subscription::catalogue::{Catalogue, Found, TopicSubscriptions};
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{self, Content};
use futures::stream::{self, StreamExt as _};

use self::earlier::Earlier;
use self::kept::{Kept, KeptTopics};
pub use self::location::Location;
pub use self::objects::{DESTINATIONS, PUBLISHERS, SETTINGS, TopicObjects, can_exist};
use self::settings::WatchedSettings;
use crate::machine::Machine;
use crate::storage::Fetched;

/// The settings and the next page of the listing are read again after this long.
pub const LOOK_EVERY_MS: u64 = 30_000;
/// [`LOOK_EVERY_MS`] for folders: a look asks nobody else, and people who save a file wait for the effect.
const LOCAL_LOOK_EVERY_MS: u64 = 100;
/// An object that cannot be used is read again after this long if something earlier is in use,
const BROKEN_EVERY_MS: u64 = 30_000;
/// and after this long otherwise.
const UNKNOWN_EVERY_MS: u64 = 1_000;
/// The problem of a topic that is not there and that nobody removed with `apply`.
const GONE: &str = "its object is gone, and it was not removed";
/// The most objects that are read at once.
const READS_AT_ONCE: usize = 16;
/// Objects that are larger are parsed beside everything else.
const LARGE_BYTES: usize = 256 * 1_024;

/// The subscriptions of a deployment, read by need.
#[derive(Debug)]
pub struct LiveTopics<C = Machine> {
    objects: TopicObjects,
    clock: C,
    /// The time after which the settings and the listing are looked at again.
    look_every_ms: u64,
    settings: tokio::sync::Mutex<WatchedSettings>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    topics: KeptTopics,
    /// The topics of which nothing is known and that could not be read lately.
    failures: BTreeMap<TopicName, Failure>,
    listing: Listing,
}

/// The part of the listing that was read.
#[derive(Debug, Default)]
struct Listing {
    /// The last key of the page before.
    after: Option<String>,
    looked_ms: Option<u64>,
}

/// The reason for which a topic could not be read.
#[derive(Debug, Clone)]
struct Failure {
    problem: String,
    /// So long it is not read again.
    until_ms: u64,
}

/// The freshness that a caller needs of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// The last object that was read, unless the listing shows that it has changed.
    LastGood,
    /// The newest, or no name may count as missing.
    Newest,
}

/// The result of a request for a topic.
enum Read {
    /// The topic as it is used from now on, and why the newest object is not used, if so.
    Known(Kept, Option<String>),
    /// There is no object, and never was one.
    Nothing,
    /// Nothing is known of it.
    Unknown(String),
}

impl LiveTopics {
    /// The subscriptions at this location; the client is used for a bucket only.
    #[must_use]
    pub fn at(location: &Location, client: Client) -> Self {
        let topics = Self::new(TopicObjects::below(&location.folder(client)), Machine);
        match location {
            Location::Folder(_) => topics.looking_every(LOCAL_LOOK_EVERY_MS),
            Location::Bucket { .. } => topics,
        }
    }
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// The subscriptions in these objects, which are looked at again by the clock.
    #[must_use]
    pub fn new(objects: TopicObjects, clock: C) -> Self {
        let (settings, state) = Default::default();
        Self { objects, clock, look_every_ms: LOOK_EVERY_MS, settings, state }
    }

    /// Sets the time after which the settings and the listing are read again.
    #[must_use]
    pub fn looking_every(self, look_every_ms: u64) -> Self {
        Self { look_every_ms, ..self }
    }

    /// Every topic that there is.
    ///
    /// # Errors
    /// If they cannot be listed, or the settings are not known.
    pub async fn all(&self) -> Result<Arc<Catalogue>, String> {
        let known = self.current().await?;
        let entries = self.objects.all().await.map_err(|error| error.to_string())?;
        let names = entries.iter().filter_map(|entry| self.objects.topic_of(&entry.key));
        self.with_topics(known, &names.collect()).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the next page of the listing if that is due, and marks the topics that have changed.
    async fn look_for_changes(&self) {
        let now_ms = self.clock.now_ms();
        let after = {
            let listing = &mut self.state().listing;
            let is_due = |looked_ms| now_ms.abs_diff(looked_ms) >= self.look_every_ms;
            // The first read of a topic needs no listing.
            if !is_due(*listing.looked_ms.get_or_insert(now_ms)) {
                return;
            }
            listing.looked_ms = Some(now_ms);
            listing.after.clone()
        };
        match self.objects.page(after.as_deref()).await {
            Ok(page) => {
                let last = page.entries.last().map(|entry| entry.key.clone());
                let next = last.filter(|_| page.next.is_some());
                let listed = page.entries.iter().filter_map(|entry| {
                    Some((self.objects.topic_of(&entry.key)?, entry.etag.as_str()))
                });
                let is_on_page = |name: &TopicName| {
                    let key = self.objects.key_of(name);
                    after.as_deref().is_none_or(|after| key.as_str() > after)
                        && next.as_deref().is_none_or(|last| key.as_str() <= last)
                };
                let mut state = self.state();
                state.topics.compare(&listed.collect(), is_on_page);
                state.listing.after = next;
            }
            Err(error) => tracing::warn!(problem = %error, "subscriptions.not_listed"),
        }
    }

    /// Adds these topics to what is known, each with what was found. The error is the first reason why the newest state of
    /// one is not known.
    async fn add(
        &self,
        catalogue: &mut Catalogue,
        topics: impl IntoIterator<Item = &TopicName>,
        freshness: Freshness,
    ) -> Result<(), String> {
        let now_ms = self.clock.now_ms();
        let mut unread = Vec::new();
        for name in topics {
            if !can_exist(name) {
                catalogue.add_missing(name.clone(), Found::Nothing);
                continue;
            }
            let mut state = self.state();
            let kept = state.topics.get(name).cloned();
            let failed = state.failures.get(name).filter(|failed| now_ms < failed.until_ms);
            match (kept, failed) {
                (Some(kept), _) if freshness == Freshness::LastGood && kept.is_current(now_ms) => {
                    add_kept(catalogue, name.clone(), &kept);
                }
                (None, Some(failed)) => {
                    catalogue.add_missing(name.clone(), Found::Unreadable(failed.problem.clone()));
                }
                (kept, _) => unread.push(self.read(name, kept)),
            }
        }
        let mut read = stream::iter(unread).buffer_unordered(READS_AT_ONCE);
        let mut problems = Vec::new();
        while let Some((name, read)) = read.next().await {
            problems.extend(self.keep(catalogue, name.clone(), read));
        }
        problems.into_iter().next().map_or(Ok(()), Err)
    }

    /// Keeps what was read of a topic, and adds it to what is known. Returns why its newest state is not known, if so.
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

    /// Requests a topic's object.
    async fn read<'n>(&self, name: &'n TopicName, kept: Option<Kept>) -> (&'n TopicName, Read) {
        let key = self.objects.key_of(name);
        let known = kept.as_ref().and_then(|kept| kept.unusable_etag.clone().or(kept.etag.clone()));
        let read = match self.objects.get(&key, known.as_deref()).await {
            Ok(Fetched::Unchanged) => self.unchanged(name, kept),
            Ok(Fetched::Changed { bytes, etag, .. }) => {
                let size = bytes.len();
                match parsed(name, bytes).await {
                    Ok(topic) => Read::Known(Kept::read(topic, Some(etag), size), None),
                    Err(problem) => self.unusable(name, kept, Some(etag), problem).await,
                }
            }
            Ok(Fetched::Missing) if kept.is_none() => self.missing(name).await,
            Ok(Fetched::Missing) => self.unusable(name, kept, None, GONE.to_owned()).await,
            Err(error) => self.unusable(name, kept, None, error.to_string()).await,
        };
        (name, read)
    }

    /// The object that was asked about is the one that was read before: it can be used, or still cannot be.
    fn unchanged(&self, name: &TopicName, kept: Option<Kept>) -> Read {
        match kept {
            Some(kept) if kept.unusable_etag.is_none() => {
                Read::Known(Kept { is_stale: false, not_before_ms: 0, ..kept }, None)
            }
            Some(kept) => {
                let problem = report(name, "its newest version still cannot be used", true);
                Read::Known(Kept { not_before_ms: self.broken_until_ms(), ..kept }, Some(problem))
            }
            None => Read::Unknown(report(name, "storage did not send it", false)),
        }
    }

    /// There is no object. If there was one, it was not removed with `apply`, which leaves a mark.
    async fn missing(&self, name: &TopicName) -> Read {
        match self.earlier(name).await {
            Ok(Earlier::Version(topic, bytes)) => {
                let is_removed = topic.is_none();
                let kept = Kept {
                    not_before_ms: self.broken_until_ms(),
                    ..Kept::read(topic, None, bytes)
                };
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
    ) -> Read {
        let kept = match kept {
            Some(kept) => Ok(Some(kept)),
            None => self.earlier(name).await.map(|earlier| match earlier {
                Earlier::Version(topic, bytes) => Some(Kept::read(topic, None, bytes)),
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
    ) -> Result<Earlier<Option<Arc<TopicSubscriptions>>>, String> {
        let key = self.objects.key_of(name);
        let parse = |bytes: &[u8]| topic_in(name, bytes).ok();
        let found = earlier::newest_usable(&self.objects, &key, parse).await;
        found.map_err(|error| format!("no earlier version can be read: {error}"))
    }
}

/// The topic that an object has; `None` if it was removed. The policy of secrets counts for each request instead, so that
/// it may change without the topics.
fn topic_in(name: &TopicName, bytes: &[u8]) -> Result<Option<Arc<TopicSubscriptions>>, String> {
    let content = Content::parse(bytes).map_err(|error| error.to_string())?;
    let Content::Topic(object) = content else { return Ok(None) };
    let topic = topic_object::read(name, &object, &SecretPolicy::default())
        .map_err(|error| error.to_string())?;
    for (subscription, why) in topic.unusable() {
        tracing::error!(subscription = %format!("{name}/{subscription}"), problem = %why, "subscription.unusable");
    }
    Ok(Some(Arc::new(topic)))
}

/// Parses an object with [`topic_in`]. A large one takes some time, so it is parsed on another thread.
async fn parsed(
    name: &TopicName,
    bytes: Vec<u8>,
) -> Result<Option<Arc<TopicSubscriptions>>, String> {
    if bytes.len() < LARGE_BYTES {
        return topic_in(name, &bytes);
    }
    let name = name.clone();
    let parsing = tokio::task::spawn_blocking(move || topic_in(&name, &bytes));
    parsing.await.unwrap_or_else(|error| Err(format!("reading it failed: {error}")))
}

fn add_kept(catalogue: &mut Catalogue, name: TopicName, kept: &Kept) {
    match &kept.topic {
        Some(topic) => catalogue.add_found(name, Arc::clone(topic)),
        None => catalogue.add_missing(name, Found::Removed),
    }
}

/// Logs that the newest state of a topic cannot be used; returns what is wrong.
fn report(name: &TopicName, why: &str, last_good_kept: bool) -> String {
    let problem = format!("the topic {name} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}

impl<C: Clock + Send + Sync> SubscriptionSource for LiveTopics<C> {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let now_ms = self.clock.now_ms();
        let mut settings = self.settings.lock().await;
        let settings = settings.current(&self.objects, now_ms, self.look_every_ms).await?;
        self.look_for_changes().await;
        Ok(Arc::new(Catalogue::by_need(settings)))
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let mut catalogue = Arc::unwrap_or_clone(known);
        // The catalogue notes each topic that cannot be read, so the others are used.
        drop(self.add(&mut catalogue, topics, Freshness::LastGood).await);
        Ok(Arc::new(catalogue))
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
}
