//! What a deployment reads: its subscriptions, from a file or a catalogue, for commands that look at them.
//!
//! Separate from `store`, which also writes, and from the functions' own reading, where one entry that cannot be
//! read makes its topic unreadable: here it is a finding, and the others are read.
//!
//! Promises: of a catalogue only the topics that are wanted are read, and at no time more texts than those of
//! some topics are in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use adapters::live_catalogue::entries::{
    DEPLOYMENT, SETTINGS, owner_of, settings_of, subscription_key, topic_of,
};
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::subscriptions::Location;
use anyhow::{Context as _, bail};
use catalogue::{Entry, Namespace, NodeCache, ReadError, Snapshot};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::{Catalogue, Settings, TopicSubscriptions};
use delivery::subscription::name::{SubscriptionName, TopicName};
use dialects::{Finding, Reading, Severity, Source};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use indicatif::ProgressBar;

use crate::files::usage_error;
use crate::store::{self, SubscriptionStore};
use crate::{progress, text};

/// Nodes are read once, so few have to be kept.
const NODES_KEPT_BYTES: usize = 1_024 * 1_024;
/// How many namespaces are read at once.
const NAMESPACES_AT_ONCE: usize = 8;

/// Which subscriptions of a catalogue a command looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them.
    All,
    /// Those of these topics.
    Topics(BTreeSet<TopicName>),
}

impl Wanted {
    /// The topics of these subscriptions.
    pub(crate) fn topics_of<'a>(names: impl IntoIterator<Item = &'a SubscriptionName>) -> Self {
        Self::Topics(names.into_iter().map(|name| name.topic.clone()).collect())
    }
}

/// The subscriptions of a deployment, as far as they can be read.
pub(crate) struct Deployed {
    /// Those without an error, and findings about the others: in a file at their lines, in a catalogue by
    /// the names of their entries.
    pub(crate) reading: Reading,
    /// Where they were read.
    pub(crate) source: String,
    /// In a catalogue, who applied each.
    pub(crate) owners: Option<BTreeMap<SubscriptionName, Arc<str>>>,
}

impl Deployed {
    /// The subscription of this name.
    ///
    /// # Errors
    /// A usage error that says where it is missing.
    pub(crate) fn subscription(
        &self,
        name: &SubscriptionName,
    ) -> anyhow::Result<&Arc<Subscription>> {
        let found = self.reading.catalogue.subscription(name);
        found.ok_or_else(|| {
            usage_error(format!("there is no subscription {name} in {}", self.source))
        })
    }
}

/// Reads the subscriptions at this address: a file whole, of a catalogue what is wanted.
///
/// # Errors
/// When nothing is there, or storage does not answer.
pub(crate) async fn read(location: &Location, wanted: Wanted) -> anyhow::Result<Deployed> {
    if location.is_catalogue() {
        return CatalogueReader::open(location).await.read(wanted).await;
    }
    let store = SubscriptionStore::at(location).await;
    let source = store.name();
    let content = store.read().await?;
    let content = content.with_context(|| format!("{source} does not exist"))?;
    let reading = dialects::read(&[Source { name: &source, text: &content }]);
    Ok(Deployed { reading, source, owners: None })
}

/// What findings call an entry: `namespace/topic/name`, and of a topic's own `namespace/topic/`.
pub(crate) fn entry_name(namespace: &str, key: &str) -> String {
    format!("{namespace}/{key}")
}

/// An error about an entry or a namespace as a whole.
fn unreadable(name: String, message: String) -> Finding {
    let (field, help) = (String::new(), None);
    Finding {
        severity: Severity::Error,
        file: name,
        line: 1,
        column: 1,
        field,
        message,
        help,
        reference: None,
    }
}

/// An error about a namespace that was listed, since it has objects, and has no pointer.
fn without_pointer(name: &str) -> Finding {
    let message = format!(
        "the namespace {name} has objects and no pointer, so nothing of it is in use: its first change did not end, or its pointer was lost"
    );
    let help = "the next change of it, by lastmile apply or lastmile subscriptions put, first restores its newest version".to_owned();
    Finding { help: Some(help), ..unreadable(name.to_owned(), message) }
}

