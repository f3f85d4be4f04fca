//! The storage of a catalogue: the objects of a bucket or folder whose keys begin with its prefix.

use catalogue::{Fetched, Listed, OBJECT_MAX_BYTES, Objects, StoreError};
use percent_encoding::percent_decode_str;

use crate::storage::{self, ListRequest, Replaced, Storage, StorageError, StoredObject};

/// The objects of one catalogue.
#[derive(Debug, Clone)]
pub struct CatalogueObjects {
    storage: Storage,
    /// With a slash at its end.
    prefix: String,
}

impl CatalogueObjects {
    /// Those below this object's key, as if it were a folder.
    #[must_use]
    pub fn below(folder: &StoredObject) -> Self {
        let prefix = format!("{}/", folder.key.trim_end_matches('/'));
        Self { storage: folder.storage.clone(), prefix }
    }

    /// The namespaces that have objects, by name.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn namespaces(&self) -> Result<Vec<String>, StorageError> {
        let prefix = self.key("namespaces/");
        let (mut names, mut page_token) = (Vec::new(), None);
        loop {
            let request = ListRequest {
                prefix: prefix.clone(),
                by_folder: true,
                page_token,
                ..ListRequest::default()
            };
            let page = self.storage.list_page(&request).await?;
            names.extend(page.folders.iter().filter_map(|folder| {
                let segment = folder.strip_prefix(&prefix)?.strip_suffix('/')?;
                Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned())
            }));
            page_token = page.next;
            if page_token.is_none() {
                return Ok(names);
            }
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

fn failure(error: StorageError) -> StoreError {
    StoreError(error.to_string())
}

impl Objects for CatalogueObjects {
    async fn get(&self, key: &str, known_etag: Option<&str>) -> Result<Fetched, StoreError> {
        let key = self.key(key);
        let fetched = self.storage.get_at_most(OBJECT_MAX_BYTES, &key, known_etag).await;
        Ok(match fetched.map_err(failure)? {
            storage::Fetched::Missing => Fetched::Missing,
            storage::Fetched::Unchanged => Fetched::Unchanged,
            storage::Fetched::Changed { bytes, etag, .. } => Fetched::Changed { bytes, etag },
        })
    }

    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.storage.put(&self.key(key), bytes).await.map_err(failure)
    }

    async fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
    ) -> Result<bool, StoreError> {
        let replaced = self.storage.replace(&self.key(key), bytes, known_etag).await;
        Ok(matches!(replaced.map_err(failure)?, Replaced::Written { .. }))
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Listed>, StoreError> {
        let request = ListRequest {
            prefix: self.key(prefix),
            start_after: after.map(|after| self.key(after)),
            ..ListRequest::default()
        };
        let page = self.storage.list_page(&request).await.map_err(failure)?;
        let listed = page.entries.into_iter().filter_map(|entry| {
            let key = entry.key.strip_prefix(&self.prefix)?.to_owned();
            Some(Listed { key, modified_ms: entry.modified_ms })
        });
        Ok(listed.collect())
    }

    async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        let keys: Vec<String> = keys.iter().map(|key| self.key(key)).collect();
        self.storage.delete(&keys).await.map_err(failure)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::path::Path;

    use catalogue::{Changes, Namespace, Snapshot};

    use super::*;
    use crate::machine::Machine;

    /// A catalogue in this folder.
    pub(in super::super) fn in_folder(folder: &Path) -> CatalogueObjects {
        let (storage, key) = (Storage::folder(folder), "catalogue".to_owned());
        CatalogueObjects::below(&StoredObject { storage, key })
    }

    /// The snapshot of a namespace to which this entry was added.
    pub(in super::super) async fn with_entry(
        namespace: &Namespace<'_, CatalogueObjects>,
        (key, value): (String, String),
    ) -> Snapshot {
        let mut changes = Changes::default();
        changes.put(key, value);
        let change = |_| ready(Ok::<_, Infallible>(changes.clone()));
        namespace.commit(&Machine, "test", change).await.expect("a commit");
        namespace.load(None).await.expect("a pointer").expect("a snapshot")
    }
}
