//! The changes that the files of one owner make in a deployment.
//!
//! Separate from making the changes, because people see them first. A change is made in the newest object of its topic, so
//! what others changed since it was planned stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adapters::live_topics::{DESTINATIONS, PUBLISHERS, SETTINGS};
use anyhow::{Context as _, bail};
use delivery::subscription::catalogue::{Catalogue, Settings};
use delivery::subscription::name::{TopicName, segment};
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{
    self, DeploymentObjects, DestinationsObject, PublishersObject, SettingsObject, TopicObject,
};
use dialects::{Deployment, Reading};
use futures::{StreamExt as _, stream};

use super::change::{Change, Object, is_of};
use super::{Addresses, Changed, Topics};
use crate::change_record::ChangeRecord;
use crate::output::note;
use crate::text;

/// The number of objects that are read or written at once.
const OBJECTS_AT_ONCE: usize = 16;

/// The objects of a deployment beside its topics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    settings: SettingsObject,
    publishers: PublishersObject,
    /// The mapped addresses of each owner.
    destinations: BTreeMap<String, DestinationsObject>,
}

/// The change of one topic.
#[derive(Debug)]
struct TopicChange {
    change: Change,
    before: Option<Object>,
    after: Option<Object>,
}

/// The changes that the files of one owner make.
pub(crate) struct Plan<'t> {
    topics: &'t Topics,
    owner: &'t str,
    prune: bool,
    changes: BTreeMap<TopicName, TopicChange>,
    before: Beside,
    after: Beside,
    /// The content of the files.
    wanted: DeploymentObjects,
    wanted_destinations: BTreeMap<String, String>,
    /// The number of entries of this owner that are not in the files and stay.
    left: usize,
    /// The addresses of the references that these files map.
    addresses: Arc<Addresses>,
    /// The number of entries of any owner that get a new address.
    readdressed: usize,
    /// The number of subscriptions of this owner that are removed; `kept` counts those that stay or change.
    removed: usize,
    kept: usize,
    /// The policies of secrets, as they are and as they will be, if they differ.
    policies: Option<[SecretPolicy; 2]>,
    /// Subscriptions of topics without a change that a new policy makes unusable.
    refused: Vec<String>,
}

impl Topics {
    /// Reads the objects beside the topics.
    ///
    /// # Errors
    /// If an object cannot be read.
    pub(crate) async fn beside(&self) -> anyhow::Result<Beside> {
        let (settings, _) = self.deployment::<SettingsObject>(SETTINGS).await?;
        let (publishers, _) = self.deployment::<PublishersObject>(PUBLISHERS).await?;
        let mut destinations = BTreeMap::new();
        for owner in self.objects.owners_of_destinations().await? {
            match self.deployment::<DestinationsObject>(&destinations_of(&owner)).await {
                Ok((object, _)) => drop(destinations.insert(owner, object.unwrap_or_default())),
                // An error in one owner's object keeps nobody else from applying.
                Err(error) => note(format_args!("{} is left out: {error:#}", text::line(&owner))),
            }
        }
        let (settings, publishers) = (settings.unwrap_or_default(), publishers.unwrap_or_default());
        Ok(Beside { settings, publishers, destinations })
    }
}

/// The object of an owner's mapped addresses.
pub(crate) fn destinations_of(owner: &str) -> String {
    format!("{DESTINATIONS}{}.json", segment(owner))
}

impl Beside {
    /// The addresses that one owner mapped, or all.
    pub(crate) fn addresses(&self, owner: Option<&str>) -> DestinationsObject {
        let mut all = DestinationsObject::default();
        let wanted =
            self.destinations.iter().filter(|(of, _)| owner.is_none_or(|name| *of == name));
        wanted.for_each(|(_, of)| all.destinations.extend(of.destinations.clone()));
        all
    }

    /// The settings by which the files of this owner are read. With `prune`, its own earlier ones do not count: they stay
    /// only if the files have them.
    ///
    /// # Errors
    /// If the settings cannot be used.
    pub(crate) fn for_files(&self, owner: &str, prune: bool) -> anyhow::Result<Deployment> {
        let is_counted = |of: &String| !(prune && of == owner);
        let destinations = self.destinations.iter().filter(|(of, _)| is_counted(of));
        let destinations = destinations.flat_map(|(_, of)| of.destinations.clone()).collect();
        let mut settings = self.settings.clone();
        settings.secret_policies.retain(|of, _| is_counted(of));
        let secrets = topic_object::settings(&settings, &PublishersObject::default());
        let secrets = secrets.map_err(anyhow::Error::msg)?.secrets;
        Ok(Deployment { destinations, secrets })
    }

