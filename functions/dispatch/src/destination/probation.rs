//! The gate of destinations that keep failing. The rule is in `health::probation`.
//!
//! At the end of a probation period, one delivery becomes the probe for all processes. Its process
//! claims the probe in the item of the destination. If the table is unreachable, each process
//! probes by itself.

use std::sync::Arc;

use delivery::delivery::WaitReason;
use delivery::delivery::health::probation::{Admission, Deferral, PROBE_MS};
use delivery::delivery::health::shared::{Claim, DestinationState, Spell};
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::time::duration::MINUTE_MS;
use futures::FutureExt as _;

use super::answer::Answer;
use super::gates::{longest_wait_ms, unless_open};
use super::known::Destination;
use super::passage::Passage;
use super::{Destinations, recovering};
use crate::deadline::Deadline;
use crate::invocation::Invocation;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;
use crate::table::Unreachable;

/// Margin between the latest end of an attempt and the end of its claim.
const CLAIM_MARGIN_MS: u64 = MINUTE_MS;

/// The right of a request to probe its destination. If the value is dropped without an outcome, for
/// example in a panic, another delivery may probe. Otherwise this process would make no attempt at
/// the destination for 15 minutes.
#[derive(Debug)]
pub(crate) struct Probe {
    destination: Arc<Destination>,
    subscription: Arc<Subscription>,
    /// True after a successful claim, even if the table was unreachable.
    is_claimed: bool,
    is_made: bool,
}

/// The result of claiming the probe of a destination.
#[derive(Debug, Clone, Copy)]
enum Claimed {
    /// This process has the probe of the destination.
    Mine,
    /// Another process probes the destination or has just probed it, so the delivery is deferred.
    ByOthers(Deferral),
    /// The destination works again, so the gate of the rate decides.
    Recovered,
}

impl Probe {
    fn new(passage: &Passage) -> Self {
        Self {
            destination: Arc::clone(&passage.destination),
            subscription: Arc::clone(&passage.subscription),
            is_claimed: false,
            is_made: false,
        }
    }

    /// Marks the probe as used, after its outcome was recorded.
    pub(super) fn made(mut self) {
        self.is_made = true;
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if self.is_made {
            return;
        }
        let mut state = self.destination.state();
        if state.failures.release() && self.is_claimed {
            state.findings(&self.destination, &self.subscription).is_unprobed = true;
            drop(state);
            self.destination.note_unshared();
        }
    }
}

impl<P: DispatchPorts> Destinations<P> {
    /// Defers deliveries while their destination is on probation, except for one that becomes the
    /// probe.
    pub(super) async fn ask_probation(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let is_on_probation = passage.destination.state().failures.is_on_probation();
        if !is_on_probation || passage.is_probe() || !passage.has_probation() {
            return None;
        }
        // Boxed: this rare future would enlarge the future of every delivery.
        async {
            let mut answers = Vec::with_capacity(due.len());
            for in_flight in due {
                answers.push(self.admit(in_flight, due.len(), passage, invocation).await);
            }
            unless_open(answers.into_iter())
        }
        .boxed()
        .await
    }

    /// Returns [`Answer::Open`] for the probe, and for a delivery whose time to live ends before
    /// another attempt. Defers any other delivery.
    async fn admit(
        &self,
        in_flight: &InFlightDelivery,
        count: usize,
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Answer {
        let now_ms = self.now_ms();
        let longest_ms = longest_wait_ms(in_flight, passage, now_ms);
        if longest_ms == 0 {
            return Answer::Open;
        }
        // A delivery for the slow lane becomes the probe there.
        let moves = self.moves_to_slow_lane(in_flight, count, passage, invocation);
        let admission = {
            let failures = &mut passage.destination.state().failures;
            match moves {
                false => failures.admit(now_ms),
                true => failures.deferral(now_ms).map_or(Admission::Admitted, Admission::Deferred),
            }
        };
        let deferral = match admission {
            Admission::Admitted => return Answer::Open,
            Admission::Deferred(deferral) => deferral,
            Admission::Probe => match self.claim_probe(passage, invocation.deadline).await {
                Claimed::ByOthers(deferral) => deferral,
                Claimed::Mine | Claimed::Recovered => return Answer::Open,
            },
        };
        if !fits_a_message(&in_flight.delivery) {
            // The delivery cannot wait, and an attempt is better than a dead letter.
            return Answer::Open;
        }
        let now_ms = self.now_ms();
        let until_ms = deferral.until_ms(self.ports.next_jitter());
        let until_ms = until_ms.min(now_ms.saturating_add(longest_ms)).max(now_ms);
        Answer::Wait { until_ms, why: WaitReason::Probation }
    }

    /// Claims the probe for this process. If the table is unreachable, the claim succeeds in each
    /// process.
    async fn claim_probe(&self, passage: &mut Passage, deadline: &Deadline) -> Claimed {
        let mut probe = Probe::new(passage);
        let claimed = self.claim_shared(passage, deadline).await.unwrap_or(Claimed::Mine);
        if let Claimed::Mine = claimed {
            probe.is_claimed = true;
            passage.probe = Some(probe);
        }
        claimed
    }

    async fn claim_shared(
        &self,
        passage: &Passage,
        deadline: &Deadline,
    ) -> Result<Claimed, Unreachable> {
        let destination = &passage.destination;
        let item = destination.key.health_item(&destination.namespace);
        let read = self.table.read::<DestinationState>(&item, deadline).await?;
        let Some(stored) = &read.document else { return Ok(Claimed::Mine) };
        let now_ms = self.now_ms();
        // The item may be newer than the published changes.
        destination.state().note_newer(now_ms);
        let settings = &passage.subscription.destination;
        let takes_ms = settings.response_timeout_ms.saturating_add(settings.late_window_ms);
        let ends_ms = now_ms.saturating_add(takes_ms).saturating_add(CLAIM_MARGIN_MS);
        let by_others =
            || Claimed::ByOthers(destination.state().failures.deferral_by_others(now_ms));
        match stored.claim(now_ms, ends_ms) {
            Claim::Recovered => {
                let mut state = destination.state();
                state.failures.forget();
                recovering::begin(&mut state, stored.ended_ms, stored.ceiling, now_ms);
                Ok(Claimed::Recovered)
            }
            Claim::Probed => {
                // Adopted, so that the other deliveries of this process do not ask the table.
                let until_ms = now_ms.saturating_add(PROBE_MS);
                let failing = stored.failing.map(|spell| Spell { until_ms, ..spell });
                failing.into_iter().for_each(|spell| adopt(destination, spell, now_ms));
                Ok(by_others())
            }
            Claim::Failing(spell) => {
                adopt(destination, spell, now_ms);
                Ok(by_others())
            }
            Claim::Write(claimed) => {
                let is_mine = self.table.replace(&item, &*claimed, &read, deadline).await?;
                Ok(if is_mine { Claimed::Mine } else { by_others() })
            }
        }
    }
}

/// Adopts the state of a failing destination from its item, and releases the probe of this process.
fn adopt(destination: &Destination, spell: Spell, now_ms: u64) {
    let failures = &mut destination.state().failures;
    // Released first, because a process with a probe ignores the state of others.
    failures.release();
    failures.adopt(spell, now_ms);
}
