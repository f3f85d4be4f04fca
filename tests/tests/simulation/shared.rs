//! Documents that all processes share: replaced only by whoever read the newest version.

use std::collections::BTreeMap;

use delivery::ports::{SharedDocument, SharedDocumentError};

use super::faults::Fault;
use super::world::Inner;

/// How long they cannot be reached.
const UNREACHABLE_MS: u64 = 3_600_000;

/// The documents, each with the number of its version.
#[derive(Debug, Default)]
pub(crate) struct SharedStore {
    documents: BTreeMap<String, (Vec<u8>, u64)>,
    unreachable_until_ms: u64,
    /// What operators will write, and when.
    planned: Vec<(u64, String, Vec<u8>)>,
    /// Every document that was written, in order.
    pub(crate) written: Vec<(String, Vec<u8>)>,
}

impl SharedStore {
    /// An operator writes a document at this time.
    pub(crate) fn plan(&mut self, at_ms: u64, key: String, bytes: Vec<u8>) {
        self.planned.push((at_ms, key, bytes));
    }

    fn write(&mut self, key: &str, bytes: Vec<u8>) {
        let version = self.documents.get(key).map_or(1, |(_, version)| version + 1);
        self.written.push((key.to_owned(), bytes.clone()));
        self.documents.insert(key.to_owned(), (bytes, version));
    }

    fn write_planned(&mut self, now_ms: u64) {
        let is_due = |it: &mut (u64, String, Vec<u8>)| it.0 <= now_ms;
        for (_, key, bytes) in self.planned.extract_if(.., is_due).collect::<Vec<_>>() {
            self.write(&key, bytes);
        }
    }

    /// Nothing is read or written before this time.
    pub(crate) fn refuse_until(&mut self, until_ms: u64) {
        self.unreachable_until_ms = until_ms;
    }
}

impl Inner {
    /// The newest version of a document.
    pub(crate) fn shared(
        &mut self,
        key: &str,
    ) -> Result<Option<SharedDocument>, SharedDocumentError> {
        self.reach_shared(key)?;
        let found = self.shared.documents.get(key).cloned();
        Ok(found.map(|(bytes, version)| SharedDocument { bytes, version: version.to_string() }))
    }

    /// Replaces a version of a document.
    pub(crate) fn replace_shared(
        &mut self,
        key: &str,
        bytes: Vec<u8>,
        version: Option<&str>,
    ) -> Result<bool, SharedDocumentError> {
        self.reach_shared(key)?;
        self.trace(|| format!("writes {key}: {}", String::from_utf8_lossy(&bytes)));
        let known = self.shared.documents.get(key).map(|(_, version)| *version);
        let is_newest = known.map(|version| version.to_string()).as_deref() == version;
        if is_newest {
            self.shared.write(key, bytes);
        }
        // The store has it, but its writer does not learn that.
        self.reach_shared(key).map(|()| is_newest)
    }

    fn reach_shared(&mut self, key: &str) -> Result<(), SharedDocumentError> {
        self.shared.write_planned(self.now_ms);
        if self.random.injects(Fault::Unshared) {
            let lasts_ms = self.random.below(UNREACHABLE_MS);
            self.shared.unreachable_until_ms = self.now_ms + lasts_ms;
        }
        if self.now_ms >= self.shared.unreachable_until_ms {
            return Ok(());
        }
        let problem = "injected by the world".to_owned();
        Err(SharedDocumentError { key: key.to_owned(), problem })
    }
}
