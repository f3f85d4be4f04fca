//! How many requests are under way at once: so many to one destination, so many in all.
//!
//! Separate from the flow because it decides nothing about a delivery, only when its attempt may
//! begin. A destination that hangs uses up its own limit and no other of the invocation: a delivery
//! that waits for a permit of its subscription holds none of the total. A permit may come so late that
//! the invocation has no time left; the flow sees that when it asks its deadline.

mod adaptive;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::delivery::health::adaptive::{MANY, Observed};
use delivery::delivery::outcome::Exchange;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::adaptive::{AdaptivePermit, AdaptivePermits};
use crate::memory::adaptive::{Adaptive, ceiling_of};
use crate::memory::health::key_of;

/// Requests of one invocation that are under way at once, to all destinations together: each is an
/// open socket, and a function has 1,024 file descriptors. Idle connections have some as well, for
/// a while (`adapters::http`): with ten full limits just before there may be none left, and what
/// cannot connect then is retried as its policy says.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const REQUESTS_AT_ONCE: usize = 500;
/// So many bytes of events count as one more request, so that those of 500 requests stay below 32 MiB.
const BYTES_OF_A_REQUEST: usize = 64 * 1_024;

/// The limits of one invocation, one per subscription, one for all, and those of destinations that have too
/// much to do.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    total: Arc<Semaphore>,
    by_subscription: Mutex<HashMap<SubscriptionName, Arc<Semaphore>>>,
    /// Of destinations that have too much to do.
    pub(crate) adaptive: AdaptivePermits,
}

/// A permit to make requests, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _of_total: Option<OwnedSemaphorePermit>,
    _of_destination: Option<AdaptivePermit>,
    _of_subscription: Option<OwnedSemaphorePermit>,
}

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        let total = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
        Self { total, by_subscription: Mutex::default(), adaptive: AdaptivePermits::default() }
    }
}

impl ConcurrencyLimits {
    /// Waits for a permit of this subscription, then for one of its destination, if that has too much to
    /// do, then for one of the total, for a request with so many bytes of events. In this order: the other
    /// way round, a destination that hangs would hold permits of the total while it waits.
    pub(crate) async fn acquire(
        &self,
        subscription: &Subscription,
        bytes: usize,
        of_destination: impl Future<Output = Option<AdaptivePermit>>,
    ) -> Permit {
        let requests = (1 + bytes / BYTES_OF_A_REQUEST).min(REQUESTS_AT_ONCE);
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        // The semaphores are never closed; should one be, its requests are not limited.
        let of_subscription = self.limit_of(subscription).acquire_owned().await.ok();
        let of_destination = of_destination.await;
        let of_total = Arc::clone(&self.total).acquire_many_owned(requests).await.ok();
        Permit {
            _of_total: of_total,
            _of_destination: of_destination,
            _of_subscription: of_subscription,
        }
    }

    /// Whether no more requests can be made, to whichever destination.
    pub(crate) fn is_full(&self) -> bool {
        self.total.available_permits() == 0
    }

    /// Whether many requests of a subscription are under way.
    pub(crate) fn are_many_under_way(&self, subscription: &Subscription) -> bool {
        // First what needs no map: all destinations together. Large requests count as more.
        REQUESTS_AT_ONCE - self.total.available_permits() >= MANY as usize
            && self.under_way(subscription) >= MANY
    }

    fn under_way(&self, subscription: &Subscription) -> u32 {
        let free = self.limit_of(subscription).available_permits();
        let under_way = most_at_once(subscription).saturating_sub(free);
        u32::try_from(under_way).unwrap_or(u32::MAX)
    }

