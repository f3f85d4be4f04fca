//! The newest replay of each dead letter, as the ledgers say. Pure.
//!
//! Separate from [`crate::replay`], which reads the ledgers, because filters ask it.

use std::collections::HashMap;
use std::fmt;

use uuid::Uuid;

use crate::ledger::ReplayRecord;

/// A ledger that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLedger {
    /// The name of its job.
    pub job: String,
    /// The key of its folder, without a slash at its end.
    pub folder: String,
    /// Its file that cannot be read.
    pub(crate) file: String,
    /// What is wrong with that.
    pub(crate) problem: String,
}

impl fmt::Display for UnreadableLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} cannot be read: {}", self.folder, self.file, self.problem)
    }
}

impl std::error::Error for UnreadableLedger {}

/// Which dead letters were replayed, as far as the ledgers can be read.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// Each with the newest job that did.
    pub records: HashMap<Uuid, ReplayRecord>,
    /// The dead letters in the plans of jobs that are not done, with the name of the job.
    pub planned: HashMap<Uuid, String>,
    /// Those that may know of more.
    pub unreadable: Vec<UnreadableLedger>,
}

impl Replayed {
    /// The newest job that replayed a dead letter, if one did.
    #[must_use]
    pub fn get(&self, letter: &Uuid) -> Option<&ReplayRecord> {
        self.records.get(letter)
    }
}
