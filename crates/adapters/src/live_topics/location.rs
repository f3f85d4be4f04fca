//! The location of a deployment's subscriptions: a prefix of a bucket, or a local folder.

use std::path::PathBuf;

use aws_sdk_s3::Client;

use crate::storage::StoredObject;

/// The location of a deployment's subscription objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A prefix in an S3 bucket.
    Bucket {
        /// The name of the bucket.
        name: String,
        /// The prefix of the keys, which ends in a slash.
        prefix: String,
    },
}

impl Location {
    /// Parses `s3://bucket/prefix/` or `file:///folder/`.
    ///
    /// # Errors
    /// Fails if the URI has a different form; the message shows the expected form.
    pub fn parse(uri: &str) -> Result<Self, String> {
        if let Some(path) = uri.strip_prefix("file://").filter(|path| path.starts_with('/')) {
            return Ok(Self::Folder(path.into()));
        }
        let rest = uri.strip_prefix("s3://").filter(|rest| rest.ends_with('/'));
        match rest.and_then(|rest| rest.split_once('/')) {
            Some((bucket, prefix)) if !bucket.is_empty() && !prefix.is_empty() => {
                Ok(Self::Bucket { name: bucket.to_owned(), prefix: prefix.to_owned() })
            }
            _ => Err(format!(
                "\"{uri}\" is not a location of subscriptions: expected s3://bucket/prefix/ or \
                 file:///folder/"
            )),
        }
    }

    /// Returns the location as a stored object. The client is used only for a bucket.
    #[must_use]
    pub fn folder(&self, client: Client) -> StoredObject {
        match self {
            Self::Folder(path) => StoredObject::file(path),
            Self::Bucket { name, prefix } => StoredObject::in_bucket(client, name, prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_folder_or_a_prefix() {
        assert_eq!(Location::parse("file:///a/b/"), Ok(Location::Folder("/a/b/".into())));
        let bucket = Location::Bucket { name: "b".to_owned(), prefix: "a/c/".to_owned() };
        assert_eq!(Location::parse("s3://b/a/c/"), Ok(bucket));
        for uri in ["", "file://a", "s3://b", "s3://b/", "s3:///k/", "s3://b/k.yaml", "https://x/y"]
        {
            assert!(Location::parse(uri).is_err(), "{uri}");
        }
    }
}
