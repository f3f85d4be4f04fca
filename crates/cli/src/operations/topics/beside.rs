//! Reads the deployment-wide objects, and applies the files of an owner to them.
//!
//! Separate from the plan because these objects are read before the files, which may refer to them.
//! As in a topic, each part of such an object has an owner.

use std::collections::BTreeMap;

use adapters::live_topics::{DESTINATIONS, PUBLISHERS, SETTINGS};
use anyhow::bail;
use delivery::subscription::catalogue::Settings;
use delivery::subscription::name::{TopicName, segment};
use delivery::topic_object::{
    self, DeploymentObjects, DestinationsObject, PublishersObject, SettingsObject,
};
use dialects::Deployment;

use super::Topics;
use crate::operations::shell::typed;
use crate::terminal::advice::chain;
use crate::terminal::output::note;
use crate::terminal::text;

/// The deployment-wide objects: all objects that belong to no topic.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(super) settings: SettingsObject,
    pub(super) publishers: PublishersObject,
    /// The mapped addresses of references, by owner.
    pub(super) destinations: BTreeMap<String, DestinationsObject>,
}

impl Topics {
    /// Reads the deployment-wide objects.
    ///
    /// # Errors
    /// If an object cannot be read.
    pub(crate) async fn beside(&self) -> anyhow::Result<Beside> {
        let (settings, _) = self.deployment::<SettingsObject>(SETTINGS).await?;
        let (publishers, _) = self.deployment::<PublishersObject>(PUBLISHERS).await?;
        let destinations = self.destinations().await?;
        let (settings, publishers) = (settings.unwrap_or_default(), publishers.unwrap_or_default());
        Ok(Beside { settings, publishers, destinations })
    }

    /// Reads the mapped addresses of all owners.
    pub(super) async fn destinations(
        &self,
    ) -> anyhow::Result<BTreeMap<String, DestinationsObject>> {
        let mut destinations = BTreeMap::new();
        for owner in self.objects.owners_of_destinations().await? {
            match self.deployment::<DestinationsObject>(&destinations_of(&owner)).await {
                Ok((object, _)) => drop(destinations.insert(owner, object.unwrap_or_default())),
                // An unreadable object of one owner must not prevent others from applying.
                Err(error) => {
                    note(format_args!("{} is ignored: {}", text::line(&owner), chain(&error)));
                }
            }
        }
        Ok(destinations)
    }
}

/// Returns the name of the object with an owner's mapped addresses.
pub(crate) fn destinations_of(owner: &str) -> String {
    format!("{DESTINATIONS}{}.json", segment(owner))
}

impl Beside {
    /// Returns the addresses that one owner has mapped; those of all owners if `owner` is `None`.
    pub(crate) fn addresses(&self, owner: Option<&str>) -> DestinationsObject {
        let mut all = DestinationsObject::default();
        let wanted =
            self.destinations.iter().filter(|(name, _)| owner.is_none_or(|owner| *name == owner));
        wanted.for_each(|(_, object)| all.destinations.extend(object.destinations.clone()));
        all
    }

    /// Returns the settings against which the files of this owner are parsed. With `prune`, omits
    /// the owner's stored settings, because those in the files replace them.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub(crate) fn for_files(&self, owner: &str, prune: bool) -> anyhow::Result<Deployment> {
        let is_counted = |name: &String| !(prune && name == owner);
        let destinations = self.destinations.iter().filter(|(name, _)| is_counted(name));
        let destinations =
            destinations.flat_map(|(_, object)| object.destinations.clone()).collect();
        let mut settings = self.settings.clone();
        settings.secret_policies.retain(|name, _| is_counted(name));
        let secrets = topic_object::settings(&settings, &PublishersObject::default());
        let secrets = secrets.map_err(anyhow::Error::msg)?.secrets;
        Ok(Deployment { destinations, secrets })
    }

    /// Parses the settings.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        topic_object::settings(&self.settings, &self.publishers).map_err(anyhow::Error::msg)
    }

    /// Parses the settings and the publishers. Ignores invalid publishers, and replaces invalid
    /// settings with defaults, so that an owner can repair them.
    pub(super) fn usable_settings(&self) -> Settings {
        let all = topic_object::settings(&self.settings, &self.publishers);
        let without_publishers =
            || topic_object::settings(&self.settings, &PublishersObject::default());
        all.or_else(|_| without_publishers()).unwrap_or_default()
    }
}

