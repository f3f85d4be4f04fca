//! Reads and changes the topics of a deployment.
//!
//! Separate from the reader in the functions, which never writes. An object is replaced only if it
//! is unchanged since it was read; otherwise, the change is repeated on the newer version.
//!
//! Promises: concurrent changes are never lost. Only objects that the functions can use are
//! written.

mod beside;
mod change;
mod deployed;
mod plan;
mod readdress;
#[cfg(test)]
mod tests;
mod versions;

use std::time::Duration;

use adapters::live_topics::{Location, TopicObjects};
use adapters::machine::Machine;
use adapters::storage::{Fetched, Labels, Replaced, StoredVersion};
use anyhow::{Context as _, bail};
use delivery::ports::Clock as _;
use delivery::subscription::name::TopicName;
use delivery::time::moment;
use delivery::topic_object::{
    Content, DeploymentObject, OBJECT_MAX_BYTES, TOMBSTONE_TAG, tombstone,
};

pub(crate) use self::beside::destinations_of;
pub(crate) use self::change::{Change, Object};
pub(crate) use self::deployed::{Deployed, Wanted, read};
pub(crate) use self::plan::Plan;
use self::readdress::Addresses;
pub(crate) use self::versions::Changes;
use crate::operations::change_record::ChangeRecord;
use crate::operations::shell;
use crate::operations::store;

/// The maximum number of times that a change is repeated after concurrent writes.
const TRIES: u32 = 10;
/// The wait before a change is first repeated. The wait doubles each time.
const WAIT: Duration = Duration::from_millis(20);

/// The stored objects of a deployment's topics.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    pub(crate) objects: TopicObjects,
}

/// The object of a topic as it was read, and its version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Current {
    /// The content; `None` if the object does not exist, or the topic was removed.
    pub(crate) object: Option<Object>,
    /// The ETag of the stored object; `None` if it does not exist.
    pub(crate) etag: Option<String>,
}

/// The result of changing an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Nothing was written, because the object already has the wanted content.
    Nothing,
    /// An object of this size in bytes was written.
    Written(usize),
}

impl Topics {
    /// Opens the topics at this address.
    pub(crate) async fn at(location: &Location) -> Self {
        Self { objects: TopicObjects::below(&store::object(location).await) }
    }

    /// Lists the topics that have an object, including removed topics.
    pub(crate) async fn names(&self) -> anyhow::Result<Vec<TopicName>> {
        let listed = self.objects.all().await;
        let listed = listed.with_context(|| format!("{} cannot be listed", self.objects))?;
        Ok(listed.iter().filter_map(|entry| self.objects.topic_of(&entry.key)).collect())
    }

    /// Reads the object of a topic.
    ///
    /// # Errors
    /// If the object cannot be read or is invalid, because the effect of a change would then be
    /// unknown.
    pub(crate) async fn current(&self, name: &TopicName) -> anyhow::Result<Current> {
        let key = self.objects.key_of(name);
        let fetched = self.objects.get(&key, None).await;
        let problem = || format!("the topic {name} cannot be read");
        let Fetched::Changed { bytes, etag, .. } = fetched.with_context(problem)? else {
            if self.is_lost(&key).await.with_context(problem)? {
                let rollback = shell::command(&["lastmile", "rollback", &name.to_string()]);
                bail!(
                    "the object of {name} was deleted without lastmile; restore it with {rollback}"
                );
            }
            return Ok(Current::default());
        };
        let content = Content::parse(&bytes).with_context(problem)?;
        let object = match content {
            Content::Topic(object) => Some(object.into_owned()),
            Content::Removed(_) => None,
        };
        Ok(Current { object, etag: Some(etag) })
    }

    /// Returns true if the object was deleted without the mark that lastmile writes for a removed
    /// topic. A change would then start from an empty topic, and the deleted entries would be lost.
    async fn is_lost(&self, key: &str) -> anyhow::Result<bool> {
        let max_bytes = OBJECT_MAX_BYTES as u64;
        let versions = self.objects.storage().versions(key).await;
        // Without the list of versions, a deleted object would look as if it had never existed, and
        // the entries of other owners would be lost.
        let versions = versions.context(
            "the object versions cannot be listed, which requires s3:ListBucketVersions and \
             s3:GetObjectVersion",
        )?;
        let Some(newest) = versions.into_iter().find(|version| !version.is_current) else {
            return Ok(false);
        };
        let stored = self.objects.storage().get_version(max_bytes, key, &newest.id).await?;
        let is_mark = |stored: &StoredVersion| {
            matches!(Content::parse(&stored.bytes), Ok(Content::Removed(_)))
        };
        Ok(!stored.as_ref().is_some_and(is_mark))
    }

    /// Reads only the ETag of an invalid object, so that it can be replaced.
    pub(crate) async fn unusable(&self, name: &TopicName) -> anyhow::Result<Current> {
        let fetched = self.objects.get(&self.objects.key_of(name), None).await;
        let fetched = fetched.with_context(|| format!("the topic {name} cannot be read"))?;
        let Fetched::Changed { etag, .. } = fetched else { return Ok(Current::default()) };
        Ok(Current { object: None, etag: Some(etag) })
    }

