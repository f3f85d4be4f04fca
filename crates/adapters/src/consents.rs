//! Stores consents in the table, and caches them in memory.
//!
//! Promises: a granted consent is read again after five minutes, so deleting it revokes it. A
//! missing consent is read again after thirty seconds, so that a delivery does not wait long for a
//! consent that another process stored. While the table cannot be read, the last consent stays
//! valid; if there is none, the result is an error. Does not validate endpoints, and does not lock:
//! if two processes store a consent concurrently, the later write wins.

use std::time::Duration;

use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{Clock, ConsentError, Consents};
use delivery::table::{Entry, Expected, Table};

use crate::machine::Machine;
use crate::refreshing::Refreshing;

/// Age at which a cached consent is read again, if it was granted.
const REREAD_AFTER_MS: u64 = 300_000;
/// Age at which a read that found no consent is repeated.
const MISSING_REREAD_AFTER_MS: u64 = 30_000;

/// Timeout of a read. Short, because deliveries wait for it.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// The consents of a deployment, in the table and a cache.
#[derive(Debug)]
pub struct ConsentStore<T, C = Machine> {
    table: T,
    clock: C,
    read: Refreshing<ConsentKey, Option<Granted>, String>,
}

impl<T: Table, C: Clock> ConsentStore<T, C> {
    /// Creates a store on `table`. `clock` measures the age of cached consents.
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
        let stored = read.await.map_err(|_| "the table did not respond in time".to_owned())?;
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
        // Cache first: the consent is valid in this process even if the table refuses it.
        self.read.put(key, &self.clock, Some(granted.clone())).await;
        let entry = Entry { text: granted.write(), expires_ms: None };
        let now_ms = self.clock.now_ms();
        let kept = self.table.replace(&key.item(), &entry, Expected::Anything, now_ms).await;
        let failure = |problem: String| ConsentError { key: key.to_string(), problem };
        kept.map(drop).map_err(|error| failure(error.to_string()))
    }
}
