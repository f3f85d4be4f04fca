//! Earlier versions of an object, for a process that starts when the newest one cannot be used.

use super::objects::TopicObjects;

/// The most earlier versions that are tried.
const VERSIONS_TRIED: usize = 5;

/// The result of a look at earlier versions.
pub(super) enum Earlier<T> {
    /// The newest that can be used.
    Version(T),
    /// There are some, and none of the newest can be used.
    NoneUsable,
    /// There are none.
    None,
}

/// The newest earlier version of an object that can be used. `request` gets the id of a version; its answer is `None` if
/// that version cannot be used.
///
/// # Errors
/// The reason why a version cannot be requested. It may be the right one, so no earlier one takes its place.
pub(super) async fn newest_usable<T, Requesting: Future<Output = Result<Option<T>, String>>>(
    objects: &TopicObjects,
    key: &str,
    request: impl Fn(String) -> Requesting,
) -> Result<Earlier<T>, String> {
    let versions = objects.storage().versions(key).await;
    let versions = versions.map_err(|error| format!("its versions cannot be listed: {error}"))?;
    let mut earlier = versions.into_iter().filter(|version| !version.is_current).peekable();
    if earlier.peek().is_none() {
        return Ok(Earlier::None);
    }
    for version in earlier.take(VERSIONS_TRIED) {
        let found = request(version.id).await;
        let found = found.map_err(|why| format!("no earlier version can be read: {why}"))?;
        let Some(found) = found else { continue };
        let of = version.description;
        tracing::warn!(object = key, version = of, "subscriptions.earlier_version_used");
        return Ok(Earlier::Version(found));
    }
    Ok(Earlier::NoneUsable)
}
