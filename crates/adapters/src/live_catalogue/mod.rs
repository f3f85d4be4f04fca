//! The subscriptions of a deployment whose topics are read by need, from a catalogue.
//!
//! A namespace's pointer is read with the first record of one of its topics and again every 30 s while
//! its topics are asked for, and a topic with its first record and when the nodes that it was read from
//! have changed. What was read last stays in use while something newer cannot be read; a topic of which
//! nothing is known cannot be delivered until it can. A caller that does not find a name may request a
//! look at the newest pointers, at most once a second.

pub mod entries;
pub mod objects;
mod source;
mod topics;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use catalogue::{Id, Namespace, NodeCache, ReadError, Snapshot};
use delivery::ports::{Clock, SubscriptionSource};
use delivery::subscription::catalogue::{Catalogue, Settings};
use delivery::subscription::name::TopicName;
use futures::stream::{self, StreamExt as _};
use tokio::sync::Mutex;

use self::entries::{DEPLOYMENT, SETTINGS, settings_of, topic_of};
use self::objects::CatalogueObjects;
pub use self::source::Subscriptions;
use self::topics::{ReadTopic, Topics};
use crate::machine::Machine;

/// A namespace is looked at again after this long.
const CHECK_EVERY_MS: u64 = 30_000;
/// A missing name causes a look, but not more often than this; nor is what failed repeated more often.
const REREAD_EVERY_MS: u64 = 1_000;
/// How many topics are read at once.
const READS_AT_ONCE: usize = 16;
/// So many namespaces are known at most; the root of each has up to 32 KiB.
const NAMESPACES_MAX: usize = 500;
/// The objects of nodes that are kept have together at most so many bytes.
const NODES_KEPT_BYTES: usize = 4 * 1_024 * 1_024;

/// The subscriptions of a deployment, read by need.
#[derive(Debug)]
pub struct LiveCatalogue<C = Machine> {
    objects: CatalogueObjects,
    nodes: NodeCache,
    clock: C,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    settings: Option<ReadSettings>,
    namespaces: BTreeMap<String, Known>,
    topics: Topics,
    /// The topics that could not be read lately and of which nothing is known: when, which, and why.
    failures: Vec<(u64, TopicName, String)>,
}

/// The settings as they were read last.
#[derive(Debug, Clone)]
struct ReadSettings {
    settings: Arc<Settings>,
    version: Option<Id>,
}

/// What is known of a namespace.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The newest that could be read; `None` before the first.
    snapshot: Option<Snapshot>,
    checked_ms: Option<u64>,
    /// Why the newest pointer could not be read.
    problem: Option<String>,
}

impl State {
    /// Why a topic could not be read a moment ago.
    fn failed(&mut self, name: &TopicName, now_ms: u64) -> Option<String> {
        self.failures.retain(|(at_ms, ..)| now_ms.saturating_sub(*at_ms) < REREAD_EVERY_MS);
        let failure = self.failures.iter().find(|(_, failed, _)| failed == name);
        failure.map(|(.., problem)| problem.clone())
    }

    /// What is known of a namespace. Of very many the one is forgotten that was looked at first.
    fn known(&mut self, name: &str) -> &mut Known {
        if self.namespaces.len() >= NAMESPACES_MAX && !self.namespaces.contains_key(name) {
            let others = self.namespaces.iter().filter(|(name, _)| *name != DEPLOYMENT);
            let oldest = others.min_by_key(|(_, known)| known.checked_ms);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.namespaces.remove(&oldest);
            }
        }
        self.namespaces.entry(name.to_owned()).or_default()
    }
}

impl Known {
    /// A pointer was read, or there is none.
    fn is_now(&mut self, name: &str, found: Option<Snapshot>) {
        match found {
            Some(found) => (self.snapshot, self.problem) = (Some(found), None),
            // It was lost, or somebody removed all of it: what was there is not missing for that.
            None if self.snapshot.as_ref().is_some_and(|known| known.version().is_some()) => {
                self.is_unreadable(name, "its pointer is gone");
            }
            None => (self.snapshot, self.problem) = (Some(Snapshot::default()), None),
        }
    }