    /// The settings.
    ///
    /// # Errors
    /// If they cannot be used.
    fn settings(&self) -> anyhow::Result<Settings> {
        topic_object::settings(&self.settings, &self.publishers).map_err(anyhow::Error::msg)
    }

    /// The settings, or as much of them as can be used: an owner can repair the rest.
    fn usable_settings(&self) -> Settings {
        let all = topic_object::settings(&self.settings, &self.publishers);
        let without_publishers =
            || topic_object::settings(&self.settings, &PublishersObject::default());
        all.or_else(|_| without_publishers()).unwrap_or_default()
    }
}

impl<'t> Plan<'t> {
    /// Compares an owner's files with a deployment. `prune`: what is the owner's and not in the files is removed.
    ///
    /// # Errors
    /// If something that would change cannot be read, or belongs to somebody else.
    pub(crate) async fn of(
        topics: &'t Topics,
        before: Beside,
        owner: &'t str,
        reading: &Reading,
        prune: bool,
    ) -> anyhow::Result<Self> {
        let wanted = DeploymentObjects::of(owner, &reading.catalogue);
        let known = topics.names().await?;
        let names: BTreeSet<TopicName> =
            known.into_iter().chain(wanted.topics.keys().cloned()).collect();
        let mut plan = Self {
            topics,
            owner,
            prune,
            changes: BTreeMap::new(),
            after: before.clone(),
            before,
            wanted,
            wanted_destinations: reading.destinations.clone(),
            left: 0,
            addresses: Arc::default(),
            readdressed: 0,
            removed: 0,
            kept: 0,
            policies: None,
            refused: Vec::new(),
        };
        plan.after.apply(&plan.wanted, &plan.wanted_destinations, owner, prune)?;
        plan.addresses = Arc::new(Addresses::of(&plan.wanted_destinations));
        let after = plan.after.settings().context("the settings would not be usable")?.secrets;
        let before = plan.before.usable_settings().secrets;
        plan.policies = (before != after).then_some([before, after]);
        let mut reads = Vec::with_capacity(names.len());
        for name in names {
            reads.push(async move { (topics.current(&name).await, name) });
        }
        let mut reads = stream::iter(reads).buffered(OBJECTS_AT_ONCE);
        while let Some((current, name)) = reads.next().await {
            let object = match current {
                Ok(current) => current.object,
                // An error in one topic keeps nobody from changing another.
                Err(error) if !plan.wanted.topics.contains_key(&name) => {
                    note(format_args!(
                        "{} is left as it is: {error:#}",
                        text::line(&name.to_string())
                    ));
                    continue;
                }
                Err(error) => return Err(error),
            };
            plan.add(name, object)?;
        }
        Ok(plan)
    }

    /// Adds what changes in a topic.
    fn add(&mut self, name: TopicName, before: Option<Object>) -> anyhow::Result<()> {
        let wanted = self.wanted.topics.get(&name).cloned();
        if !self.prune {
            self.left += left(before.as_ref(), wanted.as_ref(), self.owner);
        }
        let (wanted, addresses) = (wanted.unwrap_or_default(), Arc::clone(&self.addresses));
        self.readdressed += before.as_ref().map_or(0, |of| addresses.missing_from(of));
        let change = Change::Apply { wanted, prune: self.prune, addresses };
        let after = change.made_in(before.as_ref(), self.owner);
        let after = after.with_context(|| format!("the topic {name} is not changed"))?;
        if let Some(after) = &after {
            after.to_text().with_context(|| format!("the topic {name} is not changed"))?;
        }
        let own = before.iter().flat_map(|of| &of.subscriptions);
        for (subscription, _) in own.filter(|(_, entry)| is_of(entry, self.owner)) {
            let stays =
                after.as_ref().is_some_and(|of| of.subscriptions.contains_key(subscription));
            *(if stays { &mut self.kept } else { &mut self.removed }) += 1;
        }
        // Only a topic that the files have is made where none is left.
        if after != before {
            self.changes.insert(name, TopicChange { change, before, after });
        } else if let (Some(object), Some([old, new])) = (before, &self.policies) {
            let read = |secrets| topic_object::read(&name, &object, secrets);
            // A topic that was unusable before loses nothing.
            if let (Ok(old), Ok(new)) = (read(old), read(new)) {
                self.refused.extend(made_unusable(&name, old.unusable(), new.unusable()));
            }
        }
        Ok(())
    }

