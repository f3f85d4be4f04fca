//! Consents, kept near the subscriptions: objects `_consents/…` of the config bucket, or files of
//! a folder `_consents`.
//!
//! Separate from dead letters because here the newest write of a key wins, and there the first;
//! and from subscriptions because these are many small documents that programs write.
//!
//! Promises: a consent that exists is read again after five minutes, so removing it withdraws it;
//! a missing one after thirty seconds, so no delivery waits long for a consent that another process
//! kept. While storage cannot be read, the consent read last is valid; without one, the answer is
//! an error. Does not validate endpoints, and does not lock: of two processes that keep a consent
//! at once, the later write wins.
//!
//! Not one type with the caches of secrets and subscriptions: here a key has no single reader, and
//! a failed reread counts as fresh for five minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{Clock, ConsentError, Consents};

use crate::machine::Machine;
use crate::storage::{Storage, StorageError};

/// A consent that exists is read again after this long.
const REREAD_AFTER_MS: u64 = 300_000;
/// A consent that is missing is looked up again after this long.
const MISSING_REREAD_AFTER_MS: u64 = 30_000;

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
pub struct ConsentStore<C = Machine> {
    storage: Storage,
    clock: C,
    cache: Mutex<HashMap<ConsentKey, Cached>>,
}

impl<C: Clock> ConsentStore<C> {
    /// The consents in this storage; cached ones expire by the clock.
    #[must_use]
    pub fn new(storage: Storage, clock: C) -> Self {
        Self { storage, clock, cache: Mutex::default() }
    }

    fn cached(&self, key: &ConsentKey) -> Option<Cached> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn cache(&self, key: &ConsentKey, granted: Option<Granted>) {
        let cached = Cached { read_ms: self.clock.now_ms(), granted };
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), cached);
    }

    async fn read(&self, key: &ConsentKey) -> Result<Option<Granted>, String> {
        match self.storage.get(key.as_str()).await {
            Ok(Some(document)) => Granted::read(&document).map(Some),
            // A missing bucket holds no consents; keeping one in it says what is wrong.
            Ok(None) | Err(StorageError::NoSuchBucket(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl<C: Clock + Send + Sync> Consents for ConsentStore<C> {
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
            // Cached as if it were new: storage that fails is not asked with every delivery.
            (Err(_), Some(granted)) => {
                self.cache(key, Some(granted.clone()));
                Ok(Some(granted))
            }
            (Err(problem), None) => Err(ConsentError { key: key.as_str().to_owned(), problem }),
        }
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        // Cached first: here the consent is valid even if storage rejects it.
        self.cache(key, Some(granted.clone()));
        let put = self.storage.put(key.as_str(), granted.write()).await;
        put.map_err(|error| ConsentError {
            key: key.as_str().to_owned(),
            problem: error.to_string(),
        })
    }
}
