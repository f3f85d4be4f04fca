//! One object of a storage, named by `s3://bucket/key` or by a path.

use std::fmt;
use std::path::Path;

use aws_sdk_s3::Client;

use super::Storage;

/// One object of a storage.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// The bucket or folder that contains it.
    pub storage: Storage,
    /// The key in this storage.
    pub key: String,
}

impl StoredObject {
    /// Names an object of a bucket.
    #[must_use]
    pub fn in_bucket(client: Client, bucket: &str, key: &str) -> Self {
        Self { storage: Storage::bucket(client, bucket), key: key.to_owned() }
    }

    /// Names a file. A path without a file name, such as `/`, has no valid key: every operation
    /// fails.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let key = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Self {
            storage: Storage::folder(path.parent().unwrap_or(Path::new("/"))),
            key: key.to_owned(),
        }
    }
}

/// `s3://bucket/key`, or the file's path.
impl fmt::Display for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.storage {
            Storage::Bucket(bucket) => write!(f, "{bucket}/{}", self.key),
            Storage::Folder(folder) => folder.root.join(&self.key).display().fmt(f),
        }
    }
}
