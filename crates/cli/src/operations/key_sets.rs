//! Publishes the public keys of subscriptions as JSON Web Key Sets, in a separate bucket. Receivers
//! use the keys to verify asymmetric signatures.
//!
//! The bucket is separate because anyone may read it, but only the functions may read the bucket of
//! subscriptions. A key set is written before the subscription that uses it, so that receivers find
//! the key of every signature. If a subscription no longer has keys, an empty set is written after
//! the subscription. The module reads no secrets: the subscription files contain the public keys.

use std::collections::BTreeMap;
use std::path::PathBuf;

use adapters::storage::Storage;
use anyhow::Context as _;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::public_key::{PublicKey, key_set, key_set_path};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::operations::store::client;
use crate::terminal::output::{note, out};
use crate::terminal::text;

/// The maximum number of key sets that are read or written concurrently.
const SETS_AT_ONCE: usize = 16;

/// The public keys of each subscription that has any.
type Keys<'a> = BTreeMap<&'a SubscriptionName, &'a [PublicKey]>;

/// The option that names the bucket of public keys.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PublicKeys {
    /// Bucket with the public keys of subscriptions, for receivers: s3://bucket or file:///folder/
    #[arg(long = "public-keys", value_name = "URI", value_parser = Place::parse)]
    place: Option<Place>,
}

/// The storage of key sets: a bucket, or a local folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Bucket(String),
    Folder(PathBuf),
}

/// The key sets to write: those that the bucket lacks, or stores with other keys.
pub(crate) struct ChangedSets<'a> {
    storage: Option<Storage>,
    sets: Keys<'a>,
}

/// Returns the public keys of the subscriptions in a catalogue. Omits subscriptions without keys.
fn keys(catalogue: &Catalogue) -> Keys<'_> {
    let all = catalogue.subscriptions();
    let all = all.map(|each| (&each.name, each.destination.public_keys()));
    all.filter(|(_, keys)| !keys.is_empty()).collect()
}

impl Place {
    fn parse(uri: &str) -> Result<Self, String> {
        if let Some(path) = uri.strip_prefix("file://").filter(|path| path.starts_with('/')) {
            return Ok(Self::Folder(path.into()));
        }
        let bucket = uri.strip_prefix("s3://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        match bucket.filter(|bucket| !bucket.is_empty() && !bucket.contains('/')) {
            Some(bucket) => Ok(Self::Bucket(bucket.to_owned())),
            None => {
                Err("expected a bucket without a prefix, s3://bucket, or file:///folder/"
                    .to_owned())
            }
        }
    }

    async fn storage(&self) -> Storage {
        match self {
            Self::Bucket(name) => Storage::bucket(client().await, name),
            Self::Folder(path) => Storage::folder(path),
        }
    }
}

impl PublicKeys {
    /// Compares the stored key sets with the public keys of the changed topics and of the files.
    /// Returns the sets that must be written. The files are included because a new bucket also
    /// lacks the keys of unchanged topics. If no bucket is configured, prints a note that changed
    /// keys are not published.
    ///
    /// # Errors
    /// If a key set cannot be read.
    pub(crate) async fn compare<'a>(
        &self,
        [before, after]: [&'a Catalogue; 2],
        files: &'a Catalogue,
    ) -> anyhow::Result<ChangedSets<'a>> {
        let (before, after) = (keys(before), keys(after));
        let Some(place) = &self.place else {
            if before != after {
                note(
                    "public keys change but are not published; use --public-keys s3://BUCKET to \
                     publish them",
                );
            }
            return Ok(ChangedSets { storage: None, sets: Keys::new() });
        };
        let storage = place.storage().await;
        // A subscription that no longer has keys gets an empty set.
        let mut wanted: Keys<'_> = before.into_keys().map(|name| (name, &[][..])).collect();
        wanted.extend(after);
        wanted.extend(keys(files));
        let sets = stream::iter(wanted);
        let differing = sets.map(async |(name, keys)| {
            let path = key_set_path(name);
            let stored = storage.get(&path).await;
            let stored = stored.with_context(|| format!("{storage}/{path} cannot be read"))?;
            let is_withdrawn = stored.is_none() && keys.is_empty();
            let is_same = is_withdrawn || stored.as_deref() == Some(key_set(keys).as_bytes());
            anyhow::Ok((!is_same).then_some((name, keys)))
        });
        let differing: Vec<_> = differing.buffered(SETS_AT_ONCE).try_collect().await?;
        let sets = differing.into_iter().flatten().collect();
        Ok(ChangedSets { storage: Some(storage), sets })
    }
}

impl ChangedSets<'_> {
    /// Returns true if the stored key sets are up to date, or if no bucket is configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Prints one line for each key set that changes: its path, the number of its keys and its
    /// subscription.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        for (name, keys) in &self.sets {
            let count = text::counted(keys.len() as u64, "public key");
            let (path, name) = (key_set_path(name), text::line(&name.to_string()));
            out(&format!("{path}: {count} of {name}\n"))?;
        }
        Ok(())
    }

    /// Writes the changed key sets that contain keys. Call this before the subscriptions change,
    /// because changed subscriptions sign with the new keys.
    ///
    /// # Errors
    /// If a key set cannot be written.
    pub(crate) async fn publish(&self) -> anyhow::Result<()> {
        self.write(|keys| !keys.is_empty()).await
    }

    /// Writes the key sets that become empty. Call this after the subscriptions change, because
    /// they sign with the old keys until then.
    ///
    /// # Errors
    /// If a key set cannot be written.
    pub(crate) async fn withdraw(&self) -> anyhow::Result<()> {
        self.write(<[PublicKey]>::is_empty).await
    }

    async fn write(&self, is_wanted: fn(&[PublicKey]) -> bool) -> anyhow::Result<()> {
        let Some(storage) = &self.storage else { return Ok(()) };
        let wanted = self.sets.iter().filter(|(_, keys)| is_wanted(keys));
        let writes = wanted.map(async |(name, keys)| {
            let path = key_set_path(name);
            let written = storage.put(&path, key_set(keys).into_bytes()).await;
            written.with_context(|| {
                format!("{storage}/{path}, the public keys of {name}, cannot be written")
            })
        });
        stream::iter(writes).buffered(SETS_AT_ONCE).try_collect().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_without_a_prefix_or_a_folder() {
        for uri in ["s3://keys", "s3://keys/"] {
            assert_eq!(Place::parse(uri), Ok(Place::Bucket("keys".to_owned())));
        }
        assert_eq!(Place::parse("file:///a/b"), Ok(Place::Folder("/a/b".into())));
        for uri in ["", "keys", "s3://", "s3:///", "s3://keys/a", "s3://keys/a/", "file://a"] {
            assert!(Place::parse(uri).is_err(), "{uri}");
        }
    }
}
