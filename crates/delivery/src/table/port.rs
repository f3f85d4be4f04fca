//! [`Table`]: the port of the table.
//!
//! Each operation is one request, or up to three if other processes change the item at the same
//! time. A change is atomic. All times come from the caller, so that a table in memory can use
//! virtual time.

use std::future::Future;

use super::{
    Entry, Expected, ItemKey, Permit, PermitAnswer, Places, SlotQueue, TakePermits, TakePlaces,
};
use crate::time::duration::SECOND_MS;

/// A stored text, with its version and expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The text, as it was written.
    pub text: String,
    /// Number of times that the text was replaced.
    pub version: u64,
    /// Time of expiry in seconds since 1970; `None` if the item does not expire.
    pub expires_s: Option<u64>,
}

impl Stored {
    /// True if the item has expired, but has not been removed yet.
    #[must_use]
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_ms / SECOND_MS)
    }
}

/// Error returned if the table did not respond, or refused the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {problem}")]
pub struct TableError {
    /// A description of the failed operation, its item and table, and the reason.
    pub problem: String,
    /// True if the table responded with an error. Requests for other items may still succeed, for
    /// example if only requests for this item are throttled.
    pub is_refusal: bool,
}

impl TableError {
    /// Creates the error for a table that did not respond.
    #[must_use]
    pub fn unreachable(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_refusal: false }
    }

    /// Creates the error for a table that refused the request.
    #[must_use]
    pub fn refused(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_refusal: true }
    }
}

/// The table that all processes of a deployment share.
pub trait Table {
    /// Returns the text of an item; `None` if the item does not exist or has expired.
    ///
    /// # Errors
    /// [`TableError`] if the item cannot be read.
    fn entry(
        &self,
        key: &ItemKey,
        now_ms: u64,
    ) -> impl Future<Output = Result<Option<Stored>, TableError>> + Send;

    /// Replaces the text of an item if the item is in the expected state. Returns true if the text
    /// was replaced.
    ///
    /// # Errors
    /// [`TableError`] if it is uncertain what the item contains now.
    fn replace(
        &self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> impl Future<Output = Result<bool, TableError>> + Send;

    /// Returns the `most` items of a partition with the highest sort keys, in descending order.
    /// Some of them may have expired.
    ///
    /// # Errors
    /// [`TableError`] if the items cannot be read.
    fn newest(
        &self,
        partition: &str,
        most: u32,
    ) -> impl Future<Output = Result<Vec<Stored>, TableError>> + Send;

    /// Grants permits, if the number of granted permits is low enough.
    ///
    /// # Errors
    /// [`TableError`] if it is uncertain whether the permits are granted.
    fn take_permits(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        now_ms: u64,
    ) -> impl Future<Output = Result<PermitAnswer, TableError>> + Send;

    /// Returns granted permits, and stores the average duration of an attempt if the caller has
    /// one. Permits that are not granted are ignored.
    ///
    /// # Errors
    /// [`TableError`] if it is uncertain whether the permits are still granted.
    fn return_permits(
        &self,
        key: &ItemKey,
        permits: &[Permit],
        takes_ms: Option<u64>,
        now_ms: u64,
    ) -> impl Future<Output = Result<(), TableError>> + Send;

    /// Takes slots in a queue of the destination.
    ///
    /// # Errors
    /// [`TableError`] if it is uncertain whether the slots are taken. The caller must then not use
    /// the slots.
    fn take_places(
        &self,
        key: &ItemKey,
        queue: SlotQueue,
        take: &TakePlaces,
        now_ms: u64,
    ) -> impl Future<Output = Result<Places, TableError>> + Send;
}
