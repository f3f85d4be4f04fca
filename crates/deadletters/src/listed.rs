//! Lists blobs before reading the first one, so that the number of reads is known at the beginning.
//!
//! Promises: at most [`LISTED_FIRST_MAX`] blobs are held in memory. The others are listed during
//! the reads.

use std::collections::HashSet;

use adapters::storage::Entry;
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};

use crate::dead_letters::DeadLetters;
use crate::filter::Filter;
use crate::key::hour_of_key;
use crate::reads::{Content, ReadProgress};

/// Maximum number of blobs that are listed before the first read. Each takes about 300 bytes of
/// memory.
const LISTED_FIRST_MAX: usize = 200_000;

impl DeadLetters {
    /// Streams every blob that may contain a matching dead letter. Lists at most
    /// [`LISTED_FIRST_MAX`] blobs before it returns the first one.
    pub(crate) fn listed_blobs<'a>(
        &'a self,
        filter: &'a Filter,
        content: Content,
    ) -> impl Stream<Item = anyhow::Result<Entry>> + 'a {
        stream::once(self.list_first(filter, content)).try_flatten()
    }

    async fn list_first(
        &self,
        filter: &Filter,
        content: Content,
    ) -> anyhow::Result<impl Stream<Item = anyhow::Result<Entry>> + use<>> {
        let mut blobs = Box::pin(self.blobs(filter));
        let listed: Vec<Entry> = blobs.as_mut().take(LISTED_FIRST_MAX).try_collect().await?;
        let is_all = listed.len() < LISTED_FIRST_MAX;
        let cache = self.cache.as_ref().filter(|_| content == Content::Summary);
        if let Some(cache) = cache.filter(|_| is_all && is_of_everything(filter)) {
            let keys: HashSet<&str> = listed.iter().map(|blob| blob.key.as_str()).collect();
            let root = self.container.root();
            // This listing does not contain ledgers and dismissals, so keep their cached lines.
            cache.forget_missing(|key| keys.contains(key) || hour_of_key(key, &root).is_none());
        }
        let is_read = |blob: &&Entry| cache.is_none_or(|cache| !cache.has(&blob.key, &blob.etag));
        let to_read = listed.iter().filter(is_read).count() as u64;
        self.report(ReadProgress::Listed { to_read, is_all });
        Ok(stream::iter(listed).map(Ok).chain(blobs))
    }

    pub(crate) fn report(&self, progress: ReadProgress) {
        if let Some(observer) = &self.observer {
            observer(progress);
        }
    }
}

/// True if a walk with this filter lists every blob of the container.
fn is_of_everything(filter: &Filter) -> bool {
    let names = [&filter.namespace, &filter.topic, &filter.subscription];
    let times = [filter.since_ms, filter.until_ms];
    let is_of_all_names = names.into_iter().all(Option::is_none);
    // A filter by state skips blobs by their keys.
    is_of_all_names && times.into_iter().all(|time| time.is_none()) && filter.is_of_any_state()
}
