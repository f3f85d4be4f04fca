//! The subscriptions of a deployment whose topics are read by need, from a catalogue.
//!
//! A topic is read with its first record, and when the nodes that it was read from have changed
//! (`namespaces` says when that is looked for). What was read last stays in use while something newer cannot
//! be read; a topic of which nothing is known cannot be delivered until it can. A caller that does not
//! find a name may request a look at the newest pointers, at most once a second.

pub mod entries;
pub mod mappings;
mod namespaces;
pub mod objects;
mod parts;
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

use self::entries::{DEPLOYMENT, SETTINGS, settings_of};
use self::namespaces::{Freshness, Known, Namespaces, pause_ms};
pub use self::namespaces::{HINT_EVERY_MS, POINTERS_EVERY_MS};
use self::objects::CatalogueObjects;
use self::parts::read_topic;
pub use self::source::Subscriptions;
use self::topics::{ReadTopic, Topics};
use crate::machine::Machine;

/// What could not be read, and was before, is read again after this long.
const BROKEN_EVERY_MS: u64 = 30_000;
/// How many pointers or topics are read at once.
const READS_AT_ONCE: usize = 16;
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
    /// Newer settings could not be read lately.
    settings_failure: Option<Failure>,
    namespaces: Namespaces,
    topics: Topics,
    /// The topics that could not be read lately and of which nothing is known.
    failures: BTreeMap<TopicName, Failure>,
}

/// Why something could not be read.
#[derive(Debug, Clone)]
struct Failure {
    problem: String,
    at_ms: u64,
    /// So long it is not read again.
    pause_ms: u64,
}

impl Failure {
    /// Now, after so long. What did not answer must not take the time of each record.
    fn new(problem: String, now_ms: u64, took_ms: u64) -> Self {
        Self { problem, at_ms: now_ms, pause_ms: pause_ms(took_ms) }
    }

    fn is_recent(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.at_ms) < self.pause_ms
    }
}

/// The settings as they were read last.
#[derive(Debug, Clone)]
struct ReadSettings {
    settings: Arc<Settings>,
    version: Option<Id>,
}

