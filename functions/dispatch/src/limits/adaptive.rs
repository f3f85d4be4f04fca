//! The requests of one invocation to destinations that have too much to do.
//!
//! How many each gets is what the process remembers (`memory::adaptive`), also from this invocation: a
//! limit that changes counts at once for those that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::subscription::Subscription;
use tokio::sync::Notify;

use crate::memory::adaptive::{Adaptive, ceiling_of};
use crate::memory::health::key_of;

/// The permits that are in use.
#[derive(Debug, Default)]
pub(crate) struct AdaptivePermits(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    in_use: Mutex<HashMap<DestinationKey, u32>>,
    /// A permit was returned, or a limit has changed.
    changed: Notify,
}

impl Inner {
    fn in_use(&self) -> MutexGuard<'_, HashMap<DestinationKey, u32>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit to make one request to a destination that has too much to do, until it is dropped.
#[derive(Debug)]
pub(crate) struct AdaptivePermit {
    of: Arc<Inner>,
    key: DestinationKey,
}

impl Drop for AdaptivePermit {
    fn drop(&mut self) {
        if let Some(count) = self.of.in_use().get_mut(&self.key) {
            *count = count.saturating_sub(1);
        }
        self.of.changed.notify_waiters();
    }
}

impl AdaptivePermits {
    /// Waits for a permit of this subscription's destination; `None` if that has its whole limit.
    pub(crate) async fn acquire(
        &self,
        subscription: &Subscription,
        adaptive: &Adaptive,
    ) -> Option<AdaptivePermit> {
        // Nearly always: then no address is hashed.
        if adaptive.is_empty() {
            return None;
        }
        let (key, ceiling) = (key_of(subscription), ceiling_of(subscription));
        loop {
            // Made before the count is read, or a permit that is returned in between would be missed.
            let changed = self.0.changed.notified();
            let limit = adaptive.limit(&key, ceiling)?;
            {
                let mut in_use = self.0.in_use();
                let count = in_use.entry(key).or_default();
                if *count < limit {
                    *count += 1;
                    return Some(AdaptivePermit { of: Arc::clone(&self.0), key });
                }
            }
            changed.await;
        }
    }

    /// Waits until this subscription's destination has too much to do.
    pub(crate) async fn limited(&self, subscription: &Subscription, adaptive: &Adaptive) {
        let (mut key, ceiling) = (None, ceiling_of(subscription));
        loop {
            let changed = self.0.changed.notified();
            if !adaptive.is_empty() {
                let key = key.get_or_insert_with(|| key_of(subscription));
                if adaptive.limit(key, ceiling).is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// How many permits of a destination are in use.
    pub(crate) fn in_use(&self, key: DestinationKey) -> u32 {
        self.0.in_use().get(&key).copied().unwrap_or_default()
    }

    /// A limit may have changed.
    pub(crate) fn notify(&self) {
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::health::adaptive::Observed;
    use delivery::delivery::outcome::Outcome;
    use delivery::subscription::Concurrency;
    use delivery::subscription::profile::Dialect;
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_destination_that_has_too_much_to_do_gets_as_many_permits_as_its_limit() {
        let url = "https://example.com/".parse().unwrap();
        let name = "n/t/s".parse().unwrap();
        let mut subscription = Subscription::new(name, Dialect::Native, url);
        subscription.destination.max_concurrency = Concurrency::of_each(4);
        let key = key_of(&subscription);
        let (permits, adaptive) = (AdaptivePermits::default(), Adaptive::default());
        let acquire = || permits.acquire(&subscription, &adaptive).now_or_never();
        assert!(matches!(acquire(), Some(None)), "no limit yet");
        let (outcome, ceiling) = (Outcome::Busy, 4);
        let busy = Observed { outcome, started_ms: 1, ended_ms: 2, under_way: 4, ceiling };
        (0..2).for_each(|_| adaptive.note(&key, busy));
        assert_eq!(adaptive.limit(&key, ceiling), Some(2));
        let held = [acquire(), acquire()];
        assert!(held.iter().all(|one| matches!(one, Some(Some(_)))) && acquire().is_none());
        assert_eq!(permits.in_use(key), 2);
        drop(held);
        assert_eq!(permits.in_use(key), 0);
    }
}