impl Beside {
    /// Applies the deployment-wide objects in the files of an owner.
    pub(super) fn apply(
        &mut self,
        wanted: &DeploymentObjects,
        destinations: &BTreeMap<String, String>,
        owner: &str,
        prune: bool,
    ) -> anyhow::Result<()> {
        apply_settings(&mut self.settings, &wanted.settings, owner, prune)?;
        apply_publishers(&mut self.publishers, wanted, owner, prune)?;
        let own = own_destinations(&self.destinations, destinations, owner)?;
        let object = self.destinations.entry(owner.to_owned()).or_default();
        apply_destinations(object, &own, prune);
        Ok(())
    }

    /// Returns the mapped addresses by owner.
    pub(super) fn mapped(&self) -> BTreeMap<&String, &DestinationsObject> {
        self.destinations.iter().filter(|(_, object)| !object.destinations.is_empty()).collect()
    }
}

/// Returns the mapped addresses in the files of this owner. Omits references that another owner has
/// mapped to the same address, because the other owner keeps them.
///
/// # Errors
/// If another owner has mapped a reference to a different address.
pub(super) fn own_destinations(
    mapped: &BTreeMap<String, DestinationsObject>,
    wanted: &BTreeMap<String, String>,
    owner: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut own = wanted.clone();
    for (other, object) in mapped.iter().filter(|(other, _)| *other != owner) {
        for (reference, address) in &object.destinations {
            let Some(mapped) = own.remove(reference) else { continue };
            if mapped != *address {
                bail!(
                    "{} is mapped by {other:?} to a different address than in these files: if \
                     you are that owner, use --owner {}; otherwise remove it from the files",
                    text::line(reference),
                    typed(other)
                );
            }
        }
    }
    Ok(own)
}

/// Fails if a stored address of the owner has changed since the plan was made, unless it already is
/// the new address.
pub(super) fn check_planned(
    current: &BTreeMap<String, String>,
    planned: &BTreeMap<String, String>,
    own: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for (reference, address) in own {
        let now = current.get(reference);
        if now != planned.get(reference) && now != Some(address) {
            let reference = text::line(reference);
            bail!(
                "nothing was changed, because the mapping of {reference} has changed meanwhile; \
                 run the command again"
            );
        }
    }
    Ok(())
}

/// Adds the mapped addresses of an owner. With `prune`, removes the owner's other addresses.
pub(super) fn apply_destinations(
    object: &mut DestinationsObject,
    own: &BTreeMap<String, String>,
    prune: bool,
) {
    if prune {
        object.destinations.clear();
    }
    object.destinations.extend(own.clone());
}

/// Adds or replaces the secret policies and the notifications in `wanted`. With `prune`, removes
/// all other policies and notifications of the owner.
pub(super) fn apply_settings(
    object: &mut SettingsObject,
    wanted: &SettingsObject,
    owner: &str,
    prune: bool,
) -> anyhow::Result<()> {
    if prune {
        object.secret_policies.remove(owner);
        object.notifications =
            object.notifications.take().filter(|previous| previous.owner != owner);
    }
    object.secret_policies.extend(wanted.secret_policies.clone());
    if let Some(wanted) = &wanted.notifications {
        match object.notifications.as_ref().filter(|previous| previous.owner != owner) {
            Some(previous) if previous.spec != wanted.spec => bail!(
                "the Notifications document is owned by {:?}: if you are that owner, use --owner {}; \
                 otherwise remove it from the files",
                previous.owner,
                typed(&previous.owner)
            ),
            Some(_) => {}
            None => object.notifications = Some(wanted.clone()),
        }
    }
    Ok(())
}

/// Adds or replaces the publishers of the topics that the owner's files list. With `prune`, removes
/// the owner's publishers of all other topics.
pub(super) fn apply_publishers(
    object: &mut PublishersObject,
    wanted: &DeploymentObjects,
    owner: &str,
    prune: bool,
) -> anyhow::Result<()> {
    // The publishers in the files replace the owner's earlier publishers of the same topic.
    let is_listed = |topic: &TopicName| wanted.publishers.topics.contains_key(topic);
    object.topics.retain(|topic, entry| entry.owner != owner || !(prune || is_listed(topic)));
    for (topic, entry) in &wanted.publishers.topics {
        if let Some(previous) =
            object.topics.get(topic).filter(|previous| previous.from != entry.from)
        {
            bail!(
                "the publishers of {topic} belong to {:?}: change them with --owner {}",
                previous.owner,
                typed(&previous.owner)
            );
        }
        object.topics.entry(topic.clone()).or_insert_with(|| entry.clone());
    }
    Ok(())
}
