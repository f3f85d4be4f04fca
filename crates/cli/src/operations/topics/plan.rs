//! Plans the changes that the files of one owner make in a deployment.
//!
//! Separate from applying the changes, because the user sees the plan first. A change is applied to
//! the newest version of a topic, so later changes by others are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adapters::live_topics::{PUBLISHERS, SETTINGS};
use anyhow::{Context as _, bail};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::topic_object::{
    self, DeploymentObjects, DestinationsObject, PublishersObject, SettingsObject, TopicObject,
};
use dialects::Reading;
use futures::{StreamExt as _, stream};

use super::beside::{
    Beside, apply_destinations, apply_publishers, apply_settings, check_planned, destinations_of,
    own_destinations,
};
use super::change::{Change, Object, is_of};
use super::{Addresses, Changed, Current, Topics};
use crate::operations::change_record::ChangeRecord;
use crate::terminal::advice::chain;
use crate::terminal::output::note;
use crate::terminal::text;

/// The maximum number of objects that are read or written concurrently.
const OBJECTS_AT_ONCE: usize = 16;

#[derive(Debug)]
struct TopicChange {
    change: Change,
    before: Current,
    after: Option<Object>,
}

/// The planned changes of one owner.
pub(crate) struct Plan<'t> {
    topics: &'t Topics,
    owner: &'t str,
    prune: bool,
    changes: BTreeMap<TopicName, TopicChange>,
    before: Beside,
    after: Beside,
    /// The topics and settings in the files.
    wanted: DeploymentObjects,
    wanted_destinations: BTreeMap<String, String>,
    /// The number of the owner's stored entries that are not in the files, but are kept.
    left: usize,
    /// The addresses of the references that the files map.
    addresses: Arc<Addresses>,
    /// The number of stored entries, of any owner, that get a new address.
    readdressed: usize,
    /// The number of this owner's subscriptions that are removed.
    removed: usize,
    /// The number of this owner's subscriptions that remain, changed or not.
    kept: usize,
    /// The policies of secrets before and after the change, if they differ.
    policies: Option<[SecretPolicy; 2]>,
    /// The names of subscriptions that a new policy makes invalid, although their topics do not
    /// change.
    refused: Vec<String>,
    /// True if the command has waited for a person's confirmation since the topics were read.
    has_paused: bool,
}

