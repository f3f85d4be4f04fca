//! Stores dismissals as objects in `_dismissed/`. Dead letters themselves never change.
//!
//! The object names do not end in `.json`, because notifications and policies treat every object
//! with that suffix as a dead letter.

use adapters::storage::{Entry, ListRequest};
use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::{Uuid, uuid};

use crate::container::BLOB_MAX_BYTES;
use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::dismissal::read_dismissal;
use crate::key::DISMISSED_FOLDER;

pub use crate::dismissal::{Dismissal, Dismissals, NOTE_MAX_CHARS};

/// The UUIDv5 namespace of the names of dismissal objects.
const DISMISSALS: Uuid = uuid!("b1d6f0c2-9a4e-5d73-8c15-7f20e6a4d9b3");

impl DeadLetters {
    /// Stores a dismissal or a withdrawal.
    ///
    /// # Errors
    /// Fails if the object cannot be written.
    pub async fn dismiss(&self, dismissal: &Dismissal) -> anyhow::Result<()> {
        let text = serde_json::to_string(dismissal).context("a plain struct serializes")?;
        // The name begins with the time, for people who list the folder. The hash separates two
        // dismissals of the same time.
        let at = dismissal.at.replace([':', '.'], "-");
        let id = Uuid::new_v5(&DISMISSALS, text.as_bytes());
        let key = format!("{}{at}-{id}.ndjson", self.dismissals_folder());
        self.container.put(&key, format!("{text}\n").into_bytes()).await
    }

    /// Reads all dismissals.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn dismissals(&self) -> anyhow::Result<Dismissals> {
        let request = ListRequest { prefix: self.dismissals_folder(), ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let reads = page.entries.into_iter().map(|entry| self.dismissal_in(entry));
        let reads = stream::iter(reads).buffered(READS_AT_ONCE);
        let read: Vec<Result<Dismissal, String>> = reads.try_collect().await?;
        let (read, unreadable): (Vec<_>, Vec<_>) = read.into_iter().partition(Result::is_ok);
        let mut dismissals = Dismissals::new(read.into_iter().flatten());
        dismissals.unreadable = unreadable.into_iter().filter_map(Result::err).collect();
        Ok(dismissals)
    }

    /// Returns the dismissal in an object, from the cache if possible. Returns the key of the
    /// object if the dismissal cannot be read.
    async fn dismissal_in(&self, object: Entry) -> anyhow::Result<Result<Dismissal, String>> {
        let cache = self.cache.as_ref();
        if let Some(dismissal) = cache.and_then(|cache| cache.get(&object.key, &object.etag)) {
            return Ok(Ok(dismissal));
        }
        // An object that is too large is unreadable too.
        let bytes = self.container.get_at_most(BLOB_MAX_BYTES, &object.key).await?.ok().flatten();
        let dismissal = bytes.and_then(|bytes| read_dismissal(&bytes));
        if let (Some(cache), Some(dismissal)) = (cache, &dismissal) {
            cache.put(&object.key, &object.etag, dismissal);
        }
        Ok(dismissal.ok_or(object.key))
    }

    fn dismissals_folder(&self) -> String {
        format!("{}{DISMISSED_FOLDER}/", self.container.root())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::DeadLetterContainer;

    #[tokio::test]
    async fn a_dismissal_is_read_once_for_all_processes_and_an_unreadable_one_each_time() {
        let (folder, caches) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let letters = || {
            let container = DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap();
            DeadLetters::new(container).with_cache_in(caches.path())
        };
        let at = "2026-11-20T07:00:00.0000000Z".to_owned();
        let letter = Uuid::from_u128(1);
        let dismissal = Dismissal::new(vec![letter], [], at, None, "refunded").unwrap();
        letters().dismiss(&dismissal).await.unwrap();
        std::fs::write(folder.path().join("_dismissed/strange.ndjson"), "{").unwrap();
        for requests in [3, 2] {
            let letters = letters();
            let dismissals = letters.dismissals().await.unwrap();
            assert_eq!(dismissals.get(letter), Some(&dismissal));
            assert_eq!(dismissals.unreadable, ["_dismissed/strange.ndjson"]);
            assert_eq!(letters.container.requests(), requests, "with the listing");
        }
    }
}