impl State {
    /// Why a topic could not be read a moment ago.
    fn failed(&mut self, name: &TopicName, now_ms: u64) -> Option<String> {
        self.failures.retain(|_, failure| failure.is_recent(now_ms));
        self.failures.get(name).map(|failure| failure.problem.clone())
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

    /// What is known of these namespaces, after a look at those that are due.
    async fn look<'a>(
        &self,
        state: &mut State,
        names: impl IntoIterator<Item = &'a str>,
        wanted: Freshness,
    ) -> BTreeMap<&'a str, Known> {
        state.namespaces.look(&self.objects, &self.nodes, &self.clock, names, wanted).await
    }

    /// The settings of the deployment.
    async fn settings(
        &self,
        state: &mut State,
        wanted: Freshness,
    ) -> Result<Arc<Settings>, String> {
        let known = self.look(state, [DEPLOYMENT], wanted).await.remove(DEPLOYMENT);
        let known = known.unwrap_or_default();
        let snapshot = known.snapshot()?;
        let version = snapshot.version();
        if let Some(known) = state.settings.as_ref().filter(|known| known.version == version) {
            return Ok(Arc::clone(&known.settings));
        }
        if version.is_none() {
            // Before the first apply, or a wrong address: then nothing is known, and no name is missing.
            return Err("there is no catalogue yet: write it with lastmile apply".to_owned());
        }
        let began_ms = self.clock.now_ms();
        let problem = match &state.settings_failure {
            Some(failure) if failure.is_recent(began_ms) => failure.problem.clone(),
            Some(_) | None => match self.read_settings(snapshot).await {
                Ok(settings) => {
                    let settings = Arc::new(settings);
                    let known = ReadSettings { settings: Arc::clone(&settings), version };
                    (state.settings, state.settings_failure) = (Some(known), None);
                    return Ok(settings);
                }
                Err(why) => {
                    let kept = state.settings.is_some();
                    let problem = report("the settings of the deployment", &why, kept);
                    let now_ms = self.clock.now_ms();
                    let failure = Failure::new(problem.clone(), now_ms, now_ms.abs_diff(began_ms));
                    state.settings_failure = Some(failure);
                    problem
                }
            },
        };
        let kept = state.settings.as_ref().filter(|_| wanted == Freshness::LastGood);
        kept.map(|known| Arc::clone(&known.settings)).ok_or(problem)
    }

    async fn read_settings(&self, snapshot: &Snapshot) -> Result<Settings, String> {
        let entries = self.namespace(DEPLOYMENT).topic(snapshot, SETTINGS).await;
        settings_of(&entries.map_err(|error| told(&error))?)
    }

    /// What is known, and these topics in the newest snapshots of their namespaces. Those that have to be
    /// read are read at once.
    async fn add(
        &self,
        state: &mut State,
        mut catalogue: Catalogue,
        topics: &BTreeSet<TopicName>,
        wanted: Freshness,
    ) -> Result<Arc<Catalogue>, String> {
        let names = topics.iter().map(|topic| &*topic.namespace);
        // Those of a reread were looked at before.
        let namespaces = self.look(state, names, Freshness::LastGood).await;
        let mut unread = Vec::new();
        for name in topics {
            let namespace = namespaces.get(&*name.namespace).cloned().unwrap_or_default();
            let snapshot = namespace.snapshot()?.clone();
            let before = state.topics.get(name).cloned();
            let is_current = |known: &&ReadTopic| {
                let is_put_off = known.not_before_ms > self.clock.now_ms();
                known.version == snapshot.version() || (is_put_off && wanted == Freshness::LastGood)
            };
            if let Some(problem) = state.failed(name, self.clock.now_ms()) {
                return Err(problem);
            }
            match before.as_ref().filter(is_current) {
                Some(known) => catalogue.add_read(name.clone(), known.topic.clone()),
                None => unread.push(self.read(Unread { name: name.clone(), snapshot, before })),
            }
        }
        let began_ms = self.clock.now_ms();
        let read: Vec<_> = stream::iter(unread).buffered(READS_AT_ONCE).collect().await;
        for (Unread { name, before, .. }, read) in read {
            let read = read.map_err(|problem| {
                let problem = report(&format!("the topic {name}"), &problem, before.is_some());
                let now_ms = self.clock.now_ms();
                Failure::new(problem, now_ms, now_ms.abs_diff(began_ms))
            });
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
        read: Result<ReadTopic, Failure>,
        wanted: Freshness,
    ) -> Result<ReadTopic, String> {
        let failure = match read {
            Ok(read) => {
                state.topics.keep(name.clone(), read.clone());
                return Ok(read);
            }
            Err(failure) => failure,
        };
        // That there was none is no reason to take it for missing.
        let before = before.filter(|before| before.topic.is_some());
        // Whatever is wrong with it, it is not read again for every record.
        let now_ms = self.clock.now_ms();
        let not_before_ms = now_ms.saturating_add(BROKEN_EVERY_MS);
        let kept = before.map(|before| ReadTopic { not_before_ms, ..before });
        match &kept {
            Some(kept) => state.topics.keep(name.clone(), kept.clone()),
            None => drop(state.failures.insert(name.clone(), failure.clone())),
        }
        kept.filter(|_| wanted == Freshness::LastGood).ok_or(failure.problem)
    }

    async fn read(&self, unread: Unread) -> (Unread, Result<ReadTopic, String>) {
        let Unread { name, snapshot, before } = &unread;
        let namespace = self.namespace(&name.namespace);
        let read = read_topic(&namespace, name, snapshot, before.as_ref()).await;
        (unread, read)
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
        let settings = self.settings(&mut state, Freshness::LastGood).await?;
        Ok(Arc::new(Catalogue::by_need(settings)))
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let mut state = self.state.lock().await;
        self.add(&mut state, (*known).clone(), topics, Freshness::LastGood).await
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let mut state = self.state.lock().await;
        let names = topics.iter().map(|topic| &*topic.namespace).chain([DEPLOYMENT]);
        let looked_at = self.look(&mut state, names, Freshness::Newest).await;
        // Unless the newest version was read, no name may count as missing.
        if let Some(problem) = looked_at.into_values().find_map(|known| known.problem) {
            return Err(problem);
        }
        let settings = self.settings(&mut state, Freshness::Newest).await?;
        let newest = known.with_settings(settings);
        self.add(&mut state, newest, topics, Freshness::Newest).await
    }
}
