//! The passage of one request through the gates: its slots, probe, permit and credentials. Dropping
//! the passage frees slots, probe and permit.

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
    /// The server that issues the request's token, as a separate destination.
    pub(super) token_server: Option<Arc<Destination>>,
    /// True if the request goes to the subscription's destination; false for its reply address or
    /// its sink.
    pub(super) is_own: bool,
    /// True if the deliveries are published to a topic instead of sent over HTTP.
    leads_to_a_topic: bool,
    /// Slots in this process, kept while deliveries wait in place.
    pub(super) in_flight: Option<InFlightPermits>,
    /// `Some` if the request is the probe of a failing destination.
    pub(super) probe: Option<Probe>,
    /// `Some` after the credentials were fetched, successfully or not.
    pub(super) keyring: Option<Result<Keyring, Unsendable>>,
    /// True if the destination has consented to this request.
    pub(super) has_consent: bool,
    /// True if the request has a rate slot.
    pub(super) has_slot: bool,
    /// The permit of the table, if the subscription has a `maxConcurrency`.
    pub(super) permit: Option<UsedPermit>,
    /// True if the request is attempted without a permit, because it has waited in place as long as
    /// possible.
    pub(super) needs_no_permit: bool,
    /// True if a gate has made the deliveries wait in place.
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

    /// True if the deliveries are published to a topic, so that no request is made.
    pub(crate) fn leads_to_a_topic(&self) -> bool {
        self.leads_to_a_topic
    }

    /// True if the destination or the token server is slow.
    pub(super) fn is_slow(&self) -> bool {
        let is_slow = |destination: &Arc<Destination>| destination.state().slowness.is_slow();
        is_slow(&self.destination) || self.token_server.as_ref().is_some_and(is_slow)
    }

    /// Returns the latest end of the request, which is the end of its permit; `u64::MAX` without a
    /// permit.
    pub(crate) fn until_ms(&self) -> u64 {
        self.permit.as_ref().map_or(u64::MAX, UsedPermit::until_ms)
    }

    /// True if the request is a probe, which does not count towards the limits of the destination.
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

    /// Releases the probe, the permit and the credentials of one attempt. Deliveries that wait in
    /// place keep their rate slot. The request stays counted against the rate of the consent.
    pub(super) fn give_back(&mut self) {
        (self.probe, self.permit, self.keyring) = (None, None, None);
        (self.has_consent, self.needs_no_permit) = (false, false);
    }

    /// Releases everything that was granted for an attempt, including the rate slot, which is used
    /// up.
    pub(crate) fn end_attempt(&mut self) {
        self.give_back();
        self.has_slot = false;
    }

    /// Releases the slots in this process while the request stays open for a late response.
    pub(crate) fn give_back_room(&mut self) {
        self.in_flight = None;
    }

    /// Copies the last failure of a failing destination into a delivery that waits or ends.
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

/// Returns the target of a request, which all its deliveries share.
pub(super) fn target_of(waiting: &[InFlightDelivery]) -> &DeliveryTarget {
    waiting.first().map_or(&DeliveryTarget::Destination, |in_flight| &in_flight.delivery.target)
}
