//! Consents, kept in the table, and in memory for a while.
//!
//! Promises: a consent that exists is read again after five minutes, so removing it withdraws it;
//! a missing one after thirty seconds, so no delivery waits long for a consent that another process
//! kept. While the table cannot be read, the consent read last is valid; without one, the answer is
//! an error. Does not validate endpoints, and does not lock: of two processes that keep a consent
//! at once, the later write wins.
//!
//! Not one type with the caches of secrets and subscriptions: here a key has no single reader, and
//! a failed reread counts as fresh for five minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{Clock, ConsentError, Consents};
use delivery::table::{Entry, Expected, Table};

use crate::machine::Machine;

/// A consent that exists is read again after this long.
const REREAD_AFTER_MS: u64 = 300_000;
/// A consent that is missing is looked up again after this long.
const MISSING_REREAD_AFTER_MS: u64 = 30_000;

/// A table that takes longer does not answer: deliveries wait for it.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// What was last read of a consent, and when.
#[derive(Debug, Clone)]
struct Cached {
    read_ms: u64,
    granted: Option<Granted>,
}

impl Cached {
    fn is_fresh(&self, now_ms: u64) -> bool {
        let fresh_for_ms = match self.granted {
            Some(_) => REREAD_AFTER_MS,
            None => MISSING_REREAD_AFTER_MS,
        };
        now_ms.saturating_sub(self.read_ms) < fresh_for_ms
    }
}

/// The consents of a deployment.
#[derive(Debug)]
pub struct ConsentStore<T, C = Machine> {
    table: T,
    clock: C,
    cache: Mutex<HashMap<ConsentKey, Cached>>,
}

impl<T: Table, C: Clock> ConsentStore<T, C> {
    /// The consents in this table; cached ones expire by the clock.
    #[must_use]
    pub fn new(table: T, clock: C) -> Self {
        Self { table, clock, cache: Mutex::default() }
    }

    fn cached(&self, key: &ConsentKey) -> Option<Cached> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn cache(&self, key: &ConsentKey, granted: Option<Granted>) {
        let cached = Cached { read_ms: self.clock.now_ms(), granted };
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), cached);
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
        // Not locked while storage is read: two readers of one key are harmless.
        let cached = self.cached(key);
        if let Some(cached) = cached.as_ref().filter(|it| it.is_fresh(self.clock.now_ms())) {
            return Ok(cached.granted.clone());
        }
        match (self.read(key).await, cached.and_then(|cached| cached.granted)) {
            (Ok(granted), _) => {
                self.cache(key, granted.clone());
                Ok(granted)
            }
            // Cached as if it were new: a table that fails is not asked with every delivery.
            (Err(_), Some(granted)) => {
                self.cache(key, Some(granted.clone()));
                Ok(Some(granted))
            }
            (Err(problem), None) => Err(ConsentError { key: key.to_string(), problem }),
        }
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        // Cached first: here the consent is valid even if the table refuses it.
        self.cache(key, Some(granted.clone()));
        let entry = Entry { text: granted.write(), expires_ms: None };
        let now_ms = self.clock.now_ms();
        let kept = self.table.replace(&key.item(), &entry, Expected::Anything, now_ms).await;
        let failure = |problem: String| ConsentError { key: key.to_string(), problem };
        kept.map(drop).map_err(|error| failure(error.to_string()))
    }
}