struct CatalogueReader {
    source: String,
    objects: CatalogueObjects,
    nodes: NodeCache,
    bar: ProgressBar,
}

/// What was read of one namespace.
#[derive(Default)]
struct ReadNamespace {
    topics: Vec<TopicSubscriptions>,
    owners: Vec<(SubscriptionName, String)>,
    findings: Vec<Finding>,
}

impl CatalogueReader {
    async fn open(location: &Location) -> Self {
        let folder = store::object(location).await;
        Self {
            source: folder.to_string(),
            objects: CatalogueObjects::below(&folder),
            nodes: NodeCache::new(NODES_KEPT_BYTES),
            bar: progress::count("entries"),
        }
    }

    fn namespace(&self, name: &str) -> Namespace<'_, CatalogueObjects> {
        Namespace::new(&self.objects, &self.nodes, name)
    }

    async fn read(self, wanted: Wanted) -> anyhow::Result<Deployed> {
        let mut findings = Vec::new();
        let settings = self.settings(&mut findings).await?;
        let namespaces: BTreeMap<String, Option<Vec<TopicName>>> = match wanted {
            Wanted::All => {
                let names = self.objects.namespaces().await;
                let names = names.with_context(|| format!("{} cannot be listed", self.source))?;
                names.into_iter().filter(|it| it != DEPLOYMENT).map(|it| (it, None)).collect()
            }
            Wanted::Topics(topics) => topics.into_iter().fold(BTreeMap::new(), |mut all, topic| {
                let of: &mut Option<Vec<_>> = all.entry(topic.namespace.clone()).or_default();
                of.get_or_insert_default().push(topic);
                all
            }),
        };
        // Not lazily: a closure that returns futures which borrow makes this one that no other thread may run.
        let mut reads = Vec::with_capacity(namespaces.len());
        for (name, topics) in &namespaces {
            reads.push(self.read_namespace(name, topics.as_deref()));
        }
        let read: Vec<ReadNamespace> =
            stream::iter(reads).buffered(NAMESPACES_AT_ONCE).collect().await;
        self.bar.finish_and_clear();
        let (mut catalogue, mut owners) = (Catalogue::default(), BTreeMap::new());
        // Many entries have the same owner.
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        for of in read {
            of.topics.into_iter().for_each(|topic| catalogue.add_whole_topic(topic));
            findings.extend(of.findings);
            for (subscription, owner) in of.owners {
                let known = names.get(owner.as_str()).cloned();
                let owner = known.unwrap_or_else(|| Arc::from(owner));
                names.insert(Arc::clone(&owner));
                owners.insert(subscription, owner);
            }
        }
        catalogue.set_settings(settings);
        let reading = Reading {
            catalogue,
            findings,
            left_out: Vec::new(),
            origins: BTreeMap::new(),
            secrets: Vec::new(),
            destinations: BTreeMap::new(),
        };
        Ok(Deployed { reading, source: self.source, owners: Some(owners) })
    }

    /// The settings of the deployment.
    async fn settings(&self, findings: &mut Vec<Finding>) -> anyhow::Result<Settings> {
        let namespace = self.namespace(DEPLOYMENT);
        let entries = async {
            Ok::<_, ReadError>(match namespace.load(None).await? {
                Some(snapshot) => {
                    // A writer believes a policy only if it is that of the version.
                    namespace.version_of(&snapshot).await?;
                    Some(namespace.topic(&snapshot, SETTINGS).await?)
                }
                None => None,
            })
        };
        let entries = entries.await;
        let entries =
            entries.with_context(|| format!("the settings of {} cannot be read", self.source))?;
        let Some(mut entries) = entries else {
            let names = self.objects.namespaces().await?;
            if names.iter().any(|name| name == DEPLOYMENT) {
                bail!("{}: {}", self.source, without_pointer(DEPLOYMENT));
            }
            bail!("{}: there is no catalogue yet: write it with lastmile apply", self.source);
        };
        Ok(read_rest(DEPLOYMENT, &mut entries, findings, settings_of).unwrap_or_default())
    }

    /// Reads a namespace, or only these topics of it. What cannot be read is a finding.
    async fn read_namespace(&self, name: &str, topics: Option<&[TopicName]>) -> ReadNamespace {
        let mut read = ReadNamespace::default();
        if let Err(error) = self.try_read_namespace(name, topics, &mut read).await {
            let why = text::line(&format!("{:#}", anyhow::Error::from(error)));
            let message = format!("the namespace {name} cannot be read: {why}");
            read.findings.push(unreadable(name.to_owned(), message));
        }
        read
    }

    async fn try_read_namespace(
        &self,
        name: &str,
        topics: Option<&[TopicName]>,
        read: &mut ReadNamespace,
    ) -> Result<(), ReadError> {
        let namespace = self.namespace(name);
        let snapshot = namespace.load(None).await?;
        let Some(topics) = topics else {
            let Some(snapshot) = snapshot else {
                read.findings.push(without_pointer(name));
                return Ok(());
            };
            return self.read_all(&namespace, name, &snapshot, read).await;
        };
        let Some(snapshot) = snapshot else { return Ok(()) };
        for topic in topics {
            read.add(topic, namespace.topic(&snapshot, &topic.topic).await?);
        }
        Ok(())
    }

    /// Reads a namespace topic by topic.
    async fn read_all(
        &self,
        namespace: &Namespace<'_, CatalogueObjects>,
        name: &str,
        snapshot: &Snapshot,
        read: &mut ReadNamespace,
    ) -> Result<(), ReadError> {
        // A writer reads it too, and fails without.
        namespace.version_of(snapshot).await?;
        let mut entries = pin!(namespace.entries(snapshot));
        let mut of_topic: Vec<Entry> = Vec::new();
        let mut topic = String::new();
        let named = |topic: &str| TopicName { namespace: name.to_owned(), topic: topic.to_owned() };
        while let Some(entry) = entries.try_next().await? {
            self.bar.inc(1);
            let of = entry.key.split_once('/').map_or("", |(topic, _)| topic);
            if of != topic {
                read.add(&named(&topic), std::mem::take(&mut of_topic));
                topic = of.to_owned();
            }
            of_topic.push(entry);
        }
        read.add(&named(&topic), of_topic);
        Ok(())
    }
}

