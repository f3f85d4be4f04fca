//! The documents about destinations: reads them, and changes them so that nothing is lost that others
//! write at the same time.

use adapters::machine::Machine;
use adapters::storage::{Fetched, ListRequest, Replaced, StorageError};
use anyhow::{Context as _, bail};
use delivery::delivery::health::shared::{DestinationState, Document};
use delivery::delivery::health::{DestinationKey, FOLDER};
use delivery::ports::{Clock as _, JitterSource as _};
use futures::stream::{self, StreamExt as _};

use super::failure::{Doing, failure};
use super::place::Place;

/// How often a document is read and written again that others write at the same time, and the longest
/// pause after the first try; later ones are twice as long each.
const TRIES: u32 = 8;
const FIRST_PAUSE_MS: u64 = 20;
/// How many documents are read at once.
const READS_AT_ONCE: usize = 16;

/// A document, and whether it is another one than before.
#[derive(Debug)]
pub(super) struct Updated<D> {
    /// As it is stored now.
    pub(super) document: Option<D>,
    pub(super) has_changed: bool,
}

/// All destinations that have a document.
#[derive(Debug)]
pub(super) struct States {
    pub(super) states: Vec<(DestinationKey, DestinationState)>,
    /// The documents that could not be read, and why.
    pub(super) problems: Vec<String>,
}

impl Place {
    /// A document, if there is one.
    pub(super) async fn document<D: Document>(&self, key: &str) -> anyhow::Result<Option<D>> {
        Ok(self.stored(key).await?.map(|(document, _)| document))
    }

    /// Changes a document, from what is stored at that moment. A change that returns nothing leaves it
    /// as it is.
    pub(super) async fn update<D: Document>(
        &self,
        key: &str,
        change: impl Fn(Option<&D>) -> Option<D>,
    ) -> anyhow::Result<Updated<D>> {
        let mut has_changed = false;
        for tried in 0..TRIES {
            let (document, etag) = self.stored::<D>(key).await?.unzip();
            let Some(changed) = change(document.as_ref()) else {
                // Perhaps this very call wrote it, and the answer was lost.
                return Ok(Updated { document, has_changed });
            };
            has_changed = true;
            let replaced = self.storage.replace(key, changed.write(), etag.as_deref()).await;
            match replaced.map_err(|error| self.failure(Doing::Write, key, &error))? {
                Replaced::Written { .. } => {
                    return Ok(Updated { document: Some(changed), has_changed });
                }
                // Not all who write it at the same moment again.
                Replaced::Changed => pause(FIRST_PAUSE_MS << tried).await,
            }
        }
        bail!(
            "{} was not changed: others write it all the time; repeat the command",
            self.object(key)
        )
    }

    /// The documents of all destinations, in the order of their keys.
    pub(super) async fn states(&self) -> anyhow::Result<States> {
        let keys = self.keys().await?;
        let read = async |key: DestinationKey| {
            let state = self.document::<DestinationState>(&key.document()).await;
            state.map(|state| state.map(|state| (key, state)))
        };
        let mut found = States { states: Vec::new(), problems: Vec::new() };
        let mut reads = stream::iter(keys).map(read).buffered(READS_AT_ONCE);
        while let Some(read) = reads.next().await {
            match read {
                Ok(state) => found.states.extend(state),
                Err(error) => found.problems.push(format!("{error:#}")),
            }
        }
        Ok(found)
    }

    async fn keys(&self) -> anyhow::Result<Vec<DestinationKey>> {
        let prefix = format!("{FOLDER}/");
        let mut request = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
        let mut keys = Vec::new();
        loop {
            let page = self.storage.list_page(&request).await;
            let page = page.map_err(|error| self.failure(Doing::List, &prefix, &error))?;
            // The digest and the slots are no keys of destinations.
            keys.extend(page.entries.iter().filter_map(|entry| {
                let name = entry.key.strip_prefix(&prefix)?.strip_suffix(".json")?;
                name.parse::<DestinationKey>().ok()
            }));
            request.page_token = page.next;
            if request.page_token.is_none() {
                return Ok(keys);
            }
        }
    }

    /// A document and its ETag.
    async fn stored<D: Document>(&self, key: &str) -> anyhow::Result<Option<(D, String)>> {
        let fetched = self.storage.get_if_changed(key, None).await;
        match fetched.map_err(|error| self.failure(Doing::Read, key, &error))? {
            // Without a known ETag nothing is unchanged.
            Fetched::Missing | Fetched::Unchanged => Ok(None),
            Fetched::Changed { bytes, etag, .. } => {
                let document = D::read(&bytes);
                let document =
                    document.with_context(|| format!("{} cannot be used", self.object(key)))?;
                Ok(Some((document, etag)))
            }
        }
    }

    fn failure(&self, doing: Doing, key: &str, error: &StorageError) -> anyhow::Error {
        failure(doing, &self.object(key), error)
    }
}

async fn pause(most_ms: u64) {
    Machine.sleep(u64::from(Machine.next_jitter().0) % most_ms).await;
}
