//! Finds an earlier version of an object, for a process that starts while the newest version is
//! unusable.

use super::objects::TopicObjects;

/// Maximum number of earlier versions that are tried.
const VERSIONS_TRIED: usize = 5;

/// The result of searching for an earlier version.
pub(super) enum Earlier<T> {
    /// The newest usable earlier version.
    Version(T),
    /// The object has earlier versions, but the newest [`VERSIONS_TRIED`] of them are unusable.
    NoneUsable,
    /// The object has no earlier versions.
    None,
}

/// Returns the newest usable earlier version of an object. `request` receives the id of a version,
/// and returns `None` if that version is unusable.
///
/// # Errors
/// Fails if a version cannot be requested. This version may be usable, so no older one replaces it.
pub(super) async fn newest_usable<T, Requesting: Future<Output = Result<Option<T>, String>>>(
    objects: &TopicObjects,
    key: &str,
    request: impl Fn(String) -> Requesting,
) -> Result<Earlier<T>, String> {
    let versions = objects.storage().versions(key).await;
    let versions =
        versions.map_err(|error| format!("the object versions cannot be listed: {error}"))?;
    let mut earlier = versions.into_iter().filter(|version| !version.is_current).peekable();
    if earlier.peek().is_none() {
        return Ok(Earlier::None);
    }
    for version in earlier.take(VERSIONS_TRIED) {
        let found = request(version.id).await;
        let found = found.map_err(|why| format!("an earlier version cannot be read: {why}"))?;
        let Some(found) = found else { continue };
        let description = version.description;
        tracing::warn!(object = key, version = description, "subscriptions.earlier_version_used");
        return Ok(Earlier::Version(found));
    }
    Ok(Earlier::NoneUsable)
}