impl<'t> Plan<'t> {
    /// Compares an owner's files with a deployment. With `prune`, plans to remove the owner's
    /// entries that are not in the files.
    ///
    /// # Errors
    /// If an object that must change cannot be read, or an entry belongs to another owner.
    pub(crate) async fn prepare(
        topics: &'t Topics,
        before: Beside,
        owner: &'t str,
        reading: &Reading,
        prune: bool,
    ) -> anyhow::Result<Self> {
        let wanted = DeploymentObjects::new(owner, &reading.catalogue);
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
            has_paused: false,
        };
        plan.after.apply(&plan.wanted, &plan.wanted_destinations, owner, prune)?;
        plan.addresses = Arc::new(Addresses::from_entries(&plan.wanted_destinations));
        let after = plan.after.settings().context("the new settings would not be valid")?.secrets;
        let before = plan.before.usable_settings().secrets;
        plan.policies = (before != after).then_some([before, after]);
        let mut reads = Vec::with_capacity(names.len());
        for name in names {
            reads.push(async move { (topics.current(&name).await, name) });
        }
        let mut reads = stream::iter(reads).buffered(OBJECTS_AT_ONCE);
        while let Some((current, name)) = reads.next().await {
            let current = match current {
                Ok(current) => current,
                // An unreadable topic that the files do not mention must not prevent other changes.
                Err(error) if !plan.wanted.topics.contains_key(&name) => {
                    note(format_args!(
                        "{} is unchanged: {}",
                        text::line(&name.to_string()),
                        chain(&error)
                    ));
                    continue;
                }
                Err(error) => return Err(error),
            };
            plan.add(name, current)?;
        }
        Ok(plan)
    }

    /// Adds the change of a topic to the plan.
    fn add(&mut self, name: TopicName, current: Current) -> anyhow::Result<()> {
        let before = current.object.as_ref();
        let wanted = self.wanted.topics.get(&name).cloned();
        if !self.prune {
            self.left += left(before, wanted.as_ref(), self.owner);
        }
        let (wanted, addresses) = (wanted.unwrap_or_default(), Arc::clone(&self.addresses));
        self.readdressed += before.map_or(0, |object| addresses.missing_from(object));
        let change = Change::Apply { wanted, prune: self.prune, addresses };
        let after = change.made_in(before, self.owner);
        let after = after.with_context(|| format!("the topic {name} was not changed"))?;
        if let Some(after) = &after {
            after.to_text().with_context(|| format!("the topic {name} was not changed"))?;
        }
        let own = before.into_iter().flat_map(|object| &object.subscriptions);
        for (subscription, _) in own.filter(|(_, entry)| is_of(entry, self.owner)) {
            let stays = after
                .as_ref()
                .is_some_and(|object| object.subscriptions.contains_key(subscription));
            *(if stays { &mut self.kept } else { &mut self.removed }) += 1;
        }
        // A missing topic that gets no entries is `None` before and after, so the plan does not
        // create it.
        if after.as_ref() != before {
            self.changes.insert(name, TopicChange { change, before: current, after });
        } else if let (Some(object), Some([old, new])) = (before, &self.policies) {
            let read = |secrets| topic_object::read(&name, object, secrets);
            // A topic that was already invalid cannot become invalid.
            if let (Ok(old), Ok(new)) = (read(old), read(new)) {
                self.refused.extend(made_unusable(&name, old.unusable(), new.unusable()));
            }
        }
        Ok(())
    }

    /// Returns the changed topics and the settings, before and after the change. Also returns
    /// problems: subscriptions that the change makes invalid, and invalid subscriptions in the
    /// files.
    pub(crate) fn catalogues(&self) -> anyhow::Result<([Catalogue; 2], Vec<String>)> {
        let before = self.before.usable_settings();
        let after = self.after.settings()?;
        let (mut old, mut new) = (Catalogue::default(), Catalogue::default());
        let mut problems = self.refused.clone();
        for (name, change) in &self.changes {
            let mut known = BTreeMap::new();
            if let Some(object) = &change.before.object
                && let Ok(topic) = topic_object::read(name, object, &before.secrets)
            {
                known.clone_from(topic.unusable());
                old.add_whole_topic(topic);
            }
            let Some(object) = &change.after else { continue };
            let topic = topic_object::read(name, object, &after.secrets);
            let topic = topic.with_context(|| format!("the topic {name} would not be valid"))?;
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

    /// Returns the number of the owner's stored entries that are not in the files, but are kept.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// Returns the number of stored entries, of any owner, whose reference gets a new address.
    pub(crate) const fn readdressed(&self) -> usize {
        self.readdressed
    }

    /// Returns true if all subscriptions of this owner are removed.
    pub(crate) const fn removes_all(&self) -> bool {
        self.removed > 0 && self.kept == 0
    }

    /// Returns the addresses that this owner maps, before and after the change.
    pub(crate) fn destinations(&self) -> [BTreeMap<String, String>; 2] {
        [&self.before, &self.after].map(|beside| {
            beside.destinations.get(self.owner).cloned().unwrap_or_default().destinations
        })
    }

    /// Returns the number of objects that change, including deployment-wide ones.
    pub(crate) fn objects(&self) -> usize {
        let beside = [
            self.before.settings != self.after.settings,
            self.before.publishers != self.after.publishers,
            self.before.mapped() != self.after.mapped(),
        ];
        self.changes.len() + beside.into_iter().filter(|changes| *changes).count()
    }

    /// Records that the command has waited for a confirmation. Topics may have changed since they
    /// were read.
    pub(crate) fn note_pause(&mut self) {
        self.has_paused = true;
    }

    /// Returns the version to which the change of a topic is first applied. After a confirmation,
    /// returns `None` for a topic that did not exist, so that it is read again. Otherwise, a topic
    /// that another owner has since added and deleted would be lost without notice.
    fn read_of<'c>(&self, change: &'c TopicChange) -> Option<&'c Current> {
        Some(&change.before).filter(|read| read.etag.is_some() || !self.has_paused)
    }

    /// Applies the changes. Mapped addresses come first, so that a conflict about them prevents all
    /// other changes. Topics come before the other objects, which refer to topics.
    ///
    /// # Errors
    /// If an object cannot be written. Changes that were reported before the error remain.
    pub(crate) async fn make(
        &self,
        record: &ChangeRecord,
        report: impl Fn(&TopicName, Changed) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { topics, owner, prune, .. } = self;
        let mapped = self.write_destinations(record).await?;
        let changes =
            self.changes.iter().map(|(name, change)| (name, &change.change, self.read_of(change)));
        self.change_topics(changes.collect(), record, &report).await?;
        if mapped != Changed::Nothing {
            let others = self.readdress_others(record, &report).await;
            others.context("the addresses in topics of other owners were not all updated")?;
        }
        topics
            .change_deployment(PUBLISHERS, false, record, |object: &mut PublishersObject| {
                apply_publishers(object, &self.wanted, owner, *prune)?;
                // Another owner may have listed one of these topics since the plan was made.
                let problem = topic_object::settings(&SettingsObject::default(), object).err();
                problem.map_or(Ok(()), |problem| bail!("{PUBLISHERS} was not changed: {problem}"))
            })
            .await?;
        topics
            .change_deployment(SETTINGS, true, record, |object: &mut SettingsObject| {
                apply_settings(object, &self.wanted.settings, owner, *prune)
            })
            .await?;
        self.check_addresses().await
    }

    /// Applies the changes of topics, and reports each one. If a topic fails, the others are still
    /// changed.
    async fn change_topics(
        &self,
        changes: Vec<(&TopicName, &Change, Option<&Current>)>,
        record: &ChangeRecord,
        report: impl Fn(&TopicName, Changed) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { topics, owner, .. } = self;
        let mut changing = Vec::with_capacity(changes.len());
        for (name, change, read) in changes {
            changing.push(
                async move { (topics.change(name, owner, change, record, read).await, name) },
            );
        }
        let mut changing = stream::iter(changing).buffer_unordered(OBJECTS_AT_ONCE);
        let (mut written, mut problems) = (0, Vec::new());
        while let Some((changed, name)) = changing.next().await {
            match changed {
                Ok(changed) => {
                    written += usize::from(changed != Changed::Nothing);
                    report(name, changed)?;
                }
                Err(error) => problems.push(error),
            }
        }
        let failed = problems.len();
        let first = problems.into_iter().next();
        first.map_or(Ok(()), |first| {
            Err(first.context(format!(
                "topics changed: {written}; not changed because of errors: {failed}"
            )))
        })
    }

    /// Updates the addresses in topics that another owner has added or changed since the plan was
    /// made. Topics that change later get the new addresses anyway, because these are already
    /// stored.
    async fn readdress_others(
        &self,
        record: &ChangeRecord,
        report: impl Fn(&TopicName, Changed) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let addresses = Arc::clone(&self.addresses);
        let change = Change::Apply { wanted: Object::default(), prune: false, addresses };
        let names = self.topics.names().await?;
        let others = names.iter().filter(|name| !self.changes.contains_key(*name));
        let changes = others.map(|name| (name, &change, None)).collect();
        let report = |name: &TopicName, changed| match changed {
            Changed::Nothing => Ok(()),
            Changed::Written(_) => report(name, changed),
        };
        self.change_topics(changes, record, report).await
    }

    /// Checks that the subscriptions have the newest addresses of references.
    ///
    /// # Errors
    /// If another owner has changed an address since the plan was made.
    async fn check_addresses(&self) -> anyhow::Result<()> {
        let newest = self.topics.destinations().await?;
        for (owner, planned) in
            self.before.destinations.iter().filter(|(name, _)| *name != self.owner)
        {
            let Some(newest) = newest.get(owner) else { continue };
            for (reference, entry) in &planned.destinations {
                if newest.destinations.get(reference).is_some_and(|newest| newest != entry) {
                    bail!(
                        "{owner} changed the mapping of {reference} meanwhile, and the written \
                         objects may contain its old address: apply again"
                    );
                }
            }
        }
        Ok(())
    }

    /// Writes the addresses to which these files map references.
    ///
    /// # Errors
    /// If another owner has mapped one of the references to a different address since the plan was
    /// made. In this case, the stored addresses of the owner of these files remain unchanged.
    async fn write_destinations(&self, record: &ChangeRecord) -> anyhow::Result<Changed> {
        let Self { topics, owner, prune, .. } = self;
        let name = destinations_of(owner);
        let own = own_destinations(&self.before.destinations, &self.wanted_destinations, owner)?;
        let planned = self.before.addresses(Some(owner)).destinations;
        let written = topics
            .change_deployment(&name, false, record, |object: &mut DestinationsObject| {
                check_planned(&object.destinations, &planned, &own)?;
                apply_destinations(object, &own, *prune);
                Ok(())
            })
            .await?;
        if written == Changed::Nothing {
            return Ok(written);
        }
        // Each owner has a separate object, so a conditional write does not detect concurrent
        // writes of other owners. If two owners write at the same time, at least one of them reads
        // the other's address here.
        let Err(conflict) = own_destinations(&topics.destinations().await?, &own, owner) else {
            return Ok(written);
        };
        topics
            .change_deployment(&name, false, record, |object: &mut DestinationsObject| {
                object.destinations.retain(|reference, _| !own.contains_key(reference));
                object.destinations.extend(planned.clone());
                Ok(())
            })
            .await?;
        Err(conflict)
    }
}

