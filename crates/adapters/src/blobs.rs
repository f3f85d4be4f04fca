//! Writes blobs to S3, to any bucket that a dead letter names.
//!
//! Separate from [`crate::storage`], which works on one bucket and has its own errors. Here each
//! call names a bucket, and errors become a [`PutError`].

use aws_sdk_s3::Client;
use delivery::ports::{BlobTag, PutBlob, PutError};

use crate::storage::{Storage, StorageError};

/// Writes blobs to S3 with the client.
#[derive(Debug, Clone)]
pub struct S3Blobs(pub Client);

impl PutBlob for S3Blobs {
    async fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<BlobTag>,
    ) -> Result<(), PutError> {
        let storage = Storage::bucket(self.0.clone(), bucket);
        match storage.put_if_absent(key, bytes, tag.map(tagging)).await {
            Ok(_) => Ok(()),
            Err(error @ (StorageError::NoSuchBucket(_) | StorageError::Refused(_))) => {
                Err(PutError::Permanent(error.to_string()))
            }
            Err(
                error @ (StorageError::InvalidKey(_)
                | StorageError::Unavailable(_)
                | StorageError::TooLarge { .. }),
            ) => Err(PutError::Unavailable(error.to_string())),
        }
    }
}

/// Returns the tag of a blob in query form, such as `kind=dead-letter`. The lifecycle rules of
/// `template.yaml` select objects by this tag.
#[must_use]
pub const fn tagging(tag: BlobTag) -> &'static str {
    match tag {
        BlobTag::DeadLetter => "kind=dead-letter",
        BlobTag::SetAside => "kind=set-aside",
    }
}
