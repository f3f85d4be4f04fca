//! Finds alternatives for a search without a result: other containers, and existing names.
//!
//! Separate from the search because only an empty result needs these requests.
//!
//! Promises: [`DeadLetters::nearby`] makes one request, and [`DeadLetters::missing_name`] at most
//! [`LISTINGS_MAX`] for each level of names. Neither reads a blob.

use std::collections::BTreeSet;

use adapters::storage::ListRequest;
use delivery::document::hint::sort_nearest_first;
use delivery::subscription::name::name_of_segment;
use futures::future::try_join_all;

use crate::dead_letters::DeadLetters;
use crate::filter::Filter;
use crate::key::{NAME_FOLDERS, RESERVED_FOLDERS, hour_of_key};

/// Maximum number of folders that are listed for one level of names.
pub(crate) const LISTINGS_MAX: usize = 20;

/// The words for the levels of names in messages, from the outermost level.
const LEVELS: [&str; NAME_FOLDERS] = ["namespace", "topic", "subscription"];

/// A name without dead letters, and similar names with dead letters.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingName {
    /// The level of the name: `namespace`, `topic` or `subscription`.
    pub level: &'static str,
    /// The name that the filter contains.
    pub wanted: String,
    /// The names of this level that exist, the most similar first; at least one.
    pub existing: Vec<String>,
}

impl DeadLetters {
    /// Returns nearby containers with dead letters: one folder below this container, or up to three
    /// folders above it. Returns an empty list if this container has dead letters.
    ///
    /// # Errors
    /// Fails if the container cannot be listed.
    pub async fn nearby(&self) -> anyhow::Result<Vec<String>> {
        let root = self.container.root();
        let request = ListRequest { prefix: root.clone(), ..ListRequest::default() };
        let page = self.container.page(&request).await?;
        let keys = page.entries.iter().filter_map(|entry| entry.key.strip_prefix(&root));
        Ok(containers_of(&self.container.name, &keys.collect::<Vec<_>>()))
    }

    /// Returns the first name in a filter for which the container has no folder. Returns `None` if
    /// all names have folders, or if there are no folders or too many to list.
    ///
    /// # Errors
    /// Fails if the container cannot be listed.
    pub async fn missing_name(&self, filter: &Filter) -> anyhow::Result<Option<MissingName>> {
        let wanted = [&filter.namespace, &filter.topic, &filter.subscription];
        let Some(last) = wanted.iter().rposition(|name| name.is_some()) else { return Ok(None) };
        let mut parents = vec![self.container.root()];
        for (wanted, level) in wanted.into_iter().zip(LEVELS).take(last + 1) {
            let Some(folders) = self.folders(&parents).await? else { return Ok(None) };
            let Some(wanted) = wanted else {
                parents = folders;
                continue;
            };
            parents = folders
                .iter()
                .filter(|folder| name_of_folder(folder) == *wanted)
                .cloned()
                .collect();
            if parents.is_empty() {
                let existing: BTreeSet<String> =
                    folders.iter().map(|folder| name_of_folder(folder)).collect();
                let mut existing: Vec<String> = existing.into_iter().collect();
                sort_nearest_first(wanted, &mut existing);
                let missing = MissingName { level, wanted: wanted.clone(), existing };
                return Ok(Some(missing).filter(|missing| !missing.existing.is_empty()));
            }
        }
        Ok(None)
    }

    /// Lists the subfolders of `parents`. Omits the folders of ledgers and dismissals. Returns
    /// `None` if there are too many folders to list.
    async fn folders(&self, parents: &[String]) -> anyhow::Result<Option<Vec<String>>> {
        let root = self.container.root();
        let list = |prefix: &String| {
            let request =
                ListRequest { prefix: prefix.clone(), by_folder: true, ..ListRequest::default() };
            async move { self.container.page(&request).await }
        };
        let pages = try_join_all(parents.iter().take(LISTINGS_MAX).map(list)).await?;
        if parents.len() > LISTINGS_MAX || pages.iter().any(|page| page.next.is_some()) {
            return Ok(None);
        }
        let is_reserved = |folder: &String| {
            let path = folder.strip_prefix(&root).unwrap_or(folder);
            RESERVED_FOLDERS.contains(&path.trim_end_matches('/'))
        };
        let folders = pages.into_iter().flat_map(|page| page.folders);
        Ok(Some(folders.filter(|folder| !is_reserved(folder)).collect()))
    }
}

/// Returns the name that the last folder of a path encodes.
fn name_of_folder(folder: &str) -> String {
    let path = folder.trim_end_matches('/');
    name_of_segment(path.rsplit('/').next().unwrap_or(path))
}

