//! What was looked up, and for how long it is good.
//!
//! Separate because it knows no service: it decides when the extension is asked, and who waits for
//! whose answer. There is one entry per stored text that a subscription names, so it grows as far
//! as the subscriptions do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::ports::Clock;
use delivery::subscription::secret::Secret;

use super::extension::{Extension, ExtensionError, Stored};

/// A value is asked for again after this: a rotated secret is in use everywhere within five
/// minutes, and Secrets Manager takes money per ten thousand calls.
const FRESH_MS: u64 = 5 * 60 * 1_000;
/// After a failure with a last value to use: an ill service is not asked, and waited for, with
/// every delivery.
const STALE_MS: u64 = 30 * 1_000;
/// After a failure without one: long enough for one question per batch, short enough for whoever is
/// mending it.
const FAILED_MS: u64 = 3 * 1_000;

/// The last value of each stored text, or why there is none.
#[derive(Default)]
pub(super) struct Cache {
    entries: Mutex<BTreeMap<Stored, Arc<tokio::sync::Mutex<Entry>>>>,
}

/// What is known of one stored text.
#[derive(Default)]
struct Entry {
    value: Option<Secret>,
    last: Option<Look>,
}

/// The last time that the extension was asked.
struct Look {
    at_ms: u64,
    problem: Option<ExtensionError>,
}

impl Cache {
    /// The value, asked for unless that was done a short while ago. Whoever comes while somebody
    /// asks waits for the same answer.
    pub(super) async fn get(
        &self,
        stored: Stored,
        extension: &Extension,
        clock: &impl Clock,
    ) -> Result<Secret, ExtensionError> {
        let entry = self.entry(&stored);
        let mut entry = entry.lock().await;
        if entry.is_due(clock.now_ms()) {
            let asked = extension.ask(&stored, clock).await;
            entry.note(asked, clock.now_ms(), &stored);
        }
        entry.answer()
    }

    fn entry(&self, stored: &Stored) -> Arc<tokio::sync::Mutex<Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(entries.entry(stored.clone()).or_default())
    }
}

impl Entry {
    fn is_due(&self, now_ms: u64) -> bool {
        let Some(look) = &self.last else { return true };
        let good_for_ms = match (&look.problem, &self.value) {
            (None, _) => FRESH_MS,
            (Some(_), Some(_)) => STALE_MS,
            (Some(_), None) => FAILED_MS,
        };
        // A clock that was set back must not make a value good for longer.
        now_ms.abs_diff(look.at_ms) >= good_for_ms
    }

    fn note(&mut self, asked: Result<Secret, ExtensionError>, at_ms: u64, stored: &Stored) {
        let problem = match asked {
            Ok(value) => {
                self.value = Some(value);
                None
            }
            Err(problem) => Some(problem),
        };
        if let (Some(problem), Some(_)) = (&problem, &self.value) {
            tracing::warn!(secret = %stored, problem = %problem, "secret.stale");
        }
        self.last = Some(Look { at_ms, problem });
    }

    fn answer(&self) -> Result<Secret, ExtensionError> {
        let problem = self.last.as_ref().and_then(|look| look.problem.clone());
        self.value.clone().ok_or_else(|| problem.unwrap_or(ExtensionError::Unreadable))
    }
}