impl ReadNamespace {
    /// Adds the topic that these entries are, if there are any.
    fn add(&mut self, name: &TopicName, mut entries: Vec<Entry>) {
        let read = |entries: &[Entry]| topic_of(name, entries);
        let topic = read_rest(&name.namespace, &mut entries, &mut self.findings, read);
        let Some(topic) = topic.flatten() else { return };
        let owners: BTreeMap<&str, &str> =
            entries.iter().map(|entry| (&*entry.key, &*entry.value)).collect();
        self.owners.extend(topic.subscriptions().filter_map(|of| {
            let value = owners.get(subscription_key(&of.name).as_str())?;
            Some((of.name.clone(), owner_of(value)?))
        }));
        self.topics.push(topic);
    }
}

/// What these entries are. Where that cannot be read, each that cannot be read by itself is a finding, and
/// is taken out.
fn read_rest<T>(
    namespace: &str,
    entries: &mut Vec<Entry>,
    findings: &mut Vec<Finding>,
    read: impl Fn(&[Entry]) -> Result<T, String>,
) -> Option<T> {
    if let Ok(found) = read(entries) {
        return Some(found);
    }
    entries.retain(|entry| {
        let problem = read(std::slice::from_ref(entry)).err();
        let name = || entry_name(namespace, &entry.key);
        let finding = problem.map(|problem| unreadable(name(), text::line(&problem)));
        let is_readable = finding.is_none();
        findings.extend(finding);
        is_readable
    });
    read(entries).ok()
}