/// Returns the containers, below or above this one, in which these keys would be keys of dead
/// letters. Returns an empty list if this container already has keys of dead letters.
fn containers_of(name: &str, keys: &[&str]) -> Vec<String> {
    let is_letter = |key: &str| hour_of_key(key, "").is_some();
    if keys.iter().any(|key| is_letter(key)) {
        return Vec::new();
    }
    let below = keys.iter().filter_map(|key| key.split_once('/'));
    let below = below.filter(|(_, rest)| is_letter(rest)).map(|(first, _)| first);
    let mut found: BTreeSet<String> =
        below.map(|folder| format!("{}/{folder}", name.trim_end_matches('/'))).collect();
    let mut above = (name.to_owned(), String::new());
    for _ in 0..NAME_FOLDERS {
        let Some((parent, folder)) = parent(&above.0) else { break };
        above = (parent, format!("{folder}/{}", above.1));
        if keys.iter().any(|key| is_letter(&format!("{}{key}", above.1))) {
            found.insert(above.0.clone());
        }
    }
    found.into_iter().collect()
}

/// Returns the parent of a container, and the last segment of the container's path.
fn parent(name: &str) -> Option<(String, String)> {
    let (scheme, path) = match name.strip_prefix("s3://") {
        Some(path) => ("s3://", path),
        None => ("", name),
    };
    let (parent, folder) = match path.rsplit_once('/') {
        Some(parts) => parts,
        None if scheme.is_empty() => (".", path),
        // A bucket has no parent.
        None => return None,
    };
    let is_name = !matches!(folder, "" | "." | "..") && !parent.is_empty();
    is_name.then(|| (format!("{scheme}{parent}"), folder.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::DeadLetterContainer;

    const KEY: &str = "shop/orders/billing/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";

    fn letters(keys: &[&str]) -> (tempfile::TempDir, DeadLetters) {
        let folder = tempfile::tempdir().unwrap();
        for key in keys {
            let path = folder.path().join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{}").unwrap();
        }
        let container = DeadLetterContainer::folder(&folder.path().display().to_string()).unwrap();
        (folder, DeadLetters::new(container))
    }

    #[test]
    fn a_container_that_is_one_level_off_is_told_by_the_keys_in_it() {
        let (_, above) = KEY.split_once('/').unwrap();
        let (_, two_above) = above.split_once('/').unwrap();
        for (name, key, expected) in [
            ("s3://bucket", format!("letters/{KEY}"), &["s3://bucket/letters"][..]),
            ("s3://bucket/letters/shop", above.to_owned(), &["s3://bucket/letters"]),
            ("s3://bucket/shop", above.to_owned(), &["s3://bucket"]),
            ("s3://bucket", above.to_owned(), &[]),
            ("data/shop/orders", two_above.to_owned(), &["data"]),
            ("shop", above.to_owned(), &["."]),
            ("..", above.to_owned(), &[]),
            ("s3://bucket", format!("a/b/{KEY}"), &[]),
            ("s3://bucket", KEY.to_owned(), &[]),
            ("s3://bucket", "_replays/1.ndjson".to_owned(), &[]),
        ] {
            assert_eq!(containers_of(name, &[&key]), expected, "{name} {key}");
        }
    }

    #[tokio::test]
    async fn a_container_is_found_with_one_request() {
        let (folder, letters) = letters(&[&format!("letters/{KEY}")]);
        let expected = format!("{}/letters", folder.path().display());
        assert_eq!(letters.nearby().await.unwrap(), [expected]);
        assert_eq!(letters.container.requests(), 1);
    }

    #[tokio::test]
    async fn the_names_instead_of_a_missing_one_are_those_of_its_level() {
        let filter_for =
            |namespace: Option<&str>, topic: Option<&str>, subscription: Option<&str>| {
                let [namespace, topic, subscription] =
                    [namespace, topic, subscription].map(|name| name.map(ToOwned::to_owned));
                Filter { namespace, topic, subscription, ..Filter::default() }
            };
        let other = KEY.replace("shop/orders/billing", "shop/refunds/mail%20er");
        let third = KEY.replace("shop/orders/billing", "crm/leads/sync");
        let (_folder, letters) = letters(&[KEY, &other, &third, "_replays/x/1.ndjson"]);
        for (filter, expected) in [
            (filter_for(Some("shpo"), None, None), Some(("namespace", "shop, crm"))),
            (filter_for(Some("shop"), Some("order"), None), Some(("topic", "orders, refunds"))),
            (filter_for(None, Some("order"), None), Some(("topic", "orders, leads, refunds"))),
            (
                filter_for(None, None, Some("mailer")),
                Some(("subscription", "mail er, billing, sync")),
            ),
            (filter_for(None, Some("refunds"), Some("mail er")), None),
            (filter_for(None, None, None), None),
        ] {
            let missing = letters.missing_name(&filter).await.unwrap();
            let shown = missing.as_ref().map(|name| (name.level, name.existing.join(", ")));
            let shown = shown.as_ref().map(|(level, names)| (*level, names.as_str()));
            assert_eq!(shown, expected, "{filter:?}");
        }
    }
}
