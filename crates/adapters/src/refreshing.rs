//! A cache of values by key. One caller at a time fetches the value of a key. A value is fetched
//! again on the first use after its validity ends.
//!
//! Secrets and consents use this cache; token states use its map ([`Keyed`]). The cache holds at
//! most [`KEYS_MAX`] keys, and evicts the least recently used one.
//!
//! Promises: callers of one key share one fetch (single flight), and do not block callers of other
//! keys. If a refresh fails, the last good value is used. A failure is cached briefly, so that a
//! failing service is not called for every delivery.

use std::fmt;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::ports::Clock;
use lru::LruCache;

/// Maximum number of keys in a cache: enough for four thousand destinations, each with a secret or
/// a consent.
const KEYS_MAX: NonZeroUsize = NonZeroUsize::new(4_096).expect("more than none");
/// Time until the next fetch after a failed refresh.
const STALE_MS: u64 = 30 * 1_000;
/// Time until the next fetch after a failure without a last good value: long enough for one call
/// per batch, short enough that a repair takes effect soon.
const FAILED_MS: u64 = 3 * 1_000;

/// A state for each key. One caller at a time may use a state.
#[derive(Debug)]
pub(crate) struct Keyed<K: Eq + Hash, S>(Mutex<LruCache<K, Arc<tokio::sync::Mutex<S>>>>);

impl<K: Eq + Hash, S> Default for Keyed<K, S> {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEYS_MAX)))
    }
}

impl<K: Clone + Eq + Hash, S: Default> Keyed<K, S> {
    /// Returns the state of a key; creates it if it is missing. The mutex is asynchronous, because
    /// callers hold it during a fetch.
    pub(crate) fn state(&self, key: &K) -> Arc<tokio::sync::Mutex<S>> {
        // Locked only for the look-up, so that other keys do not wait.
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(states.get_or_insert_ref(key, Arc::default))
    }
}

/// A cache that refreshes its values. `Debug` shows no value, because a value may be a secret.
pub(crate) struct Refreshing<K: Eq + Hash, V, E> {
    fetched: Keyed<K, Option<Fetched<V, E>>>,
    /// Returns the duration in milliseconds for which a fetched value is used without a new fetch.
    fresh_ms: fn(&V) -> u64,
    /// Returns true if a value may still be used after a failed refresh.
    is_last_good: fn(&V) -> bool,
}

/// The result of the last fetch, or the last good value if that fetch failed.
struct Fetched<V, E> {
    result: Result<V, E>,
    at_ms: u64,
    used_for_ms: u64,
}

impl<K: Eq + Hash, V, E> fmt::Debug for Refreshing<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refreshing(…)")
    }
}

impl<K: Clone + Eq + Hash, V: Clone, E: Clone> Refreshing<K, V, E> {
    pub(crate) fn new(fresh_ms: fn(&V) -> u64, is_last_good: fn(&V) -> bool) -> Self {
        Self { fetched: Keyed::default(), fresh_ms, is_last_good }
    }

    /// Returns the value of a key. Fetches the value first if that is due. If the fetch fails,
    /// returns the last good value and calls `on_stale` with the problem.
    ///
    /// # Errors
    /// Returns the problem of the last fetch if there is no value to use.
    pub(crate) async fn get(
        &self,
        key: &K,
        clock: &impl Clock,
        fetch: impl AsyncFnOnce() -> Result<V, E>,
        on_stale: impl FnOnce(&E),
    ) -> Result<V, E> {
        let state = self.fetched.state(key);
        let mut last = state.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.is_fresh(clock.now_ms())) {
            return last.result.clone();
        }
        // Cloned, because a caller may drop the fetch, and the value must remain for the next
        // caller.
        let last_good = last.as_ref().and_then(|last| last.result.clone().ok());
        let last_good = last_good.filter(self.is_last_good);
        let (result, used_for_ms) = match (fetch().await, last_good) {
            (Ok(value), _) => {
                let fresh_ms = (self.fresh_ms)(&value);
                (Ok(value), fresh_ms)
            }
            (Err(problem), Some(value)) => {
                on_stale(&problem);
                (Ok(value), STALE_MS)
            }
            (Err(problem), None) => (Err(problem), FAILED_MS),
        };
        *last = Some(Fetched { result: result.clone(), at_ms: clock.now_ms(), used_for_ms });
        result
    }

    /// Replaces the cached value of a key.
    pub(crate) async fn put(&self, key: &K, clock: &impl Clock, value: V) {
        let used_for_ms = (self.fresh_ms)(&value);
        let fetched = Fetched { result: Ok(value), at_ms: clock.now_ms(), used_for_ms };
        *self.fetched.state(key).lock().await = Some(fetched);
    }
}

impl<V, E> Fetched<V, E> {
    /// True if the result needs no new fetch. Uses the absolute difference, so that a clock that is
    /// set back does not extend the validity.
    fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.at_ms) < self.used_for_ms
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// A clock that stands still.
    struct Stopped;

    impl Clock for Stopped {
        fn now_ms(&self) -> u64 {
            KNOWN_FOR_MS
        }

        async fn sleep(&self, _: u64) {}
    }

    const KNOWN_FOR_MS: u64 = 1_000_000;

    #[tokio::test]
    async fn who_gives_up_while_it_fetches_does_not_lose_the_last_good_value() {
        // A value is never fresh.
        let values = Refreshing::<u8, &str, &str>::new(|_| 0, |_| true);
        values.put(&1, &Stopped, "good").await;
        let given_up = values.get(&1, &Stopped, async || std::future::pending().await, |_| {});
        assert!(given_up.now_or_never().is_none());
        let next = values.get(&1, &Stopped, async || Err("it fails"), |_| {}).await;
        assert_eq!(next, Ok("good"));
    }

    #[test]
    fn the_key_that_nobody_used_for_longest_is_forgotten() {
        let keyed = Keyed::<usize, usize>::default();
        let used = keyed.state(&0);
        (1..KEYS_MAX.get()).for_each(|key| drop(keyed.state(&key)));
        assert!(Arc::ptr_eq(&used, &keyed.state(&0)));
        drop(keyed.state(&KEYS_MAX.get()));
        assert!(Arc::ptr_eq(&used, &keyed.state(&0)), "1 was used before it");
        assert_eq!(keyed.0.lock().expect("no panic").len(), KEYS_MAX.get());
    }
}
