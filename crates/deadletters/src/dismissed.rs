//! Stores dismissals, each as an object in `_dismissed/`. The dead letters beside them are never changed.
//!
//! The names end like those of a ledger: what ends in `.json` is a dead letter, for notifications and policies.

use adapters::storage::ListRequest;
use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::{Uuid, uuid};

use crate::container::BLOB_MAX_BYTES;
use crate::dead_letters::{DeadLetters, READS_AT_ONCE};
use crate::dismissal::read_dismissal;
use crate::key::DISMISSED_FOLDER;

pub use crate::dismissal::{Dismissal, Dismissals, NOTE_MAX_CHARS};

/// The namespace of the names of dismissals (UUIDv5).
const DISMISSALS: Uuid = uuid!("b1d6f0c2-9a4e-5d73-8c15-7f20e6a4d9b3");

impl DeadLetters {
    /// Records a dismissal, or that one is taken back.
    ///
    /// # Errors
    /// When that cannot be written.
    pub async fn dismiss(&self, dismissal: &Dismissal) -> anyhow::Result<()> {
        let text = serde_json::to_string(dismissal).context("a plain struct serializes")?;
        // By time, for people who look at the folder. Two may be made at the same time.
        let at = dismissal.at.replace([':', '.'], "-");
        let id = Uuid::new_v5(&DISMISSALS, text.as_bytes());
        let key = format!("{}{at}-{id}.ndjson", self.dismissals_folder());
        self.container.put(&key, format!("{text}\n").into_bytes()).await
    }

    /// Reads all dismissals.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn dismissals(&self) -> anyhow::Result<Dismissals> {
        let request = ListRequest { prefix: self.dismissals_folder(), ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let keys = page.entries.into_iter().map(|entry| entry.key);
        let reads = keys.map(|key| async move {
            // One that is too large cannot be read either.
            let bytes = self.container.get_at_most(BLOB_MAX_BYTES, &key).await?;
            anyhow::Ok(bytes.ok().flatten().and_then(|bytes| read_dismissal(&bytes)).ok_or(key))
        });
        let reads = stream::iter(reads).buffered(READS_AT_ONCE);
        let read: Vec<Result<Dismissal, String>> = reads.try_collect().await?;
        let (read, unreadable): (Vec<_>, Vec<_>) = read.into_iter().partition(Result::is_ok);
        let mut dismissals = Dismissals::new(read.into_iter().flatten());
        dismissals.unreadable = unreadable.into_iter().filter_map(Result::err).collect();
        Ok(dismissals)
    }

    fn dismissals_folder(&self) -> String {
        format!("{}{DISMISSED_FOLDER}/", self.container.root())
    }
}
