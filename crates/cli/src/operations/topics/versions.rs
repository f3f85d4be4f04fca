//! Reads the versions of a topic's object that a bucket stores.
//!
//! Separate because two commands read versions: `rollback` restores one, and `subscriptions
//! history` shows their differences.

use std::collections::BTreeSet;

use adapters::storage::Version;
use anyhow::Context as _;
use delivery::subscription::name::TopicName;
use delivery::topic_object::{Content, OBJECT_MAX_BYTES, ObjectError};

use super::{Object, Topics};
use crate::operations::change_record::ChangeRecord;

/// The content of a version, and the record of the change that created it.
#[derive(Debug)]
pub(crate) struct TopicVersion {
    /// The object in this version: `None` if the topic was removed, an error if the version is
    /// invalid.
    pub(crate) object: Result<Option<Object>, ObjectError>,
    pub(crate) bytes: usize,
    pub(crate) record: ChangeRecord,
}

/// The differences between two versions of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// True if the settings of the topic itself differ.
    pub(crate) settings: bool,
    pub(crate) added: Vec<String>,
    pub(crate) changed: Vec<String>,
    pub(crate) removed: Vec<String>,
}

impl Topics {
    /// Lists the versions of a topic's object, newest first.
    ///
    /// # Errors
    /// If the versions cannot be listed.
    pub(crate) async fn versions(&self, name: &TopicName) -> anyhow::Result<Vec<Version>> {
        let versions = self.objects.storage().versions(&self.objects.key_of(name)).await;
        versions.with_context(|| format!("the versions of {name} cannot be listed"))
    }

    /// Reads a version of a topic's object.
    ///
    /// # Errors
    /// If the version cannot be read, or has expired since it was listed.
    pub(crate) async fn version(
        &self,
        name: &TopicName,
        Version { id, .. }: &Version,
    ) -> anyhow::Result<TopicVersion> {
        let (key, max_bytes) = (self.objects.key_of(name), OBJECT_MAX_BYTES as u64);
        let stored = self.objects.storage().get_version(max_bytes, &key, id).await;
        let stored =
            stored.with_context(|| format!("the version {id} of {name} cannot be read"))?;
        let stored =
            stored.with_context(|| format!("the version {id} of {name} no longer exists"))?;
        let object = Content::parse(&stored.bytes).map(|content| match content {
            Content::Topic(object) => Some(object.into_owned()),
            Content::Removed(_) => None,
        });
        let record = ChangeRecord::from_metadata(&stored.metadata);
        Ok(TopicVersion { object, bytes: stored.bytes.len(), record })
    }
}

impl Changes {
    /// Compares two versions of a topic; `None` means that the topic was removed.
    pub(crate) fn between(before: Option<&Object>, after: Option<&Object>) -> Self {
        let none = Object::default();
        let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
        let (old, new) = (&before.subscriptions, &after.subscriptions);
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let mut changes = Self { settings: before.topic != after.topic, ..Self::default() };
        for name in names {
            let list = match (old.get(name), new.get(name)) {
                (old, new) if old == new => continue,
                (None, _) => &mut changes.added,
                (Some(_), None) => &mut changes.removed,
                (Some(_), Some(_)) => &mut changes.changed,
            };
            list.push(name.clone());
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn object(topic: Option<&'static str>, entries: &[(&str, &'static str)]) -> Object {
        let entries =
            entries.iter().map(|(name, entry)| ((*name).to_owned(), Cow::Borrowed(*entry)));
        Object { topic: topic.map(Cow::Borrowed), subscriptions: entries.collect() }
    }

    #[test]
    fn a_change_names_the_entries_that_differ() {
        let before = object(None, &[("same", "1"), ("changed", "1"), ("removed", "1")]);
        let after = object(Some("{}"), &[("same", "1"), ("changed", "2"), ("added", "1")]);
        let names = |name: &str| vec![name.to_owned()];
        let expected = Changes {
            settings: true,
            added: names("added"),
            changed: names("changed"),
            removed: names("removed"),
        };
        assert_eq!(Changes::between(Some(&before), Some(&after)), expected);
        assert_eq!(Changes::between(Some(&after), Some(&after)), Changes::default());
        let all = Changes::between(Some(&before), None);
        assert_eq!(all.removed, ["changed", "removed", "same"]);
        assert_eq!(Changes::between(None, Some(&before)).added, all.removed);
    }
}