    /// Reads the object of a topic to which a change is applied.
    async fn newest(&self, name: &TopicName, change: &Change) -> anyhow::Result<Current> {
        match (self.current(name).await, change) {
            // A replacement does not need the content of the object.
            (Err(_), Change::Replace { .. }) => self.unusable(name).await,
            (current, _) => current,
        }
    }

    /// Applies an owner's change to a topic. Starts from `read` if that is still the newest
    /// version; otherwise from the newest version. A second read of a new topic would also list its
    /// versions again, which takes long for many topics.
    ///
    /// # Errors
    /// If an entry belongs to another owner, or the object cannot be read or written.
    pub(crate) async fn change(
        &self,
        name: &TopicName,
        owner: &str,
        change: &Change,
        record: &ChangeRecord,
        mut read: Option<&Current>,
    ) -> anyhow::Result<Changed> {
        let key = self.objects.key_of(name);
        let mut wait = WAIT;
        for _ in 0..TRIES + u32::from(read.is_some()) {
            let current = match read.take() {
                Some(read) => read.clone(),
                None => self.newest(name, change).await?,
            };
            if let Change::Replace { shown, .. } = change
                && *shown != current.etag
            {
                bail!(
                    "the topic {name} was not changed, because another user changed it meanwhile; \
                     run the command again"
                );
            }
            let after = change.made_in(current.object.as_ref(), owner);
            let after = after.with_context(|| format!("the topic {name} was not changed"))?;
            let is_made = after == current.object && !matches!(change, Change::Replace { .. });
            if is_made {
                return Ok(Changed::Nothing);
            }
            let (text, tag) = match &after {
                Some(object) => {
                    (object.to_text().with_context(|| format!("the topic {name}"))?, None)
                }
                None => (tombstone(&moment::rfc3339(Machine.now_ms())), Some(TOMBSTONE_TAG)),
            };
            let bytes = text.len();
            let labels = Labels { metadata: record.metadata(), tag };
            if self.replace(&key, text, current.etag.as_deref(), &labels).await? {
                return Ok(Changed::Written(bytes));
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        bail!(
            "the topic {name} was not changed, because others changed it {TRIES} times meanwhile; \
             run the command again"
        )
    }

    /// Reads a deployment-wide object and its ETag.
    ///
    /// # Errors
    /// If the object cannot be read.
    pub(crate) async fn deployment<T: DeploymentObject>(
        &self,
        name: &str,
    ) -> anyhow::Result<(Option<T>, Option<String>)> {
        let key = self.objects.key(name);
        let fetched = self.objects.get(&key, None).await;
        let problem = || format!("{}{name} cannot be read", self.objects);
        let Fetched::Changed { bytes, etag, .. } = fetched.with_context(problem)? else {
            if self.is_lost(&key).await.with_context(problem)? {
                bail!("{}{name} was deleted: restore its newest version first", self.objects);
            }
            return Ok((None, None));
        };
        let object = T::parse(&bytes).map_err(anyhow::Error::msg).with_context(problem)?;
        Ok((Some(object), Some(etag)))
    }

    /// Changes a deployment-wide object. Writes it if its content changes, or if the functions
    /// require the object and it is missing.
    ///
    /// # Errors
    /// If `change` returns an error, or the object cannot be read or written.
    pub(crate) async fn change_deployment<T: DeploymentObject + PartialEq + Clone>(
        &self,
        name: &str,
        has_to_exist: bool,
        record: &ChangeRecord,
        change: impl Fn(&mut T) -> anyhow::Result<()>,
    ) -> anyhow::Result<Changed> {
        let mut wait = WAIT;
        for _ in 0..TRIES {
            let (current, etag) = self.deployment::<T>(name).await?;
            let before = current.unwrap_or_default();
            let mut after = before.clone();
            change(&mut after)?;
            if after == before && (etag.is_some() || !has_to_exist) {
                return Ok(Changed::Nothing);
            }
            let text = after.to_text();
            let bytes = text.len();
            let labels = Labels { metadata: record.metadata(), tag: None };
            if self.replace(&self.objects.key(name), text, etag.as_deref(), &labels).await? {
                return Ok(Changed::Written(bytes));
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        bail!(
            "{name} was not changed, because others changed it {TRIES} times meanwhile; run the \
             command again"
        )
    }

    /// Writes an object if it is unchanged since it was read. Returns false if another writer has
    /// changed it.
    async fn replace(
        &self,
        key: &str,
        text: String,
        etag: Option<&str>,
        labels: &Labels<'_>,
    ) -> anyhow::Result<bool> {
        let (storage, bytes) = (self.objects.storage(), text.into_bytes());
        let replaced = storage.replace_labelled(key, bytes, etag, labels).await;
        let replaced = replaced.with_context(|| format!("{key} cannot be written"))?;
        Ok(matches!(replaced, Replaced::Written { .. }))
    }
}
