//! The gate of slow destinations, whose deliveries are attempted from a separate queue. The rule is
//! in `health::slow`.

use adapters::telemetry;
use delivery::delivery::health::shared::Attempted;
use delivery::ports::DispatchPorts;

use super::Destinations;
use super::answer::Answer;
use super::gates::unless_open;
use super::passage::Passage;
use crate::invocation::Invocation;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

impl<P: DispatchPorts> Destinations<P> {
    /// Moves deliveries to the slow lane if their destination is slow, or their last attempt was
    /// abandoned.
    pub(super) fn ask_slow_lane(
        &self,
        due: &[InFlightDelivery],
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let was_abandoned = || due.iter().any(|in_flight| in_flight.delivery.abandoned);
        if passage.is_probe() || !(passage.is_slow() || was_abandoned()) {
            return None;
        }
        let answer =
            |in_flight| match self.moves_to_slow_lane(in_flight, due.len(), passage, invocation) {
                true => Answer::Slow,
                false => Answer::Open,
            };
        unless_open(due.iter().map(answer))
    }

    /// True if the delivery is to be attempted in the slow lane instead of here. `events` is the
    /// number of events of its request.
    pub(super) fn moves_to_slow_lane(
        &self,
        in_flight: &InFlightDelivery,
        events: usize,
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) -> bool {
        self.slow_lane.may_move(invocation.queue, events, self.now_ms())
            && (in_flight.delivery.abandoned || passage.is_slow())
            && fits_a_message(&in_flight.delivery)
    }

    /// Records that an attempt is abandoned. Returns false, and records nothing, if this process
    /// has already abandoned an attempt in this slow period.
    pub(crate) fn abandon(&self, passage: &Passage, started_ms: u64) -> bool {
        let (destination, now_ms) = (&passage.destination, self.now_ms());
        let mut state = destination.state();
        if !state.slowness.may_abandon() {
            return false;
        }
        if let Some(found) = state.slowness.note_abandoned(now_ms) {
            let findings = state.findings(destination, &passage.subscription);
            findings.slow = Some((found, now_ms));
            findings.add_attempt(Attempted::abandoned(started_ms, now_ms));
            drop(state);
            destination.note_unshared();
            let name = &passage.subscription.name;
            telemetry::slow_destination(name, destination.address(), found);
        }
        true
    }
}
