//! Files of subscriptions become entries of a catalogue: what `apply` changes there.
//!
//! Separate from `apply` to a file, which replaces everything: here each entry has an owner, and an owner
//! changes only what is its own. Namespaces are changed one after the other, each as a whole, and only if
//! nobody changed the same entries since they were compared.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use adapters::live_catalogue::entries::{
    DEPLOYMENT, Entries, entries_of, is_owned_by, mark, owner_of, plain_topic, settings_of,
    topic_key, topics_of,
};
use adapters::live_catalogue::mappings::{Mapped, mapping_entries, mappings_of};
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::machine::Machine;
use adapters::storage::StoredObject;
use anyhow::bail;
use catalogue::{Changes, CommitError, Committed, Entry, Namespace, NodeCache, Snapshot};
use delivery::subscription::catalogue::Catalogue;
use futures::TryStreamExt as _;

use crate::output::note;
use crate::text;

/// Every node is read once, so few have to be kept.
pub(crate) const NODES_KEPT_BYTES: usize = 1_024 * 1_024;

/// A catalogue, and what the files of one owner change in it.
pub(crate) struct Comparison {
    objects: CatalogueObjects,
    nodes: NodeCache,
    /// The entries that are there, by namespace.
    current: BTreeMap<String, Vec<Entry>>,
    /// Those of them that have no pointer: see [`Namespace::load_to_change`].
    without_pointer: BTreeSet<String>,
    /// Those that the owner wants.
    wanted: BTreeMap<String, Entries>,
    owner: String,
    prune: bool,
}

impl Comparison {
    /// Compares an owner's subscriptions and mappings with the catalogue. `prune`: entries of this owner that
    /// it no longer has are removed.
    ///
    /// # Errors
    /// When something cannot be read, the settings as they will be among it; or belongs to another owner.
    pub(crate) async fn of(
        folder: &StoredObject,
        owner: &str,
        new: &Catalogue,
        mappings: &BTreeMap<String, String>,
        prune: bool,
    ) -> anyhow::Result<Self> {
        let objects = CatalogueObjects::below(folder);
        let nodes = NodeCache::new(NODES_KEPT_BYTES);
        let mut wanted = entries_of(owner, new);
        wanted.entry(DEPLOYMENT.to_owned()).or_default().extend(mapping_entries(owner, mappings));
        let (mut current, mut without_pointer) = (BTreeMap::new(), BTreeSet::new());
        let known = objects.namespaces().await?;
        for name in known.iter().chain(wanted.keys()).collect::<BTreeSet<&String>>() {
            match newest_entries(&Namespace::new(&objects, &nodes, name)).await {
                Ok((snapshot, entries)) => {
                    if snapshot.is_without_pointer() {
                        without_pointer.insert(name.clone());
                    }
                    current.insert(name.clone(), entries);
                }
                // What is wrong in one namespace keeps nobody from changing another.
                Err(error) if !wanted.contains_key(name) => note(format_args!(
                    "the namespace {} cannot be read and is left as it is: {:#}",
                    text::line(name),
                    anyhow::Error::from(error)
                )),
                Err(error) => {
                    let what = format!("the namespace {name} cannot be read");
                    return Err(anyhow::Error::from(error).context(what));
                }
            }
        }
        let mut comparison = Self {
            objects,
            nodes,
            current,
            without_pointer,
            wanted,
            owner: owner.to_owned(),
            prune,
        };
        comparison.refuse_foreign()?;
        comparison.reset_topics(new);
        comparison.mark();
        settings_of(&comparison.entries_after(DEPLOYMENT)).map_err(anyhow::Error::msg)?;
        Ok(comparison)
    }

    /// A topic of this owner that lost its own settings gets the default ones.
    fn reset_topics(&mut self, new: &Catalogue) {
        for topic in new.topics() {
            let (key, value) = plain_topic(&self.owner, topic);
            let current = self.current.get(&topic.name.namespace);
            let current = current.and_then(|entries| find(entries, &key));
            if current.is_some_and(|entry| is_owned_by(entry, &self.owner)) {
                let wanted = self.wanted.entry(topic.name.namespace.clone()).or_default();
                wanted.entry(key).or_insert(value);
            }
        }
    }

