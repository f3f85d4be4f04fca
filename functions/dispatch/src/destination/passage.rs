//! The passage of one request through the gates: its room, probe, permit and credentials. Dropping it returns all of them.

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

/// The passage of one request through the gates.
#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) subscription: Arc<Subscription>,
    /// The address that the request goes to.
    pub(crate) destination: Arc<Destination>,
    /// The server of the token that the request needs, which is a destination of its own.
    pub(super) token_server: Option<Arc<Destination>>,
    /// The request goes to the subscription's destination, and not to its reply address or its sink.
    pub(super) is_own: bool,
    /// The deliveries are published on a topic.
    leads_to_a_topic: bool,
    /// The room of this process; kept while deliveries wait in place.
    pub(super) in_flight: Option<InFlightPermits>,
    /// Present if one of its deliveries is the probe of its destination.
    pub(super) probe: Option<Probe>,
    /// The credentials of the request, once they are available.
    pub(super) keyring: Option<Result<Keyring, Unsendable>>,
    /// The destination has consented to this request.
    pub(super) has_consent: bool,
    /// The slot of its rate.
    pub(super) has_slot: bool,
    /// The permit that all functions together share.
    pub(super) permit: Option<UsedPermit>,
    /// It waited for a permit as long as it can, and is attempted without one.
    pub(super) needs_no_permit: bool,
    /// A gate kept the deliveries waiting in place.
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

    /// True if no request is made, because the deliveries go to a topic.
    pub(crate) fn leads_to_a_topic(&self) -> bool {
        self.leads_to_a_topic
    }

    /// True if the destination is slow to respond, or the server of the token is.
    pub(super) fn is_slow(&self) -> bool {
        let is_slow = |of: &Arc<Destination>| of.state().slowness.is_slow();
        is_slow(&self.destination) || self.token_server.as_ref().is_some_and(is_slow)
    }

    /// Latest end of the request, because its permit ends then.
    pub(crate) fn until_ms(&self) -> u64 {
        self.permit.as_ref().map_or(u64::MAX, UsedPermit::until_ms)
    }

    /// True for a probe, which the limits of the destination do not count.
    pub(super) fn is_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Removes and returns the credentials of the request; empty if it needs none.
    pub(crate) fn take_keyring(&mut self) -> Result<Keyring, Unsendable> {
        self.keyring.take().unwrap_or_else(|| Ok(Keyring::default()))
    }

    /// True if failures put the destination on probation.
    pub(super) fn has_probation(&self) -> bool {
        self.subscription.destination.probation
    }

    /// Returns the permits of one attempt. Deliveries that wait in place keep their slot. The consent remains used up.
    pub(super) fn give_back(&mut self) {
        (self.probe, self.permit, self.keyring) = (None, None, None);
        (self.has_consent, self.needs_no_permit) = (false, false);
    }

    /// Returns the permits after an attempt. Its slot is used up, too.
    pub(crate) fn end_attempt(&mut self) {
        self.give_back();
        self.has_slot = false;
    }

    /// Returns the room in this process: the response may still come late.
    pub(crate) fn give_back_room(&mut self) {
        self.in_flight = None;
    }

    /// Notes in a delivery that is put off, or ends, what the destination does to others.
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

/// The target of a request, which all of its deliveries share.
pub(super) fn target_of(waiting: &[InFlightDelivery]) -> &DeliveryTarget {
    waiting.first().map_or(&DeliveryTarget::Destination, |one| &one.delivery.target)
}
