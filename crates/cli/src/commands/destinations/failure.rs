//! What storage did not do, for people: which object, why, and which permission it takes.

use adapters::storage::{Storage, StorageError, StoredObject};
use anyhow::anyhow;

/// What was to be done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Read,
    Write,
    List,
}

/// The error of a command, from that of storage.
pub(super) fn failure(doing: Doing, object: &StoredObject, error: &StorageError) -> anyhow::Error {
    let cannot = match doing {
        Doing::Read => format!("{object} cannot be read"),
        Doing::Write => format!("{object} cannot be written"),
        Doing::List => format!("{object} cannot be listed"),
    };
    match error {
        StorageError::NoSuchBucket(_) => {
            anyhow!("{cannot}: the bucket {} does not exist", object.storage)
        }
        StorageError::Refused(why) if why.starts_with("AccessDenied") => {
            anyhow!("{cannot}: {why}; {}", needed(doing, object))
        }
        StorageError::TooLarge { .. } => anyhow!(error.to_string()).context(cannot),
        StorageError::Refused(why) | StorageError::Unavailable(why) => {
            anyhow!(why.clone()).context(cannot)
        }
        StorageError::InvalidKey(_) => anyhow!("{cannot}: {error}"),
    }
}

/// The permissions that it takes.
fn needed(doing: Doing, object: &StoredObject) -> String {
    let storage = &object.storage;
    match (storage, doing) {
        (Storage::Folder(_), _) => "see its permissions".to_owned(),
        // S3 refuses to say that an object does not exist to those who may not list the bucket.
        (Storage::Bucket(_), Doing::Read) => format!(
            "it takes s3:GetObject on it and, as it may not exist, s3:ListBucket on {storage}"
        ),
        (Storage::Bucket(_), Doing::Write) => "it takes s3:PutObject on it".to_owned(),
        (Storage::Bucket(_), Doing::List) => format!("it takes s3:ListBucket on {storage}"),
    }
}
