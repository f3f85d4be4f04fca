//! The port: what a table does for its callers.
//!
//! Each operation is one request, or up to three if other processes change the item meanwhile. Those that change an item are carried out whole or not at all, whatever other processes
//! do at the same time. All times come from the caller, so that a table in memory obeys virtual time.

use std::future::Future;

use super::{
    Entry, Expected, ItemKey, LineName, Permit, PermitAnswer, Places, TakePermits, TakePlaces,
};
use crate::time::duration::SECOND_MS;

/// A text as the table holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// As somebody wrote it.
    pub text: String,
    /// How often it was replaced.
    pub version: u64,
    /// The second at which it expires.
    pub expires_s: Option<u64>,
}

impl Stored {
    /// True if it is only there because nobody has removed it yet.
    #[must_use]
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_ms / SECOND_MS)
    }
}

/// The table did not answer, or did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {problem}")]
pub struct TableError {
    /// What could not be done, with which item of which table, and why.
    pub problem: String,
    /// The table answered. It does not do this, but may do something else: another item is not throttled.
    pub is_refusal: bool,
}

impl TableError {
    /// The table did not answer.
    #[must_use]
    pub fn unreachable(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_refusal: false }
    }

    /// The table refused it.
    #[must_use]
    pub fn refused(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_refusal: true }
    }
}

/// What all processes of a deployment know together.
pub trait Table {
    /// The text that an item holds, if there is one that has not expired.
    ///
    /// # Errors
    /// [`TableError`] when it cannot be read.
    fn entry(
        &self,
        key: &ItemKey,
        now_ms: u64,
    ) -> impl Future<Output = Result<Option<Stored>, TableError>> + Send;

    /// Replaces the text of an item, if it is as expected. True if it did.
    ///
    /// # Errors
    /// [`TableError`] when it is not certain what the item holds now.
    fn replace(
        &self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> impl Future<Output = Result<bool, TableError>> + Send;

    /// The last items of a partition by their keys, backwards, and so many at most. Some may have expired.
    ///
    /// # Errors
    /// [`TableError`] when they cannot be read.
    fn newest(
        &self,
        partition: &str,
        most: u32,
    ) -> impl Future<Output = Result<Vec<Stored>, TableError>> + Send;

    /// Gives out permits, if there are few enough then.
    ///
    /// # Errors
    /// [`TableError`] when it is not certain whether they are given out.
    fn take_permits(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        now_ms: u64,
    ) -> impl Future<Output = Result<PermitAnswer, TableError>> + Send;

    /// Takes permits back, and notes how long an attempt takes, if the caller knows it. Permits that are not given out
    /// are no error.
    ///
    /// # Errors
    /// [`TableError`] when it is not certain whether they are given out.
    fn return_permits(
        &self,
        key: &ItemKey,
        permits: &[Permit],
        takes_ms: Option<u64>,
        now_ms: u64,
    ) -> impl Future<Output = Result<(), TableError>> + Send;

    /// Gives places in a line.
    ///
    /// # Errors
    /// [`TableError`] when it is not certain whether they are given out. Then nobody uses them.
    fn take_places(
        &self,
        key: &ItemKey,
        name: LineName,
        take: &TakePlaces,
        now_ms: u64,
    ) -> impl Future<Output = Result<Places, TableError>> + Send;
}
