//! The gate of destinations that requested a pause with `Retry-After`. The rule is in
//! `health::retry_after`.

use delivery::delivery::WaitReason;
use delivery::ports::DispatchPorts;

use super::answer::Answer;
use super::gates::{longest_wait_ms, unless_open};
use super::passage::Passage;
use super::{Destinations, can_wait};
use crate::invocation::Invocation;
use crate::progress::InFlightDelivery;

impl<P: DispatchPorts> Destinations<P> {
    /// Delays deliveries until the end of the requested pause.
    pub(super) fn ask_requested_wait(
        &self,
        due: &[InFlightDelivery],
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let most_ms = passage.subscription.retry.retry_after_max_ms;
        let now_ms = self.now_ms();
        let deferral = passage.destination.state().requested_wait.deferral(most_ms, now_ms)?;
        if !can_wait(due, invocation) {
            return None;
        }
        let wait = |in_flight| {
            // The time to live shortens the random part of the wait, but not the pause that the
            // destination requested.
            let latest_ms = now_ms.saturating_add(longest_wait_ms(in_flight, passage, now_ms));
            let until_ms = deferral.until_ms(self.ports.next_jitter()).min(latest_ms);
            Answer::Wait { until_ms: until_ms.max(deferral.from_ms), why: WaitReason::RetryAfter }
        };
        unless_open(due.iter().map(wait))
    }
}
