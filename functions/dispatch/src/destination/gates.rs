//! The gates between a delivery and its destination, in their order.
//!
//! Each gate answers for every delivery of one request. The first closed gate decides, and the
//! later gates are not asked. After a wait in place, all gates are asked again, because earlier
//! answers may be out of date. Granted permits stay in the [`Passage`], so no gate grants them
//! twice.

use delivery::delivery::WaitReason;
use delivery::machine::step::{self, Arrival};
use delivery::ports::DispatchPorts;
use delivery::time::duration::SECOND_MS;

use super::Destinations;
use super::answer::{Answer, Asked};
use super::passage::Passage;
use crate::invocation::Invocation;
use crate::progress::InFlightDelivery;

/// Minimum time between the end of a wait and the end of the time to live. An attempt is then still
/// possible if the queue delivers late.
const LAST_ATTEMPT_MS: u64 = 5 * SECOND_MS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Does this process have a free slot for one more request?
    InFlight,
    /// Is the destination disabled?
    Disabled,
    /// Is the attempt due and within the limits of the policy, and is the subscription not paused?
    Due,
    /// Did the destination request a pause with `Retry-After`?
    RetryAfter,
    /// Is the destination on probation, because it keeps failing?
    Probation,
    /// Is the destination, or its token server, slow to respond?
    Slow,
    /// Has the destination consented to requests, and is its allowed rate not used up?
    Consent,
    /// Are the credentials of the request available?
    Credentials,
    /// Does the rate allow a request now: `maxPerSecond`, or the rate during a recovery?
    Rate,
    /// Is the number of concurrent requests of all functions below `maxConcurrency`?
    Concurrency,
}

impl Gate {
    /// All gates, in the order in which they are asked. `InFlight` may wait for a long time, so the
    /// gates that depend on time come after it. `Credentials` comes before `Rate` and
    /// `Concurrency`, because a slot or a permit is valid for a limited time. If a delivery held a
    /// permit while it waited for a token, its request could outlast the permit. More than
    /// `maxConcurrency` requests could then run.
    pub(crate) const ALL: [Self; 10] = [
        Self::InFlight,
        Self::Disabled,
        Self::Due,
        Self::RetryAfter,
        Self::Probation,
        Self::Slow,
        Self::Consent,
        Self::Credentials,
        Self::Rate,
        Self::Concurrency,
    ];
    /// The gates for deliveries to a topic. The others only apply to HTTP requests.
    const BEFORE_A_TOPIC: &[Self] = &[Self::InFlight, Self::Due];
}

impl<P: DispatchPorts> Destinations<P> {
    /// Asks all gates for the deliveries of one request, which share a subscription and a target.
    pub(crate) async fn ask(
        &self,
        waiting: Vec<InFlightDelivery>,
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Asked {
        let gates = if passage.leads_to_a_topic() { Gate::BEFORE_A_TOPIC } else { &Gate::ALL };
        let mut asked = Asked { due: waiting, refused: Vec::new() };
        loop {
            for gate in gates {
                if let Some(answers) = self.ask_gate(*gate, &asked.due, passage, invocation).await {
                    asked.sort_out(answers);
                }
                if asked.due.is_empty() {
                    passage.give_back();
                    return asked;
                }
            }
            if !passage.take_has_waited() {
                return asked;
            }
        }
    }

    /// Returns the answer of one gate for each delivery; `None` if the gate is open for all of
    /// them.
    async fn ask_gate(
        &self,
        gate: Gate,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        // Boxed: most destinations have no such limit, and the futures are large.
        match gate {
            Gate::InFlight => self.enter(due, passage, invocation).await,
            Gate::Disabled => self.ask_switch(due, passage, invocation).await,
            Gate::Due => due_now(due, passage, self.now_ms()),
            Gate::RetryAfter => self.ask_requested_wait(due, passage, invocation),
            Gate::Probation => self.ask_probation(due, passage, invocation).await,
            Gate::Slow => self.ask_slow_lane(due, passage, invocation),
            Gate::Consent => self.ask_consent(due, passage, invocation).await,
            Gate::Credentials => self.ask_credentials(due, passage, invocation).await,
            Gate::Rate => self.ask_rate(due, passage, invocation).await,
            Gate::Concurrency => self.ask_concurrency(due, passage, invocation).await,
        }
    }
}

/// Checks that each delivery is due, within the limits of its policy, and not paused. Returns
/// `None` if all deliveries may be attempted now.
fn due_now(due: &[InFlightDelivery], passage: &Passage, now_ms: u64) -> Option<Vec<Answer>> {
    let answer = |in_flight: &InFlightDelivery| match step::arrive(
        &in_flight.delivery,
        &passage.subscription,
        now_ms,
    ) {
        Arrival::Attempt | Arrival::Forward(_) => Answer::Open,
        Arrival::NotDue { wait_ms } => {
            wait(wait_ms, in_flight.delivery.why_not_due(now_ms), now_ms)
        }
        Arrival::Ended(reason) => Answer::End { reason },
    };
    unless_open(due.iter().map(answer))
}

/// Returns an [`Answer::Wait`] that ends `wait_ms` from now.
pub(super) fn wait(wait_ms: u64, why: WaitReason, now_ms: u64) -> Answer {
    Answer::Wait { until_ms: now_ms.saturating_add(wait_ms), why }
}

/// Returns the longest wait of the delivery that still leaves time for an attempt.
pub(super) fn longest_wait_ms(in_flight: &InFlightDelivery, passage: &Passage, now_ms: u64) -> u64 {
    let left_ms = step::left_to_live_ms(&in_flight.delivery, &passage.subscription.retry, now_ms);
    left_ms.saturating_sub(LAST_ATTEMPT_MS)
}

/// Returns the answers, or `None` if all are [`Answer::Open`].
pub(super) fn unless_open(answers: impl Iterator<Item = Answer>) -> Option<Vec<Answer>> {
    let answers: Vec<Answer> = answers.collect();
    answers.iter().any(|answer| *answer != Answer::Open).then_some(answers)
}

/// Returns `answer` once for each delivery.
pub(super) fn same_for_all(due: &[InFlightDelivery], answer: Answer) -> Option<Vec<Answer>> {
    Some(vec![answer; due.len()])
}

#[cfg(test)]
mod tests {
    use super::Gate;

    #[test]
    fn architecture_md_has_the_gates_in_their_order() {
        let page = include_str!("../../../../ARCHITECTURE.md");
        let rows = page.lines().skip_while(|line| !line.starts_with("| gate | question |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with("| `"));
        let named: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(named, Gate::ALL.map(|gate| format!("{gate:?}")));
    }
}
