//! How many requests are under way at once: so many to one destination, so many in all.
//!
//! Separate from the flow because it decides nothing about a delivery, only when its turn comes. A
//! destination that hangs fills its own lane and no other of the invocation: whoever waits for a
//! place in a lane holds none of the places of all. A turn may come so late that the invocation has
//! no time left; the flow sees that when it asks its deadline.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests of one invocation that are under way at once, to all destinations together: each is an
/// open socket, and a function has 1,024 file descriptors. Connections that rest have some as well,
/// for a while (`adapters::http`): with ten full lanes just before there may be none left, and what
/// cannot connect then is tried again as its policy says.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const REQUESTS_AT_ONCE: usize = 500;

/// The lanes of one invocation, one per subscription.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    all: Arc<Semaphore>,
    limits: Mutex<HashMap<SubscriptionName, Arc<Semaphore>>>,
}

/// A turn; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _of_all: Option<OwnedSemaphorePermit>,
    _of_lane: Option<OwnedSemaphorePermit>,
}

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(REQUESTS_AT_ONCE)), limits: Mutex::default() }
    }
}

impl ConcurrencyLimits {
    /// Waits for a turn of this subscription: first in its lane, then among all.
    pub(crate) async fn turn(&self, subscription: &Subscription) -> Permit {
        let lane = self.lane(subscription);
        // A semaphore that nobody closes always gives a permit; should one be closed, nobody has to
        // wait for it.
        let of_lane = lane.acquire_owned().await.ok();
        Permit { _of_lane: of_lane, _of_all: Arc::clone(&self.all).acquire_owned().await.ok() }
    }

    fn lane(&self, subscription: &Subscription) -> Arc<Semaphore> {
        let wide =
            || Arc::new(Semaphore::new(subscription.destination.max_concurrency.max(1) as usize));
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        match limits.get(&subscription.name) {
            Some(lane) => Arc::clone(lane),
            None => Arc::clone(limits.entry(subscription.name.clone()).or_insert_with(wide)),
        }
    }
}

#[cfg(test)]
mod tests {
    use delivery::subscription::profile::Dialect;
    use futures::FutureExt as _;

    use super::*;

    fn subscription(name: &str, max_concurrency: u32) -> Subscription {
        let url = "https://example.com/".parse().unwrap();
        let mut subscription = Subscription::new(name.parse().unwrap(), Dialect::Native, url);
        subscription.destination.max_concurrency = max_concurrency;
        subscription
    }

    #[test]
    fn a_full_lane_lets_nobody_else_wait() {
        let (limits, slow, fast) = (
            ConcurrencyLimits::default(),
            subscription("n/t/slow", 2),
            subscription("n/t/fast", 600),
        );
        let turn = |subscription| limits.turn(subscription).now_or_never();
        let held = [turn(&slow), turn(&slow)];
        assert!(held.iter().all(Option::is_some) && turn(&slow).is_none());
        let others: Vec<Permit> = (2..REQUESTS_AT_ONCE).map_while(|_| turn(&fast)).collect();
        assert_eq!(others.len(), REQUESTS_AT_ONCE - 2);
        assert!(turn(&fast).is_none());
        drop(held);
        assert!(turn(&fast).is_some());
    }
}
