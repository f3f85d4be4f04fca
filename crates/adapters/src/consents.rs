//! Consents, kept in the table, and in memory for a while.
//!
//! Promises: a consent that exists is read again after five minutes, so removing it withdraws it;
//! a missing one after thirty seconds, so no delivery waits long for a consent that another process
//! kept. While the table cannot be read, the consent read last is valid; without one, the answer is
//! an error. Does not validate endpoints, and does not lock: of two processes that keep a consent
//! at once, the later write wins.

use std::time::Duration;

use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{Clock, ConsentError, Consents};
use delivery::table::{Entry, Expected, Table};

use crate::machine::Machine;
use crate::refreshing::Refreshing;

/// A consent that exists is read again after this long.
const REREAD_AFTER_MS: u64 = 300_000;
/// A consent that is missing is looked up again after this long.
const MISSING_REREAD_AFTER_MS: u64 = 30_000;

/// A table that takes longer does not answer: deliveries wait for it.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// The consents of a deployment.
#[derive(Debug)]
pub struct ConsentStore<T, C = Machine> {
    table: T,
    clock: C,
    read: Refreshing<ConsentKey, Option<Granted>, String>,
}

impl<T: Table, C: Clock> ConsentStore<T, C> {
    /// The consents in this table; cached ones expire by the clock.
    #[must_use]
    pub fn new(table: T, clock: C) -> Self {
        let fresh_ms = |granted: &Option<Granted>| match granted {
            Some(_) => REREAD_AFTER_MS,
            None => MISSING_REREAD_AFTER_MS,
        };
        Self { table, clock, read: Refreshing::new(fresh_ms, Option::is_some) }
    }

    async fn read(&self, key: &ConsentKey) -> Result<Option<Granted>, String> {
        let item = key.item();
        let read = tokio::time::timeout(READ_WITHIN, self.table.entry(&item, self.clock.now_ms()));
        let stored = read.await.map_err(|_| "it did not answer in time".to_owned())?;
        let stored = stored.map_err(|error| error.to_string())?;
        stored.map(|stored| Granted::read(stored.text.as_bytes())).transpose()
    }
}

impl<T: Table + Sync, C: Clock + Send + Sync> Consents for ConsentStore<T, C> {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        let read = self.read.get(key, &self.clock, async || self.read(key).await, |_| {}).await;
        read.map_err(|problem| ConsentError { key: key.to_string(), problem })
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        // Cached first: here the consent is valid even if the table refuses it.
        self.read.put(key, &self.clock, Some(granted.clone())).await;
        let entry = Entry { text: granted.write(), expires_ms: None };
        let now_ms = self.clock.now_ms();
        let kept = self.table.replace(&key.item(), &entry, Expected::Anything, now_ms).await;
        let failure = |problem: String| ConsentError { key: key.to_string(), problem };
        kept.map(drop).map_err(|error| failure(error.to_string()))
    }
}