    /// The topics that change, as they are and as they will be, with the settings; and what would no longer be usable, or
    /// is not although the files have it.
    pub(crate) fn catalogues(&self) -> anyhow::Result<([Catalogue; 2], Vec<String>)> {
        let before = self.before.usable_settings();
        let after = self.after.settings()?;
        let (mut old, mut new) = (Catalogue::default(), Catalogue::default());
        let mut problems = self.refused.clone();
        for (name, change) in &self.changes {
            let mut known = BTreeMap::new();
            if let Some(object) = &change.before
                && let Ok(topic) = topic_object::read(name, object, &before.secrets)
            {
                known.clone_from(topic.unusable());
                old.add_whole_topic(topic);
            }
            let Some(object) = &change.after else { continue };
            let topic = topic_object::read(name, object, &after.secrets);
            let topic = topic.with_context(|| format!("the topic {name} would not be usable"))?;
            if let Some(put) = self.wanted.topics.get(name) {
                known.retain(|subscription, _| !put.subscriptions.contains_key(subscription));
            }
            problems.extend(made_unusable(name, &known, topic.unusable()));
            new.add_whole_topic(topic);
        }
        old.set_settings(before);
        new.set_settings(after);
        Ok(([old, new], problems))
    }

    /// The number of entries of this owner that are not in the files and stay.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// The number of stored entries, of any owner, whose reference has a new address.
    pub(crate) const fn readdressed(&self) -> usize {
        self.readdressed
    }

    /// Checks whether every subscription of this owner is removed.
    pub(crate) const fn removes_all(&self) -> bool {
        self.removed > 0 && self.kept == 0
    }

    /// The addresses that this owner mapped, as they are and as they will be.
    pub(crate) fn destinations(&self) -> [BTreeMap<String, String>; 2] {
        [&self.before, &self.after]
            .map(|of| of.destinations.get(self.owner).cloned().unwrap_or_default().destinations)
    }

    /// The number of objects that change, with those beside the topics.
    pub(crate) fn objects(&self) -> usize {
        let beside = [
            self.before.settings != self.after.settings,
            self.before.publishers != self.after.publishers,
            self.before.mapped() != self.after.mapped(),
        ];
        self.changes.len() + beside.into_iter().filter(|changes| *changes).count()
    }

    /// Makes the changes: topics first, since the objects beside them name them.
    ///
    /// # Errors
    /// If something cannot be written; what was reported before is.
    pub(crate) async fn make(
        &self,
        record: &ChangeRecord,
        report: impl Fn(&TopicName, Changed) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { topics, owner, prune, .. } = self;
        let mut changes = Vec::with_capacity(self.changes.len());
        for (name, TopicChange { change, .. }) in &self.changes {
            changes.push(async move { (topics.change(name, owner, change, record).await, name) });
        }
        let mut made = stream::iter(changes).buffer_unordered(OBJECTS_AT_ONCE);
        let mut problems = Vec::new();
        while let Some((changed, name)) = made.next().await {
            match changed {
                Ok(changed) => report(name, changed)?,
                Err(error) => problems.push(error),
            }
        }
        if let Some(first) = problems.into_iter().next() {
            return Err(first.context("only the topics that are listed above are changed"));
        }
        let name = destinations_of(owner);
        let own = self.before.own_destinations(&self.wanted_destinations, owner)?;
        topics
            .change_deployment(&name, false, record, |object: &mut DestinationsObject| {
                apply_destinations(object, &own, *prune);
                Ok(())
            })
            .await?;
        topics
            .change_deployment(PUBLISHERS, false, record, |object: &mut PublishersObject| {
                apply_publishers(object, &self.wanted, owner, *prune)?;
                // Somebody else may have listed one of them meanwhile.
                let problem = topic_object::settings(&SettingsObject::default(), object).err();
                problem.map_or(Ok(()), |problem| bail!("{PUBLISHERS} is not changed: {problem}"))
            })
            .await?;
        topics
            .change_deployment(SETTINGS, true, record, |object: &mut SettingsObject| {
                apply_settings(object, &self.wanted.settings, owner, *prune)
            })
            .await?;
        Ok(())
    }
}

