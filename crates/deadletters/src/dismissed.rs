//! Dead letters that a person has dismissed, with a note: nothing is to be done about them.
//!
//! An object for each in `_dismissed/`, beside the dead letters, which are never changed. Its name ends like that
//! of a ledger: what ends in `.json` is a dead letter, for notifications and policies.

use std::collections::HashSet;
use std::sync::Arc;

use adapters::storage::{ListRequest, PAGE_MAX};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::dead_letters::DeadLetters;
use crate::filter::Filter;
use crate::key::DISMISSED_FOLDER;

/// The version that is written.
const VERSION: u32 = 1;
/// A longer note is refused.
pub const NOTE_MAX_CHARS: usize = 2_000;

/// Why a dead letter was dismissed, when and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissal {
    v: u32,
    /// The dead letter.
    pub letter: Uuid,
    /// When, RFC 3339.
    pub at: String,
    /// Who, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub note: String,
}

impl Dismissal {
    /// A dismissal.
    ///
    /// # Errors
    /// When the note is empty or too long.
    pub fn new(letter: Uuid, at: String, by: Option<String>, note: &str) -> Result<Self, String> {
        let note = note.trim().to_owned();
        match note.chars().count() {
            0 => Err("a note is needed: why nothing is to be done".to_owned()),
            chars if chars > NOTE_MAX_CHARS => {
                Err(format!("the note has {chars} characters, and at most {NOTE_MAX_CHARS} fit"))
            }
            _ => Ok(Self { v: VERSION, letter, at, by, note }),
        }
    }
}

impl DeadLetters {
    /// Dismisses a dead letter; an earlier note is replaced.
    ///
    /// # Errors
    /// When that cannot be written.
    pub async fn dismiss(&self, dismissal: &Dismissal) -> anyhow::Result<()> {
        let text = serde_json::to_string(dismissal).context("a plain struct serializes")?;
        let key = self.dismissal_key(dismissal.letter);
        self.container.put(&key, format!("{text}\n").into_bytes()).await
    }

    /// Takes dismissals back.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub async fn undismiss(&self, letters: &[Uuid]) -> anyhow::Result<()> {
        let keys: Vec<String> = letters.iter().map(|letter| self.dismissal_key(*letter)).collect();
        self.container.delete(&keys).await
    }

    /// Removes the dismissals of dead letters that were removed.
    ///
    /// # Errors
    /// When they cannot be listed or removed.
    pub async fn forget_dismissals(&self, removed: &HashSet<Uuid>) -> anyhow::Result<()> {
        let dismissed = self.dismissed().await?;
        let both: Vec<Uuid> = dismissed.intersection(removed).copied().collect();
        for letters in both.chunks(PAGE_MAX) {
            self.undismiss(letters).await?;
        }
        Ok(())
    }

    /// The dismissal of a dead letter, if there is one that can be read.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn dismissal(&self, letter: Uuid) -> anyhow::Result<Option<Dismissal>> {
        let bytes = self.container.get(&self.dismissal_key(letter)).await?;
        let read = bytes.and_then(|bytes| serde_json::from_slice::<Dismissal>(&bytes).ok());
        Ok(read.filter(|dismissal| dismissal.v == VERSION))
    }

    /// The dead letters that are dismissed: a listing, and no blob is read.
    ///
    /// # Errors
    /// When the container cannot be listed.
    pub async fn dismissed(&self) -> anyhow::Result<HashSet<Uuid>> {
        let prefix = self.dismissals();
        let request = ListRequest { prefix: prefix.clone(), ..ListRequest::default() };
        let page = self.container.pages(request).await?;
        let letter = |key: &str| key.strip_prefix(&prefix)?.strip_suffix(".ndjson")?.parse().ok();
        Ok(page.entries.iter().filter_map(|entry| letter(&entry.key)).collect())
    }

    /// The same filter without what is dismissed.
    ///
    /// # Errors
    /// When the container cannot be listed.
    pub async fn without_dismissed(&self, filter: Filter) -> anyhow::Result<Filter> {
        Ok(Filter { except: Arc::new(self.dismissed().await?), ..filter })
    }

    fn dismissal_key(&self, letter: Uuid) -> String {
        format!("{}{letter}.ndjson", self.dismissals())
    }

    fn dismissals(&self) -> String {
        format!("{}{DISMISSED_FOLDER}/", self.container.root())
    }
}