    /// Takes into account what an attempt showed.
    pub(crate) fn note(
        &self,
        subscription: &Subscription,
        exchange: &Exchange,
        adaptive: &Adaptive,
    ) {
        let (key, ceiling) = (key_of(subscription), ceiling_of(subscription));
        let under_way = match adaptive.limit(&key, ceiling) {
            // The others wait for a permit.
            Some(_) => self.adaptive.in_use(key),
            None => self.under_way(subscription),
        };
        let outcome = exchange.outcome(&subscription.retry);
        let (started_ms, ended_ms) = (exchange.started_ms, exchange.ended_ms());
        let observed = Observed { outcome, started_ms, ended_ms, under_way, ceiling };
        adaptive.note(&key, observed);
        self.adaptive.notify();
    }

    fn limit_of(&self, subscription: &Subscription) -> Arc<Semaphore> {
        let new = || Arc::new(Semaphore::new(most_at_once(subscription)));
        let mut limits = self.by_subscription.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked up first: `entry` would need a clone of the name every time.
        match limits.get(&subscription.name) {
            Some(limit) => Arc::clone(limit),
            None => Arc::clone(limits.entry(subscription.name.clone()).or_insert_with(new)),
        }
    }
}

/// So many deliveries of a subscription go on at once. Where all processes share a number, the table limits the
/// requests (`turns::permits`), and is asked once for all that wait here.
fn most_at_once(subscription: &Subscription) -> usize {
    match subscription.destination.max_concurrency.is_shared {
        true => REQUESTS_AT_ONCE,
        false => ceiling_of(subscription) as usize,
    }
}

#[cfg(test)]
mod tests {
    use delivery::subscription::Concurrency;
    use std::future::ready;

    use delivery::subscription::profile::Dialect;
    use futures::FutureExt as _;

    use super::*;

    fn subscription(name: &str, max_concurrency: u32) -> Subscription {
        let url = "https://example.com/".parse().unwrap();
        let mut subscription = Subscription::new(name.parse().unwrap(), Dialect::Native, url);
        subscription.destination.max_concurrency = Concurrency::of_each(max_concurrency);
        subscription
    }

    #[test]
    fn a_subscription_at_its_limit_keeps_no_other_waiting() {
        let limits = ConcurrencyLimits::default();
        let (slow, fast) = (subscription("n/t/slow", 2), subscription("n/t/fast", 600));
        let permit = |subscription| limits.acquire(subscription, 100, ready(None)).now_or_never();
        let held = [permit(&slow), permit(&slow)];
        assert!(held.iter().all(Option::is_some) && permit(&slow).is_none());
        let others: Vec<Permit> = (2..REQUESTS_AT_ONCE).map_while(|_| permit(&fast)).collect();
        assert_eq!(others.len(), REQUESTS_AT_ONCE - 2);
        assert!(permit(&fast).is_none());
        drop(held);
        assert!(permit(&fast).is_some());
    }

    #[test]
    fn what_waits_for_its_subscription_holds_nothing_of_the_total() {
        let limits = ConcurrencyLimits::default();
        let (slow, fast) = (subscription("n/t/slow", 2), subscription("n/t/fast", 1));
        let mut waiting: Vec<_> = (0..=REQUESTS_AT_ONCE)
            .map(|_| Box::pin(limits.acquire(&slow, 100, ready(None))))
            .collect();
        let held: Vec<Permit> =
            waiting.iter_mut().filter_map(|one| one.as_mut().now_or_never()).collect();
        assert_eq!(held.len(), 2);
        assert!(limits.acquire(&fast, 100, ready(None)).now_or_never().is_some());
    }

    #[test]
    fn large_events_use_up_the_total_sooner() {
        let limits = ConcurrencyLimits::default();
        let subscription = subscription("n/t/s", 600);
        let large = || limits.acquire(&subscription, 1_048_576, ready(None)).now_or_never();
        let held: Vec<Permit> = std::iter::from_fn(large).collect();
        assert_eq!(held.len(), REQUESTS_AT_ONCE / 17);
        drop(held);
        // Larger than any, but not so large that it would wait for ever.
        assert!(limits.acquire(&subscription, usize::MAX, ready(None)).now_or_never().is_some());
    }
}
