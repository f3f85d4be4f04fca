//! The destinations in the memory of this process: one value for each namespace and address, across
//! invocations.
//!
//! A reply address or a sink is a separate destination. There are at most [`KNOWN_MAX`] values. The
//! least recently used value is dropped first, together with its health.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::adaptive::AdaptiveLimit;
use delivery::delivery::health::probation::Failures;
use delivery::delivery::health::retry_after::RequestedWait;
use delivery::delivery::health::shared::Findings;
use delivery::delivery::health::slow::Slowness;
use delivery::delivery::{DeliveryTarget, FailingDestination};
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription, addressed};
use delivery::table::Report;
use delivery::time::duration::SECOND_MS;
use lru::LruCache;
use url::Url;

use super::consent::ConsentGates;
use super::in_flight::InFlight;
use super::permits::OwnPermits;
use super::recovering;
use super::slots::OwnSlots;

/// Time after which a query of the table normally contains a write: queries are eventually
/// consistent.
const SETTLED_MS: u64 = SECOND_MS;
/// Maximum number of destinations in memory.
const KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(4_096).expect("it is not zero");

#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) key: DestinationKey,
    pub(super) namespace: String,
    /// The address for logs, without credentials and query. Set by the first delivery.
    address: OnceLock<String>,
    state: Mutex<State>,
    /// Slots for concurrent requests of this process.
    pub(super) in_flight: Arc<InFlight>,
    /// Slots for requests that also need a permit of the table (`maxConcurrency`).
    pub(super) counted: Arc<InFlight>,
    /// Unused rate slots of this process for `maxPerSecond`. The slots in `recovery` are for the
    /// rate during a recovery.
    pub(super) slots: OwnSlots,
    pub(super) recovery: OwnSlots,
    /// Permits that this process holds (`maxConcurrency`).
    pub(super) permits: Arc<OwnPermits>,
    /// The validation states of this address.
    pub(super) consents: ConsentGates,
    unshared: Arc<Unshared>,
}

/// The health of a destination in this process.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) failures: Failures,
    pub(crate) slowness: Slowness,
    pub(crate) requested_wait: RequestedWait,
    pub(crate) adaptive: AdaptiveLimit,
    /// The current recovery from an outage, with results that are not yet reported to the table.
    pub(crate) recovering: Option<Report>,
    /// The last failure since the last success, in this process or another.
    pub(crate) last_failure: Option<FailingDestination>,
    /// Findings that are not yet published to other processes.
    pub(crate) findings: Option<Findings>,
    /// A read of the published changes that begins earlier may be older than this state.
    reads_from_ms: u64,
    /// Time at which the current series of failures was last published.
    pub(crate) streak_published_ms: Option<u64>,
}

/// Destinations with unpublished findings. One destination may have two entries, if its first value
/// was dropped from memory during a request.
#[derive(Debug, Default)]
struct Unshared(Mutex<BTreeMap<(DestinationKey, usize), Arc<Destination>>>);

#[derive(Debug)]
pub(crate) struct KnownDestinations {
    known: Mutex<LruCache<DestinationKey, Arc<Destination>>>,
    unshared: Arc<Unshared>,
}

impl Default for KnownDestinations {
    fn default() -> Self {
        Self { known: Mutex::new(LruCache::new(KNOWN_MAX)), unshared: Arc::default() }
    }
}

impl KnownDestinations {
    /// Returns the destination for `target` of a subscription.
    pub(super) fn of_target(
        &self,
        subscription: &Subscription,
        target: &DeliveryTarget,
    ) -> Arc<Destination> {
        let key = DestinationKey::of_target(subscription, target);
        let destination = self.get(key, &subscription.name.topic.namespace);
        destination.address.get_or_init(|| display(subscription, target));
        destination
    }

    /// Returns the destination with the address `url`. Its namespace is the namespace of the
    /// subscription `name`.
    pub(super) fn of_address(&self, name: &SubscriptionName, url: &Url) -> Arc<Destination> {
        let namespace = &name.topic.namespace;
        let destination = self.get(DestinationKey::new(namespace, url), namespace);
        destination.address.get_or_init(|| addressed(url, false));
        destination
    }

    /// Returns the destination with this key. Creates the destination if it is not in memory.
    pub(crate) fn get(&self, key: DestinationKey, namespace: &str) -> Arc<Destination> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Destination::new(key, namespace, &self.unshared));
        Arc::clone(known.get_or_insert(key, new))
    }

    /// Returns the destination with this key; `None` if it is not in memory. Unlike `get`, does not
    /// mark the destination as used.
    pub(crate) fn find(&self, key: DestinationKey) -> Option<Arc<Destination>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.peek(&key).map(Arc::clone)
    }

    /// Removes and returns the destinations with unpublished findings.
    pub(crate) fn take_unshared(&self) -> Vec<Arc<Destination>> {
        std::mem::take(&mut *self.unshared.lock()).into_values().collect()
    }
}

