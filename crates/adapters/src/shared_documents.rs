//! Documents that all processes share, near the subscriptions: objects `_destinations/…` of the config
//! bucket, or files of a folder `_destinations`.
//!
//! Separate from consents because these are replaced by whoever read the newest version, and are never
//! cached: the caller decides when to read.

use delivery::ports::{SharedDocument, SharedDocumentError, SharedDocuments};

use crate::storage::{Fetched, Replaced, Storage, StorageError};

/// The shared documents of a deployment, in this storage.
#[derive(Debug)]
pub struct DocumentStore(pub Storage);

impl SharedDocuments for DocumentStore {
    async fn shared(&self, key: &str) -> Result<Option<SharedDocument>, SharedDocumentError> {
        match self.0.get_if_changed(key, None).await {
            Ok(Fetched::Changed { bytes, etag, .. }) => {
                Ok(Some(SharedDocument { bytes, version: etag }))
            }
            // Without a known version nothing is unchanged.
            Ok(Fetched::Missing | Fetched::Unchanged) => Ok(None),
            Err(error) => Err(failure(key, &error)),
        }
    }

    async fn replace_shared(
        &self,
        key: &str,
        bytes: Vec<u8>,
        version: Option<&str>,
    ) -> Result<bool, SharedDocumentError> {
        let replaced = self.0.replace(key, bytes, version).await;
        let replaced = replaced.map_err(|error| failure(key, &error))?;
        Ok(matches!(replaced, Replaced::Written { .. }))
    }
}

fn failure(key: &str, error: &StorageError) -> SharedDocumentError {
    SharedDocumentError { key: key.to_owned(), problem: error.to_string() }
}
