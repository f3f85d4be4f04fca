//! Blobs in S3, in any bucket that a dead letter names.
//!
//! Separate from [`crate::storage`], which knows one bucket: here the bucket comes with each call,
//! and the errors are those of the port.

use aws_sdk_s3::Client;
use delivery::ports::{BlobName, PutBlob, PutError, ReadBlobs, ReadError};
use delivery::subscription::sink::Container;

use crate::storage::{ContentType, ListRequest, Storage, StorageError};

/// Blobs in S3.
#[derive(Debug, Clone)]
pub struct S3Blobs {
    client: Client,
}

impl S3Blobs {
    /// Blobs reached through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn bucket(&self, name: &str) -> Storage {
        Storage::bucket(self.client.clone(), name)
    }
}

impl PutBlob for S3Blobs {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), PutError> {
        match self.bucket(bucket).put_if_absent(key, bytes, ContentType::Json).await {
            Ok(_) => Ok(()),
            Err(error @ (StorageError::NoSuchBucket(_) | StorageError::Refused(_))) => {
                Err(PutError::NoSuchContainer(error.to_string()))
            }
            Err(error @ (StorageError::InvalidKey(_) | StorageError::Unavailable(_))) => {
                Err(PutError::Refused(error.to_string()))
            }
        }
    }
}

impl ReadBlobs for S3Blobs {
    async fn list(&self, container: &Container) -> Result<Vec<BlobName>, ReadError> {
        let all = ListRequest { prefix: container.prefix.clone(), ..ListRequest::default() };
        match self.bucket(&container.bucket).list_all(all).await {
            Ok(page) => {
                let entries = page.entries.into_iter();
                Ok(entries.map(|entry| BlobName { key: entry.key, bytes: entry.bytes }).collect())
            }
            Err(error) => Err(ReadError(error.to_string())),
        }
    }

    async fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, ReadError> {
        match self.bucket(bucket).get(key).await {
            Err(StorageError::NoSuchBucket(_)) => Ok(None),
            result => result.map_err(|error| ReadError(error.to_string())),
        }
    }
}
