//! The newest replay of each dead letter according to the ledgers. Pure.
//!
//! Separate from [`crate::replay`], which reads the ledgers, because filters use this data.

use std::collections::HashMap;
use std::fmt;

use uuid::Uuid;

use crate::ledger::ReplayRecord;

/// A ledger that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLedger {
    /// The name of the job whose ledger cannot be read.
    pub job: String,
    /// The key of the ledger's folder, without a slash at its end.
    pub folder: String,
    /// The name of the unreadable file.
    pub(crate) file: String,
    /// The problem with the file.
    pub(crate) problem: String,
}

impl fmt::Display for UnreadableLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} cannot be read: {}", self.folder, self.file, self.problem)
    }
}

impl std::error::Error for UnreadableLedger {}

/// The replays of dead letters, as far as the ledgers are readable.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// The newest replay of each dead letter, by its id.
    pub records: HashMap<Uuid, ReplayRecord>,
    /// The dead letters in the plans of unfinished jobs, with the name of the job.
    pub planned: HashMap<Uuid, String>,
    /// The ledgers that cannot be read and may contain more replays.
    pub unreadable: Vec<UnreadableLedger>,
}

impl Replayed {
    /// Returns the newest replay of a dead letter.
    #[must_use]
    pub fn get(&self, letter: &Uuid) -> Option<&ReplayRecord> {
        self.records.get(letter)
    }
}