    /// The first who applies anything makes it a catalogue.
    fn mark(&mut self) {
        let (key, value) = mark();
        let current = self.current.entry(DEPLOYMENT.to_owned()).or_default();
        if find(current, &key).is_none() {
            self.wanted.entry(DEPLOYMENT.to_owned()).or_default().insert(key, value);
        }
    }

    /// Nobody changes what others applied.
    fn refuse_foreign(&self) -> anyhow::Result<()> {
        for (namespace, entries) in &self.current {
            let Some(wanted) = self.wanted.get(namespace) else { continue };
            let is_foreign = |entry: &&Entry| {
                wanted.contains_key(&*entry.key) && !is_owned_by(entry, &self.owner)
            };
            if let Some(foreign) = entries.iter().find(is_foreign) {
                let owner = owner_of(&foreign.value).unwrap_or_else(|| "nobody known".to_owned());
                bail!(
                    "{namespace}/{} belongs to {owner:?}, and these files are applied as {:?}: apply them with \
                     --owner {owner:?}, or remove it from the files",
                    foreign.key,
                    self.owner
                );
            }
        }
        Ok(())
    }

    /// The catalogue as it is, as far as it can be read: what others applied with a newer program, say, is
    /// left out.
    pub(crate) fn before(&self) -> Catalogue {
        catalogue_of(self.current.iter().map(|(name, entries)| (name.as_str(), entries.clone())))
    }

    /// What of it readers see: not the namespaces that have no pointer.
    pub(crate) fn in_use(&self) -> Catalogue {
        let is_seen = |(name, _): &(&String, &Vec<Entry>)| !self.without_pointer.contains(*name);
        let seen = self.current.iter().filter(is_seen);
        catalogue_of(seen.map(|(name, entries)| (name.as_str(), entries.clone())))
    }

    /// The catalogue as it will be.
    pub(crate) fn after(&self) -> Catalogue {
        catalogue_of(self.current.keys().map(|name| (name.as_str(), self.entries_after(name))))
    }

    /// The mappings as they are and as they will be.
    pub(crate) fn mappings(&self) -> anyhow::Result<[BTreeMap<String, Mapped>; 2]> {
        let before = self.current.get(DEPLOYMENT).map(Vec::as_slice).unwrap_or_default();
        let [before, after] = [mappings_of(before), mappings_of(&self.entries_after(DEPLOYMENT))];
        Ok([before.map_err(anyhow::Error::msg)?, after.map_err(anyhow::Error::msg)?])
    }

    fn entries_after(&self, name: &str) -> Vec<Entry> {
        let wanted = self.wanted.get(name);
        let current = self.current.get(name).into_iter().flatten();
        let staying = current.filter(|entry| !self.is_removed(wanted, entry));
        with_wanted(staying, wanted.into_iter().flatten())
    }

    fn is_removed(&self, wanted: Option<&Entries>, entry: &Entry) -> bool {
        let is_wanted = wanted.is_some_and(|wanted| wanted.contains_key(&*entry.key));
        self.prune && !is_wanted && is_owned_by(entry, &self.owner)
    }

    /// How many entries of this owner the files no longer have, and that stay.
    pub(crate) fn left(&self) -> usize {
        let left = |(name, entries): (&String, &Vec<Entry>)| {
            let wanted = self.wanted.get(name);
            let is_left = |entry: &&Entry| {
                is_owned_by(entry, &self.owner)
                    && !wanted.is_some_and(|wanted| wanted.contains_key(&*entry.key))
            };
            entries.iter().filter(is_left).count()
        };
        if self.prune { 0 } else { self.current.iter().map(left).sum() }
    }

    /// The namespaces that have no pointer: they are restored, whether they change or not.
    pub(crate) fn without_pointer(&self) -> &BTreeSet<String> {
        &self.without_pointer
    }

