//! The passage of one request through the gates: its room, probe, permit and credentials. Dropping
//! the passage returns room, probe and permit.

use std::sync::Arc;

use delivery::delivery::DeliveryTarget;
use delivery::delivery::outcome::Unsendable;
use delivery::subscription::Subscription;
use delivery::subscription::secret::Keyring;

use super::in_flight::InFlightPermits;
use super::known::Destination;
use super::permits::UsedPermit;
use super::probation::Probe;
use crate::progress::InFlightDelivery;

#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) destination: Arc<Destination>,
    /// The server of the request's token, which is a destination of its own.
    pub(super) token_server: Option<Arc<Destination>>,
    /// True if the request goes to the subscription's destination, not to its reply address or its
    /// sink.
    pub(super) is_own: bool,
    /// True if the deliveries are published to a topic.
    leads_to_a_topic: bool,
    /// Room in this process, kept while deliveries wait in place.
    pub(super) in_flight: Option<InFlightPermits>,
    /// `Some` if one delivery is the probe of the destination.
    pub(super) probe: Option<Probe>,
    /// `Some` once the credentials were fetched, or failed.
    pub(super) keyring: Option<Result<Keyring, Unsendable>>,
    /// True if the destination has consented to this request.
    pub(super) has_consent: bool,
    /// True if the request has a slot of the rate.
    pub(super) has_slot: bool,
    /// The permit for `maxConcurrency`.
    pub(super) permit: Option<UsedPermit>,
    /// True if the request has waited in place for a permit as long as possible, and is attempted
    /// without one.
    pub(super) needs_no_permit: bool,
    /// True if a gate has kept the deliveries waiting in place.
    pub(super) has_waited: bool,
}

impl Passage {
    pub(super) fn new(
        subscription: &Arc<Subscription>,
        target: &DeliveryTarget,
        destination: Arc<Destination>,
        token_server: Option<Arc<Destination>>,
    ) -> Self {
        Self {
            subscription: Arc::clone(subscription),
            destination,
            token_server,
            is_own: *target == DeliveryTarget::Destination,
            leads_to_a_topic: target.topic(subscription).is_some(),
            in_flight: None,
            probe: None,
            keyring: None,
            has_consent: false,
            has_slot: false,
            permit: None,
            needs_no_permit: false,
            has_waited: false,
        }
    }

    /// True if the deliveries go to a topic, so that no request is made.
    pub(crate) fn leads_to_a_topic(&self) -> bool {
        self.leads_to_a_topic
    }

    /// True if the destination or the token server is slow.
    pub(super) fn is_slow(&self) -> bool {
        let is_slow = |of: &Arc<Destination>| of.state().slowness.is_slow();
        is_slow(&self.destination) || self.token_server.as_ref().is_some_and(is_slow)
    }

    /// Latest end of the request: the end of its permit.
    pub(crate) fn until_ms(&self) -> u64 {
        self.permit.as_ref().map_or(u64::MAX, UsedPermit::until_ms)
    }

    /// True for a probe, which does not count towards the limits of the destination.
    pub(super) fn is_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Removes and returns the credentials of the request; empty if it needs none.
    pub(crate) fn take_keyring(&mut self) -> Result<Keyring, Unsendable> {
        self.keyring.take().unwrap_or_else(|| Ok(Keyring::default()))
    }

    /// True if failures can put the destination on probation.
    pub(super) fn has_probation(&self) -> bool {
        self.subscription.destination.probation
    }

    /// Returns the grants of one attempt. Deliveries that wait in place keep their slot. The used
    /// consent is not returned.
    pub(super) fn give_back(&mut self) {
        (self.probe, self.permit, self.keyring) = (None, None, None);
        (self.has_consent, self.needs_no_permit) = (false, false);
    }

    /// Returns the grants after an attempt. The slot is used up too.
    pub(crate) fn end_attempt(&mut self) {
        self.give_back();
        self.has_slot = false;
    }

    /// Returns the room in this process while the request stays open for a late response.
    pub(crate) fn give_back_room(&mut self) {
        self.in_flight = None;
    }

    /// Copies the last failure of a failing destination to a delivery that waits or ends.
    pub(crate) fn note_failing(&self, in_flight: &mut InFlightDelivery) {
        let state = self.destination.state();
        if let Some(failing) = &state.last_failure
            && state.failures.is_failing()
        {
            in_flight.delivery.failing = Some(failing.clone());
        }
    }

    pub(super) fn take_has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }
}

/// Returns the target that all deliveries of a request share.
pub(super) fn target_of(waiting: &[InFlightDelivery]) -> &DeliveryTarget {
    waiting.first().map_or(&DeliveryTarget::Destination, |one| &one.delivery.target)
}
