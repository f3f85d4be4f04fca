//! One object of a storage, named by `s3://bucket/key` or by a path.

use std::fmt;
use std::path::Path;

use aws_sdk_s3::Client;

use super::Storage;

/// A storage and the key of one object in it.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// The bucket or folder that contains the object.
    pub storage: Storage,
    /// The key of the object in the storage.
    pub key: String,
}

impl StoredObject {
    /// Returns the location of an object in a bucket.
    #[must_use]
    pub fn in_bucket(client: Client, bucket: &str, key: &str) -> Self {
        Self { storage: Storage::bucket(client, bucket), key: key.to_owned() }
    }

    /// Returns the location of a file. A path without a file name, such as `/`, has no valid key,
    /// so every operation fails.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let key = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Self {
            storage: Storage::folder(path.parent().unwrap_or(Path::new("/"))),
            key: key.to_owned(),
        }
    }
}

/// Formats the object as `s3://bucket/key`, or as the file's path.
impl fmt::Display for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.storage {
            Storage::Bucket(bucket) => write!(f, "{bucket}/{}", self.key),
            Storage::Folder(folder) => folder.root.join(&self.key).display().fmt(f),
        }
    }
}
