//! The cached values, and for how long each is used.
//!
//! Separate because it knows no service: it says when the extension is called, and who waits for
//! whose result. There is one entry per secret that a subscription names, so its size is bounded
//! by the subscriptions.
//!
//! Not one type with the caches of consents and subscriptions: here each key has an entry and a
//! lock of its own, and a failure is cached for 3 s or 30 s.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::ports::Clock;
use delivery::subscription::secret::Secret;

use super::extension::{Extension, ExtensionError, SecretId};

/// A value is refreshed after this long: a rotated secret is in use everywhere within five minutes,
/// and Secrets Manager charges per ten thousand calls.
const FRESH_MS: u64 = 5 * 60 * 1_000;
/// The same after a failure with a last value to use: a failing service must not be called, and
/// waited for, with every delivery.
const STALE_MS: u64 = 30 * 1_000;
/// The same after a failure without one: long enough for one call per batch, short enough
/// that a repair takes effect soon.
const FAILED_MS: u64 = 3 * 1_000;

/// The last value of each secret, or why there is none.
#[derive(Default)]
pub(super) struct Cache {
    entries: Mutex<BTreeMap<SecretId, Arc<tokio::sync::Mutex<Entry>>>>,
}

/// What is known of one secret.
#[derive(Default)]
struct Entry {
    value: Option<Secret>,
    /// When the extension was called last.
    called_ms: Option<u64>,
    /// What went wrong then.
    problem: Option<ExtensionError>,
}

impl Cache {
    /// The value, refreshed if that is due. The entry is locked meanwhile, so one caller calls the
    /// extension and the others wait for its result.
    pub(super) async fn get(
        &self,
        id: SecretId,
        extension: &Extension,
        clock: &impl Clock,
    ) -> Result<Secret, ExtensionError> {
        // The map is locked for the look-up alone: other secrets do not wait for this one.
        let entry = self.entry(&id);
        // An async mutex, because it is held across the call.
        let mut entry = entry.lock().await;
        if entry.is_due(clock.now_ms()) {
            let fetched = extension.fetch(&id, clock).await;
            entry.update(fetched, clock.now_ms(), &id);
        }
        entry.result()
    }

    fn entry(&self, id: &SecretId) -> Arc<tokio::sync::Mutex<Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(entries.entry(id.clone()).or_default())
    }
}

impl Entry {
    fn is_due(&self, now_ms: u64) -> bool {
        let Some(called_ms) = self.called_ms else { return true };
        let fresh_for_ms = match (&self.problem, &self.value) {
            (None, _) => FRESH_MS,
            (Some(_), Some(_)) => STALE_MS,
            (Some(_), None) => FAILED_MS,
        };
        // A clock that is set back must not make a value valid for longer.
        now_ms.abs_diff(called_ms) >= fresh_for_ms
    }

    fn update(&mut self, fetched: Result<Secret, ExtensionError>, at_ms: u64, id: &SecretId) {
        self.called_ms = Some(at_ms);
        self.problem = fetched.map(|value| self.value = Some(value)).err();
        if let (Some(problem), Some(_)) = (&self.problem, &self.value) {
            tracing::warn!(secret = %id, problem = %problem, "secret.stale");
        }
    }

    fn result(&self) -> Result<Secret, ExtensionError> {
        let problem = || self.problem.clone().unwrap_or(ExtensionError::Unreadable);
        self.value.clone().ok_or_else(problem)
    }
}
