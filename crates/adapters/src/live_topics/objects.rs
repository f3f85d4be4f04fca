//! The objects of a deployment's subscriptions, in a bucket or a folder, and their keys.
//!
//! `<namespace>/<topic>.json` contains a topic. Keys that begin with `_` belong to the deployment;
//! no namespace begins with `_`.

use std::fmt;

use delivery::subscription::name::{RESERVED, TopicName, is_name, segment};
use delivery::topic_object::OBJECT_MAX_BYTES;
use percent_encoding::percent_decode_str;

use crate::storage::{
    Entry, Fetched, ListRequest, Page, Storage, StorageError, StoredObject, StoredVersion,
};

/// Name of the object with the deployment's policies. Its presence shows that the deployment is set
/// up.
pub const SETTINGS: &str = "_settings.json";
/// Name of the object with the publishers of each topic.
pub const PUBLISHERS: &str = "_publishers.json";
/// Prefix of the objects with mapped addresses, one object for each owner.
pub const DESTINATIONS: &str = "_destinations/";
/// Suffix of every key.
const SUFFIX: &str = ".json";

/// The subscription objects under one prefix of a storage.
#[derive(Debug, Clone)]
pub struct TopicObjects {
    pub(super) storage: Storage,
    /// Prefix of all keys. It ends in a slash, or is empty.
    prefix: String,
}

impl TopicObjects {
    /// Returns the objects under the key of `folder`, with the key as their prefix.
    #[must_use]
    pub fn below(folder: &StoredObject) -> Self {
        let prefix = match folder.key.trim_end_matches('/') {
            "" => String::new(),
            key => format!("{key}/"),
        };
        Self { storage: folder.storage.clone(), prefix }
    }

    /// Returns the storage of the objects.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the key of the object with this name.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns the key of the object of a topic.
    #[must_use]
    pub fn key_of(&self, topic: &TopicName) -> String {
        let [namespace, topic] = [&topic.namespace, &topic.topic].map(|part| segment(part));
        self.key(&format!("{namespace}/{topic}{SUFFIX}"))
    }

    /// Returns the topic whose object has this key; `None` if the key is not that of a topic.
    #[must_use]
    pub fn topic_of(&self, key: &str) -> Option<TopicName> {
        let name = key.strip_prefix(&self.prefix)?.strip_suffix(SUFFIX)?;
        let (namespace, topic) = name.split_once('/')?;
        let decoded = |part: &str| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned());
        let name = TopicName { namespace: decoded(namespace)?, topic: decoded(topic)? };
        // Ignore other spellings of a name, because they are other keys, which no code reads.
        let is_topic = can_exist(&name) && self.key_of(&name) == key;
        is_topic.then_some(name)
    }

    /// Reads an object, unless it still has the ETag `known_etag`.
    ///
    /// # Errors
    /// [`StorageError`] if the object cannot be read, or exceeds the size limit.
    pub async fn get(&self, key: &str, known_etag: Option<&str>) -> Result<Fetched, StorageError> {
        self.get_at_most(OBJECT_MAX_BYTES as u64, key, known_etag).await
    }

    /// Reads an object as [`Self::get`] does, but with the size limit `max_bytes`.
    pub(super) async fn get_at_most(
        &self,
        max_bytes: u64,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        self.storage.get_at_most(max_bytes, key, known_etag).await
    }

    /// Reads an earlier version of an object; returns `None` if the version no longer exists.
    pub(super) async fn version(
        &self,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredVersion>, StorageError> {
        self.storage.get_version(OBJECT_MAX_BYTES as u64, key, id).await
    }

    /// Lists the next page of all objects, after the key `after`.
    ///
    /// # Errors
    /// [`StorageError`] if the objects cannot be listed.
    pub async fn page(&self, after: Option<&str>) -> Result<Page, StorageError> {
        let start_after = after.map(str::to_owned);
        let request =
            ListRequest { prefix: self.prefix.clone(), start_after, ..ListRequest::default() };
        self.storage.list_page(&request).await
    }

    /// Returns the owners of mapped addresses. Each owner has an object.
    ///
    /// # Errors
    /// [`StorageError`] if the objects cannot be listed.
    pub async fn owners_of_destinations(&self) -> Result<Vec<String>, StorageError> {
        let prefix = self.key(DESTINATIONS);
        let (mut owners, mut page_token) = (Vec::new(), None);
        loop {
            let request =
                ListRequest { prefix: prefix.clone(), page_token, ..ListRequest::default() };
            let page = self.storage.list_page(&request).await?;
            owners.extend(page.entries.iter().filter_map(|entry| {
                let owner = entry.key.strip_prefix(&prefix)?.strip_suffix(SUFFIX)?;
                Some(percent_decode_str(owner).decode_utf8().ok()?.into_owned())
            }));
            page_token = page.next;
            if page_token.is_none() {
                return Ok(owners);
            }
        }
    }

    /// Lists all objects, page by page.
    ///
    /// # Errors
    /// [`StorageError`] if the objects cannot be listed.
    pub async fn all(&self) -> Result<Vec<Entry>, StorageError> {
        let (mut entries, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self.page(after.as_deref()).await?;
            entries.extend(page.entries);
            if page.next.is_none() {
                return Ok(entries);
            }
            after = entries.last().map(|entry: &Entry| entry.key.clone());
        }
    }
}

/// True if a topic with this name can have an object.
#[must_use]
pub fn can_exist(TopicName { namespace, topic }: &TopicName) -> bool {
    is_name(namespace) && is_name(topic) && !namespace.starts_with(RESERVED)
}

/// Formats the address of the folder: the storage, followed by the prefix.
impl fmt::Display for TopicObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.storage, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_topic_names_it_and_no_other_key_does() {
        let folder =
            StoredObject { storage: Storage::folder("/x"), key: "subscriptions/".to_owned() };
        let objects = TopicObjects::below(&folder);
        for (name, key) in [
            ("shop/orders", "subscriptions/shop/orders.json"),
            ("a b/ö.json", "subscriptions/a%20b/%C3%B6.json.json"),
        ] {
            let name: TopicName = name.parse().expect("a topic");
            assert_eq!(objects.key_of(&name), key);
            assert_eq!(objects.topic_of(key), Some(name));
        }
        for key in [
            "subscriptions/_settings.json",
            "subscriptions/_destinations/files.json",
            "subscriptions/shop/orders",
            "subscriptions/shop/a/b.json",
            "subscriptions/shop/%6Frders.json",
            "other/shop/orders.json",
        ] {
            assert_eq!(objects.topic_of(key), None, "{key}");
        }
    }
}
