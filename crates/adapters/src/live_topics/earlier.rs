//! Earlier versions of an object, for a process that starts when the newest one cannot be used.

use delivery::topic_object::OBJECT_MAX_BYTES;

use super::objects::TopicObjects;
use crate::storage::{StorageError, StoredVersion, Version};

/// The most earlier versions that are tried.
const VERSIONS_TRIED: usize = 5;

/// The result of a look at earlier versions.
pub(super) enum Earlier<T> {
    /// The newest that can be used, and its size.
    Version(T, usize),
    /// There are some, and none of the newest can be used.
    NoneUsable,
    /// There are none.
    None,
}

/// The earlier versions of an object, the newest first.
///
/// # Errors
/// [`StorageError`] if they cannot be listed.
pub(super) async fn versions(
    objects: &TopicObjects,
    key: &str,
) -> Result<Vec<Version>, StorageError> {
    let versions = objects.storage().versions(key).await?;
    Ok(versions.into_iter().filter(|version| !version.is_current).collect())
}

/// The newest of these versions that can be used.
///
/// # Errors
/// [`StorageError`] if one cannot be reached: it may be the newest that can be used.
pub(super) async fn newest_usable<T, Parsing: Future<Output = Option<T>>>(
    objects: &TopicObjects,
    key: &str,
    versions: Vec<Version>,
    parse: impl Fn(Vec<u8>) -> Parsing,
) -> Result<Earlier<T>, StorageError> {
    if versions.is_empty() {
        return Ok(Earlier::None);
    }
    for version in versions.into_iter().take(VERSIONS_TRIED) {
        let max_bytes = OBJECT_MAX_BYTES as u64;
        let stored = match objects.storage().get_version(max_bytes, key, &version.id).await {
            Ok(stored) => stored,
            Err(StorageError::TooLarge { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Some(StoredVersion { bytes, .. }) = stored else { continue };
        let size = bytes.len();
        let Some(found) = parse(bytes).await else { continue };
        let of = version.description;
        tracing::warn!(object = key, version = of, "subscriptions.earlier_version_used");
        return Ok(Earlier::Version(found, size));
    }
    Ok(Earlier::NoneUsable)
}