    fn is_unreadable(&mut self, name: &str, why: &str) {
        let what = format!("the namespace {name} of the catalogue");
        self.problem = Some(report(&what, why, self.snapshot.is_some()));
    }

    fn snapshot(self) -> Result<Snapshot, String> {
        self.snapshot.ok_or_else(|| self.problem.unwrap_or_default())
    }
}

/// A topic that has to be read.
#[derive(Debug)]
struct Unread {
    name: TopicName,
    snapshot: Snapshot,
    /// As it was read before.
    before: Option<ReadTopic>,
}

/// Whether what was read before will do where the newest cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    LastGood,
    /// Or no name may count as missing.
    Newest,
}

impl<C: Clock + Send + Sync> LiveCatalogue<C> {
    /// The catalogue of these objects, which is looked at again by the clock.
    #[must_use]
    pub fn new(objects: CatalogueObjects, clock: C) -> Self {
        let nodes = NodeCache::new(NODES_KEPT_BYTES);
        Self { objects, nodes, clock, state: Mutex::default() }
    }

    fn namespace(&self, name: &str) -> Namespace<'_, CatalogueObjects> {
        Namespace::new(&self.objects, &self.nodes, name)
    }

    /// What is known of a namespace, after a look at its pointer unless there was one within `fresh_ms`.
    async fn look(&self, state: &mut State, name: &str, fresh_ms: u64) -> Known {
        let now_ms = self.clock.now_ms();
        let known = state.known(name);
        // Without a snapshot its records wait, so a repair has to be seen soon.
        let fresh_ms = if known.snapshot.is_some() { fresh_ms } else { REREAD_EVERY_MS };
        if known.checked_ms.is_none_or(|checked_ms| now_ms.saturating_sub(checked_ms) >= fresh_ms) {
            match self.namespace(name).load(known.snapshot.as_ref()).await {
                Ok(found) => known.is_now(name, found),
                Err(error) => known.is_unreadable(name, &told(&error)),
            }
            // Those who wait for the lock must not each wait as long for what does not answer.
            known.checked_ms = Some(self.clock.now_ms());
        }
        known.clone()
    }

    /// The settings of the deployment.
    async fn settings(&self, state: &mut State, wanted: Wanted) -> Result<Arc<Settings>, String> {
        let fresh_ms = if wanted == Wanted::Newest { REREAD_EVERY_MS } else { CHECK_EVERY_MS };
        let snapshot = self.look(state, DEPLOYMENT, fresh_ms).await.snapshot()?;
        let version = snapshot.version();
        if let Some(known) = state.settings.as_ref().filter(|known| known.version == version) {
            return Ok(Arc::clone(&known.settings));
        }
        if version.is_none() {
            // Before the first apply, or a wrong address: then nothing is known, and no name is missing.
            return Err("there is no catalogue yet: write it with lastmile apply".to_owned());
        }
        let entries = self.namespace(DEPLOYMENT).topic(&snapshot, SETTINGS).await;
        let settings =
            entries.map_err(|error| told(&error)).and_then(|entries| settings_of(&entries));
        match (settings, &state.settings) {
            (Ok(settings), _) => {
                let settings = Arc::new(settings);
                let known = ReadSettings { settings: Arc::clone(&settings), version };
                state.settings = Some(known);
                Ok(settings)
            }
            (Err(problem), known) => {
                let problem = report("the settings of the deployment", &problem, known.is_some());
                let kept = known.as_ref().filter(|_| wanted == Wanted::LastGood);
                kept.map(|known| Arc::clone(&known.settings)).ok_or(problem)
            }
        }
    }

    /// What is known, and these topics in the newest snapshots of their namespaces. Those that have to be
    /// read are read at once.
    async fn add(
        &self,
        state: &mut State,
        mut catalogue: Catalogue,
        topics: impl IntoIterator<Item = &TopicName>,
        wanted: Wanted,
    ) -> Result<Arc<Catalogue>, String> {
        let mut unread = Vec::new();
        for name in topics {
            let snapshot = self.look(state, &name.namespace, CHECK_EVERY_MS).await.snapshot()?;
            let before = state.topics.get(name).cloned();
            let is_current = |known: &&ReadTopic| {
                let is_put_off = known.not_before_ms > self.clock.now_ms();
                known.version == snapshot.version() || (is_put_off && wanted == Wanted::LastGood)
            };
            if let Some(problem) = state.failed(name, self.clock.now_ms()) {
                return Err(problem);
            }
            match before.as_ref().filter(is_current) {
                Some(known) => catalogue.add_read(name.clone(), known.topic.clone()),
                None => unread.push(self.read(Unread { name: name.clone(), snapshot, before })),
            }
        }
        let read: Vec<_> = stream::iter(unread).buffered(READS_AT_ONCE).collect().await;
        for (Unread { name, before, .. }, read) in read {
            let ReadTopic { topic, .. } = self.keep(state, &name, before, read, wanted)?;
            catalogue.add_read(name, topic);
        }
        Ok(Arc::new(catalogue))
    }

    /// Keeps a topic that was read; what was known before, if the newest cannot be read.
    fn keep(
        &self,
        state: &mut State,
        name: &TopicName,
        before: Option<ReadTopic>,
        read: Result<ReadTopic, String>,
        wanted: Wanted,
    ) -> Result<ReadTopic, String> {
        let problem = match read {
            Ok(read) => {
                state.topics.keep(name.clone(), read.clone());
                return Ok(read);
            }
            Err(problem) => report(&format!("the topic {name}"), &problem, before.is_some()),
        };
        // That there was none is no reason to take it for missing.
        let before = before.filter(|before| before.topic.is_some());
        // Whatever is wrong with it, it is not read again for every record.
        let now_ms = self.clock.now_ms();
        let not_before_ms = now_ms.saturating_add(CHECK_EVERY_MS);
        let kept = before.map(|before| ReadTopic { not_before_ms, ..before });
        match &kept {
            Some(kept) => state.topics.keep(name.clone(), kept.clone()),
            None => state.failures.push((now_ms, name.clone(), problem.clone())),
        }
        kept.filter(|_| wanted == Wanted::LastGood).ok_or(problem)
    }

    async fn read(&self, unread: Unread) -> (Unread, Result<ReadTopic, String>) {
        let read = self.try_read(&unread).await;
        (unread, read)
    }

    async fn try_read(&self, unread: &Unread) -> Result<ReadTopic, String> {
        let Unread { name, snapshot, before } = unread;
        let namespace = self.namespace(&name.namespace);
        let fingerprint = namespace.topic_fingerprint(snapshot, &name.topic).await;
        let fingerprint = Some(fingerprint.map_err(|error| told(&error))?);
        let version = snapshot.version();
        if let Some(before) = before.as_ref().filter(|of| of.fingerprint == fingerprint) {
            return Ok(ReadTopic { version, not_before_ms: 0, ..before.clone() });
        }
        let entries = namespace.topic(snapshot, &name.topic).await.map_err(|error| told(&error))?;
        let bytes = entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        let topic = topic_of(name, &entries)?.map(Arc::new);
        Ok(ReadTopic { topic, version, fingerprint, bytes, not_before_ms: 0 })
    }
}

/// Logs that something newer cannot be read; returns what is wrong.
fn report(what: &str, why: &str, last_good_kept: bool) -> String {
    let problem = format!("{what} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}

/// An error with its cause.
fn told(error: &ReadError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl<C: Clock + Send + Sync> SubscriptionSource for LiveCatalogue<C> {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let mut state = self.state.lock().await;
        let settings = self.settings(&mut state, Wanted::LastGood).await?;
        Ok(Arc::new(Catalogue::by_need((*settings).clone())))
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let mut state = self.state.lock().await;
        self.add(&mut state, (*known).clone(), topics, Wanted::LastGood).await
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let mut state = self.state.lock().await;
        let namespaces = topics.iter().map(|topic| topic.namespace.as_str()).chain([DEPLOYMENT]);
        for name in namespaces.collect::<BTreeSet<&str>>() {
            // Unless the newest version was read, no name may count as missing.
            if let Some(problem) = self.look(&mut state, name, REREAD_EVERY_MS).await.problem {
                return Err(problem);
            }
        }
        let settings = self.settings(&mut state, Wanted::Newest).await?;
        let newest = known.with_settings((*settings).clone());
        self.add(&mut state, newest, topics, Wanted::Newest).await
    }
}