/// Returns the subscriptions that a change makes invalid, each with the reason.
fn made_unusable(
    name: &TopicName,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> impl Iterator<Item = String> {
    let new = after.iter().filter(|(subscription, _)| !before.contains_key(*subscription));
    new.map(move |(subscription, why)| text::line(&format!("error: {name}/{subscription}: {why}")))
}

/// Counts the owner's entries in an object that are not in the files.
fn left(object: Option<&Object>, wanted: Option<&TopicObject<'_>>, owner: &str) -> usize {
    let Some(object) = object else { return 0 };
    let is_wanted =
        |name: &String| wanted.is_some_and(|wanted| wanted.subscriptions.contains_key(name));
    let entries = object.subscriptions.iter().filter(|(name, _)| !is_wanted(name));
    let own = entries.filter(|(_, entry)| is_of(entry, owner)).count();
    let topic = object.topic.as_deref().filter(|entry| wanted.is_none() && is_of(entry, owner));
    own + usize::from(topic.is_some())
}

#[cfg(test)]
mod tests {
    use adapters::live_topics::Location;
    use dialects::Source;

    use super::*;

    /// Parses files with one subscription for each topic, all with this address.
    fn files(topics: &[&str], address: &str) -> Reading {
        let document = |topic: &&str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                 metadata: {{namespace: shop, topic: {topic}, name: a}}\nspec: {{destination: {{url: '{address}'}}}}\n"
            )
        };
        let text = topics.iter().map(document).collect::<Vec<_>>().join("---\n");
        dialects::read(&[Source { name: "f", text: &text }])
    }

    async fn plan<'t>(topics: &'t Topics, reading: &Reading) -> Plan<'t> {
        let beside = topics.beside().await.expect("objects");
        Plan::prepare(topics, beside, "one", reading, false).await.expect("a plan")
    }

    #[tokio::test]
    async fn after_a_question_only_a_topic_that_was_not_there_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let topics = Topics::at(&Location::Folder(folder.path().to_owned())).await;
        let first = files(&["known"], "https://a.test/");
        let made = plan(&topics, &first).await.make(&ChangeRecord::default(), |_, _| Ok(())).await;
        made.expect("it is made");

        let second = files(&["known", "new"], "https://b.test/");
        let mut plan = plan(&topics, &second).await;
        let are_used = |plan: &Plan<'_>| -> Vec<bool> {
            plan.changes.values().map(|change| plan.read_of(change).is_some()).collect()
        };
        assert_eq!(are_used(&plan), [true, true]);
        plan.note_pause();
        assert_eq!(are_used(&plan), [true, false]);
    }

    #[tokio::test]
    async fn other_publishers_of_a_topic_change_its_object_and_that_of_all_publishers() {
        let folder = tempfile::tempdir().expect("a folder");
        let topics = Topics::at(&Location::Folder(folder.path().to_owned())).await;
        let files = |publisher: &str| {
            let text = format!(
                "apiVersion: lastmile.dev/v1\nkind: Topic\n\
                 metadata: {{namespace: shop, name: orders}}\nspec: {{from: [{{snsTopic: {publisher}}}]}}\n"
            );
            dialects::read(&[Source { name: "f", text: &text }])
        };
        let first = plan(&topics, &files("arn:aws:sns:eu-west-1:123456789012:orders")).await;
        assert!(first.objects() > 0);
        first.make(&ChangeRecord::default(), |_, _| Ok(())).await.expect("it is made");
        let other = files("arn:aws:sns:eu-west-1:123456789012:others");
        assert_eq!(plan(&topics, &other).await.objects(), 2);
    }
}
