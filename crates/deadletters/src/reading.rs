//! Reads single blobs, within limits.
//!
//! Separate from [`crate::dead_letters`], which selects blobs. This module enforces the maximum
//! size of a blob and of all concurrent reads, and uses the cache.
//!
//! Promises: a blob above [`BLOB_MAX_BYTES`] is never read in full. An unreadable blob is counted,
//! and hides no other. A summary is the same whether it comes from the cache or from its blob.

use std::sync::PoisonError;

use adapters::storage::Entry;
use anyhow::Context as _;
use delivery::deadletter::stored::{StoredDeadLetter, read};
use tokio::sync::SemaphorePermit;

use crate::container::{BLOB_MAX_BYTES, TooLarge};
use crate::dead_letters::DeadLetters;
use crate::reads::{PERMIT_BYTES, READ_PERMITS, ReadProgress, UnreadableBlobs};
use crate::summary::{SavedLetter, summary};

impl DeadLetters {
    /// Returns the blobs read so far that are not dead letters.
    #[must_use]
    pub fn unreadable_blobs(&self) -> UnreadableBlobs {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the dead letter in a blob; `None` if the blob was removed after it was listed, or is
    /// not a dead letter.
    pub(crate) async fn read(&self, blob: &Entry) -> anyhow::Result<Option<StoredDeadLetter>> {
        Ok(self.read_with_permit(blob).await?.0)
    }

    /// Reads a blob as [`Self::read`] does, and also returns the permit for the memory of the
    /// result.
    ///
    /// Permits are granted in the order of the calls. Therefore a caller that consumes the results
    /// in this order never waits for a result whose permits are held by later ones.
    pub(crate) async fn read_with_permit(
        &self,
        blob: &Entry,
    ) -> anyhow::Result<(Option<StoredDeadLetter>, SemaphorePermit<'_>)> {
        let permits = u32::try_from(blob.bytes.div_ceil(PERMIT_BYTES)).unwrap_or(READ_PERMITS);
        let permit = self.memory.acquire_many(permits.clamp(1, READ_PERMITS)).await;
        let permit = permit.context("the permits are never closed")?;
        let letter = match self.content(blob).await? {
            Ok(None) => None,
            Ok(Some(bytes)) => self.parsed(read(&blob.key, &self.container.prefix, &bytes)),
            Err(too_large) => self.parsed(Err(format!("{}: {too_large}", blob.key))),
        };
        self.report(ReadProgress::Read);
        Ok((letter, permit))
    }

    /// Returns the summary of the dead letter in a blob, from the cache or from the blob.
    pub(crate) async fn summary(&self, blob: &Entry) -> anyhow::Result<Option<StoredDeadLetter>> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(&blob.key, &blob.etag));
        if let Some(letter) = cached.and_then(|saved: SavedLetter| saved.restore(&blob.key)) {
            return Ok(Some(letter));
        }
        let (letter, _permit) = self.read_with_permit(blob).await?;
        let letter = letter.map(summary);
        // Do not cache a blob without a dead letter: it must be reported each time.
        if let (Some(cache), Some(letter)) = (&self.cache, &letter) {
            cache.put(&blob.key, &blob.etag, &SavedLetter::from_stored(letter));
        }
        Ok(letter)
    }

    /// Returns the dead letter in the blob with this key.
    ///
    /// # Errors
    /// Fails if the blob does not exist, or cannot be read.
    pub async fn of_key(&self, key: &str) -> anyhow::Result<StoredDeadLetter> {
        read(key, &self.container.prefix, &self.bytes(key).await?).map_err(anyhow::Error::msg)
    }

    /// Returns the bytes of the blob with this key.
    ///
    /// # Errors
    /// Fails if the blob does not exist, or cannot be read.
    pub async fn bytes(&self, key: &str) -> anyhow::Result<Vec<u8>> {
        let bytes = self.container.get(key).await?;
        bytes.with_context(|| format!("{} has no blob {key}", self.container.name))
    }

    /// Returns the content of a listed blob; `None` if the blob was removed after it was listed.
    async fn content(&self, blob: &Entry) -> anyhow::Result<Result<Option<Vec<u8>>, TooLarge>> {
        match TooLarge::check(blob.bytes, BLOB_MAX_BYTES) {
            Ok(()) => self.container.get_at_most(BLOB_MAX_BYTES, &blob.key).await,
            Err(too_large) => Ok(Err(too_large)),
        }
    }

    /// Returns the dead letter that was read. Counts an error as an unreadable blob, and returns
    /// `None`.
    fn parsed(&self, read: Result<StoredDeadLetter, String>) -> Option<StoredDeadLetter> {
        let count = |problem: String| {
            let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
            unreadable.count += 1;
            unreadable.example = problem;
        };
        read.map_err(count).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;
    use crate::container::{DeadLetterContainer, LEDGER_MAX_BYTES};
    use crate::filter::Filter;

    const KEY: &str = "shop/orders/billing/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";

    /// Returns the dead letters of a folder with one file, which is filled with zeros.
    fn with_file(folder: &Path, key: &str, bytes: u64) -> DeadLetters {
        let path = folder.join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(&path).unwrap().set_len(bytes).unwrap();
        DeadLetters::new(DeadLetterContainer::folder(folder.to_str().unwrap()).unwrap())
    }

    #[tokio::test]
    async fn a_ledger_above_the_limit_is_not_read_and_named_with_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let key = "_replays/big/done.ndjson";
        let letters = with_file(folder.path(), key, LEDGER_MAX_BYTES + 1);
        let replayed = letters.replayed(None).await.unwrap();
        let unreadable: Vec<String> = replayed.unreadable.iter().map(ToString::to_string).collect();
        let size = "the object has 268435457 bytes; the limit is 268435456 bytes";
        assert_eq!(unreadable, [format!("{key} cannot be read: {size}")]);
    }

    #[tokio::test]
    async fn a_blob_above_the_limit_is_not_read_and_counts_as_unreadable_with_key_and_size() {
        let folder = tempfile::tempdir().unwrap();
        let letters = with_file(folder.path(), KEY, BLOB_MAX_BYTES + 1);
        let stale =
            Entry { key: KEY.to_owned(), bytes: 2_000, modified_ms: 0, etag: String::new() };
        let size = "the object has 67108865 bytes; the limit is 67108864 bytes";
        let listed = letters.newest(&Filter::default(), None).await.unwrap();
        // The listing of `stale` reported a smaller size than the blob has.
        assert_eq!((listed, letters.read(&stale).await.unwrap()), (vec![], None));
        assert_eq!(letters.container.requests(), 5, "four listings, and one read");
        let unreadable = letters.unreadable_blobs();
        assert_eq!((unreadable.count, unreadable.example), (2, format!("{KEY}: {size}")));
        let error = format!("{:#}", letters.of_key(KEY).await.unwrap_err());
        assert!(error.contains(KEY) && error.contains(size), "{error}");
    }
}