impl Beside {
    /// Applies the files of an owner.
    fn apply(
        &mut self,
        wanted: &DeploymentObjects,
        destinations: &BTreeMap<String, String>,
        owner: &str,
        prune: bool,
    ) -> anyhow::Result<()> {
        apply_settings(&mut self.settings, &wanted.settings, owner, prune)?;
        apply_publishers(&mut self.publishers, wanted, owner, prune)?;
        let own = self.own_destinations(destinations, owner)?;
        let object = self.destinations.entry(owner.to_owned()).or_default();
        apply_destinations(object, &own, prune);
        Ok(())
    }

    /// The owners that mapped addresses, with these.
    fn mapped(&self) -> BTreeMap<&String, &DestinationsObject> {
        self.destinations.iter().filter(|(_, of)| !of.destinations.is_empty()).collect()
    }

    /// The addresses of files that are their owner's: without those that others mapped as well.
    ///
    /// # Errors
    /// If somebody else mapped a reference to another address.
    fn own_destinations(
        &self,
        destinations: &BTreeMap<String, String>,
        owner: &str,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let foreign = self.destinations.iter().filter(|(of, _)| *of != owner);
        let mut own = destinations.clone();
        for (of, object) in foreign {
            for (reference, address) in &object.destinations {
                let Some(mapped) = own.remove(reference) else { continue };
                if mapped != *address {
                    bail!(
                        "{} is mapped by {of:?}, and elsewhere by these files: change it with --owner {of:?}, or remove it \
                         from the files",
                        text::line(reference)
                    );
                }
            }
        }
        Ok(own)
    }
}

/// Applies an owner's mapped addresses.
fn apply_destinations(
    object: &mut DestinationsObject,
    own: &BTreeMap<String, String>,
    prune: bool,
) {
    if prune {
        object.destinations.clear();
    }
    object.destinations.extend(own.clone());
}

/// Applies an owner's policies.
fn apply_settings(
    object: &mut SettingsObject,
    wanted: &SettingsObject,
    owner: &str,
    prune: bool,
) -> anyhow::Result<()> {
    if prune {
        object.secret_policies.remove(owner);
        object.notifications = object.notifications.take().filter(|of| of.owner != owner);
    }
    object.secret_policies.extend(wanted.secret_policies.clone());
    if let Some(wanted) = &wanted.notifications {
        match object.notifications.as_ref().filter(|of| of.owner != owner) {
            Some(of) if of.spec != wanted.spec => bail!(
                "Notifications belongs to {:?}: change it with --owner {:?}, or remove it from the files",
                of.owner,
                of.owner
            ),
            Some(_) => {}
            None => object.notifications = Some(wanted.clone()),
        }
    }
    Ok(())
}

/// Applies an owner's publishers.
fn apply_publishers(
    object: &mut PublishersObject,
    wanted: &DeploymentObjects,
    owner: &str,
    prune: bool,
) -> anyhow::Result<()> {
    // The topics in the files take the place of the owner's earlier ones.
    let is_listed = |topic: &TopicName| wanted.publishers.topics.contains_key(topic);
    object.topics.retain(|topic, of| of.owner != owner || !(prune || is_listed(topic)));
    for (topic, entry) in &wanted.publishers.topics {
        if let Some(of) = object.topics.get(topic).filter(|of| of.from != entry.from) {
            bail!(
                "the publishers of {topic} belong to {:?}: change them with --owner {:?}",
                of.owner,
                of.owner
            );
        }
        object.topics.entry(topic.clone()).or_insert_with(|| entry.clone());
    }
    Ok(())
}

/// The subscriptions that can no longer be used, each with the reason.
fn made_unusable(
    name: &TopicName,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> impl Iterator<Item = String> {
    let new = after.iter().filter(|(subscription, _)| !before.contains_key(*subscription));
    new.map(move |(subscription, why)| text::line(&format!("error: {name}/{subscription}: {why}")))
}

/// Counts the entries of this owner that an object has and the files do not have.
fn left(object: Option<&Object>, wanted: Option<&TopicObject<'_>>, owner: &str) -> usize {
    let Some(object) = object else { return 0 };
    let is_wanted =
        |name: &String| wanted.is_some_and(|wanted| wanted.subscriptions.contains_key(name));
    let entries = object.subscriptions.iter().filter(|(name, _)| !is_wanted(name));
    let own = entries.filter(|(_, entry)| is_of(entry, owner)).count();
    let topic = object.topic.as_deref().filter(|entry| wanted.is_none() && is_of(entry, owner));
    own + usize::from(topic.is_some())
}