impl Unshared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(DestinationKey, usize), Arc<Destination>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Destination {
    fn new(key: DestinationKey, namespace: &str, unshared: &Arc<Unshared>) -> Self {
        Self {
            key,
            namespace: namespace.to_owned(),
            address: OnceLock::new(),
            state: Mutex::default(),
            in_flight: Arc::default(),
            counted: Arc::default(),
            slots: OwnSlots::default(),
            recovery: OwnSlots::default(),
            permits: Arc::default(),
            consents: ConsentGates::default(),
            unshared: Arc::clone(unshared),
        }
    }

    /// Returns the address without credentials and query.
    pub(super) fn address(&self) -> &str {
        self.address.get().map_or("", String::as_str)
    }

    /// Locks the health of the destination. The guard must not be held across an `await`.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the destination for the next publication of findings.
    pub(crate) fn note_unshared(self: &Arc<Self>) {
        self.unshared.lock().insert((self.key, Arc::as_ptr(self).addr()), Arc::clone(self));
    }
}

impl State {
    /// True if a read of the published changes that began at `read_ms` may be older than this state.
    pub(crate) fn is_newer_than(&self, read_ms: u64) -> bool {
        self.findings.is_some() || read_ms < self.reads_from_ms
    }

    /// Records that the state of this process became newer than earlier reads of the published
    /// changes.
    pub(crate) fn note_newer(&mut self, now_ms: u64) {
        self.reads_from_ms = self.reads_from_ms.max(now_ms.saturating_add(SETTLED_MS));
    }

    /// Returns the unpublished findings. Creates empty ones if there are none.
    pub(super) fn findings(
        &mut self,
        destination: &Destination,
        subscription: &Subscription,
    ) -> &mut Findings {
        self.findings.get_or_insert_with(|| {
            Findings::new(destination.address().to_owned(), subscription.name.to_string())
        })
    }

    /// True if the destination has no recent failures, and is neither slow, overloaded nor
    /// recovering.
    pub(super) fn is_quiet(&self, now_ms: u64) -> bool {
        self.failures.is_none()
            && !self.slowness.is_slow()
            && !self.adaptive.is_watched()
            && self.streak_published_ms.is_none()
            && recovering::report(self, now_ms).is_none()
    }
}

/// Formats the address of `target` without credentials and query.
fn display(subscription: &Subscription, target: &DeliveryTarget) -> String {
    let policy = &subscription.dead_letter;
    match (target, &subscription.reply, &policy.sink) {
        (DeliveryTarget::Reply, Some(ReplyTo::Address(url)), _) => {
            addressed(url, subscription.destination.hide_path)
        }
        (DeliveryTarget::Sink(_), _, Sink::Address(url)) => addressed(url, policy.hide_path),
        (DeliveryTarget::Destination | DeliveryTarget::Reply | DeliveryTarget::Sink(_), ..) => {
            subscription.destination.display()
        }
    }
}

#[cfg(test)]
mod tests {
    use delivery::subscription::profile::Dialect;

    use super::*;

    fn subscription(name: &str) -> Subscription {
        let url = "https://example.com/in?code=7".parse().unwrap();
        let mut subscription = Subscription::new(name.parse().unwrap(), Dialect::Native, url);
        let replies = "https://replies.example.com/".parse().unwrap();
        subscription.reply = Some(ReplyTo::Address(replies));
        subscription
    }

    #[test]
    fn a_read_may_be_older_until_a_second_after_the_state_changed() {
        let mut state = State::default();
        assert!(!state.is_newer_than(0));
        state.note_newer(5_000);
        assert!(state.is_newer_than(5_999) && !state.is_newer_than(6_000));
        state.note_newer(1_000);
        assert!(state.is_newer_than(5_999), "the clock was set back");
    }

    #[test]
    fn a_value_is_that_of_a_namespace_and_an_address() {
        let (known, target) = (KnownDestinations::default(), DeliveryTarget::Destination);
        let destination = |name: &str, target| known.of_target(&subscription(name), target);
        let first = destination("n/t/s", &target);
        assert!(Arc::ptr_eq(&first, &destination("n/u/other", &target)));
        assert!(!Arc::ptr_eq(&first, &destination("m/t/s", &target)));
        let replies = destination("n/t/s", &DeliveryTarget::Reply);
        assert!(!Arc::ptr_eq(&first, &replies));
        assert_eq!(
            [first.address(), replies.address()],
            ["https://example.com/in", "https://replies.example.com/"]
        );
    }

    #[test]
    fn the_value_that_was_used_least_recently_is_dropped_but_not_what_is_to_be_told() {
        let (known, target) = (KnownDestinations::default(), DeliveryTarget::Destination);
        let first = known.of_target(&subscription("n/t/s"), &target);
        first.note_unshared();
        let key = |number: usize| {
            DestinationKey::new("n", &format!("https://{number}.example.com/").parse().unwrap())
        };
        for number in 0..KNOWN_MAX.get() {
            known.get(key(number), "n");
        }
        assert!(known.find(first.key).is_none() && known.find(key(0)).is_some());
        assert!(known.take_unshared().iter().any(|destination| Arc::ptr_eq(destination, &first)));
        assert!(known.take_unshared().is_empty());
    }
}