    /// Whether nothing is to be changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.without_pointer.is_empty()
            && self
                .current
                .iter()
                .all(|(name, current)| self.changes(name, current) == Changes::default())
    }

    /// Makes the changes, those of the deployment last: its publishers name topics that have to be there.
    /// `report` is told of each namespace that was changed.
    pub(crate) async fn commit(
        &self,
        by: &str,
        report: impl Fn(&str, &Committed) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (last, first): (Vec<_>, Vec<_>) =
            self.current.iter().partition(|(name, _)| *name == DEPLOYMENT);
        for (name, current) in first.into_iter().chain(last) {
            let changes = self.changes(name, current);
            if changes == Changes::default() && !self.without_pointer.contains(name) {
                continue;
            }
            let namespace = Namespace::new(&self.objects, &self.nodes, name);
            let change = |_| std::future::ready(Ok::<_, Infallible>(changes.clone()));
            let committed = namespace.commit(&Machine, by, change).await;
            let is_of_others = changes == Changes::default() && !self.wanted.contains_key(name);
            if let (true, Err(error)) = (is_of_others, &committed) {
                // Perhaps only they may write it: that keeps nobody from changing another.
                note(format_args!(
                    "the pointer of the namespace {} may still be missing: {error}",
                    text::line(name)
                ));
                continue;
            }
            let committed = committed.map_err(|error| {
                failed(name, error).context("only the namespaces that are listed above are changed")
            })?;
            report(name, &committed)?;
        }
        Ok(())
    }

    fn changes(&self, name: &str, current: &[Entry]) -> Changes {
        let wanted = self.wanted.get(name);
        let mut changes = Changes::default();
        for (key, value) in wanted.into_iter().flatten() {
            let before = find(current, key).map(|entry| &*entry.value);
            if before != Some(value.as_str()) {
                // It suits the topic as that is now.
                let topic = topic_key(key.split_once('/').map_or("", |(topic, _)| topic));
                let described = find(current, &topic).map(|entry| &*entry.value);
                changes.expect(topic.as_str(), described);
                changes.expect(key.as_str(), before);
                changes.put(key.as_str(), value.as_str());
            }
        }
        for entry in current.iter().filter(|entry| self.is_removed(wanted, entry)) {
            changes.expect(entry.key.clone(), Some(&entry.value));
            changes.remove(entry.key.clone());
        }
        changes
    }
}

/// These entries, with those that are wanted in place of theirs.
pub(crate) fn with_wanted<'a>(
    current: impl Iterator<Item = &'a Entry>,
    wanted: impl Iterator<Item = (&'a String, &'a String)>,
) -> Vec<Entry> {
    let current = current.map(|entry| (entry.key.clone(), entry.value.clone()));
    let mut all: BTreeMap<_, _> = current.collect();
    all.extend(wanted.map(|(key, value)| (key.as_str().into(), value.as_str().into())));
    all.into_iter().map(|(key, value)| Entry { key, value }).collect()
}

/// The entry of this key among those of a namespace, which come by key.
pub(crate) fn find<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Entry> {
    entries.get(entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?)
}

/// That a namespace could not be changed.
pub(crate) fn failed<E>(name: &str, error: CommitError<E>) -> anyhow::Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    let name = text::line(name);
    let what = if matches!(error, CommitError::Uncertain { .. }) {
        format!("the namespace {name} may be changed or not")
    } else {
        format!("the namespace {name} is not changed")
    };
    anyhow::Error::new(error).context(what)
}

/// Who changes entries of this owner, for the history.
pub(crate) fn who(owner: &str) -> String {
    let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    format!("{} as {owner}", user.unwrap_or_else(|| "unknown".to_owned()))
}

/// The newest snapshot of a namespace and all its entries, for who changes it or something that has to suit it.
pub(crate) async fn newest_entries(
    namespace: &Namespace<'_, CatalogueObjects>,
) -> Result<(Snapshot, Vec<Entry>), catalogue::ReadError> {
    let loaded = namespace.load_to_change().await?;
    let snapshot = loaded.map(|(snapshot, _)| snapshot).unwrap_or_default();
    let entries = namespace.entries(&snapshot).try_collect().await?;
    Ok((snapshot, entries))
}

/// The subscriptions of these namespaces, as far as their entries can be read.
pub(crate) fn catalogue_of<'a>(
    namespaces: impl Iterator<Item = (&'a str, Vec<Entry>)>,
) -> Catalogue {
    let (mut catalogue, mut settings) = (Catalogue::default(), None);
    for (name, entries) in namespaces {
        if name == DEPLOYMENT {
            settings = settings_of(&entries).ok();
            continue;
        }
        for topic in topics_of(name, &entries).into_iter().flatten() {
            catalogue.add_whole_topic(topic);
        }
    }
    catalogue.set_settings(settings.unwrap_or_default());
    catalogue
}
