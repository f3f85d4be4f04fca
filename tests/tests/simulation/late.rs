//! Responses after the response timeout, and whether a function still waits for them.

use std::future::pending;

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::ports::{Clock as _, Late};
use uuid::Uuid;

use super::endpoints::answered;
use super::faults::SeededRandom;
use super::rules::Expected;
use super::world::{Inner, World};

/// The response that an endpoint sends long after the request started.
#[derive(Debug, Clone)]
pub(crate) struct LateAnswer {
    pub(crate) result: TransportResult,
    pub(crate) after_ms: u64,
}

impl LateAnswer {
    /// Draws the late response to a request that timed out. An endpoint that accepted the events
    /// sends only a success.
    pub(crate) fn choose(random: &mut SeededRandom, taken: bool, timeout_ms: u64) -> Option<Self> {
        let after_ms = timeout_ms + random.pick(&[1, 500, 3_000, 9_000, 40_000]);
        match random.below(4) {
            0 | 1 => None,
            2 if !taken => Some(Self { result: answered(500, None), after_ms }),
            _ => Some(Self { result: answered(200, None), after_ms }),
        }
    }
}

/// A request whose response is still awaited.
pub(crate) struct Open {
    pub(crate) world: World,
    pub(crate) number: usize,
    pub(crate) ids: Vec<Uuid>,
    pub(crate) timed_out: Exchange,
    pub(crate) answer: Option<LateAnswer>,
}

impl Open {
    /// Returns the late response, or waits forever if there is none.
    pub(crate) fn late(mut self) -> Late {
        Box::pin(async move {
            let Some(answer) = &self.answer else { return pending().await };
            let at_ms = self.timed_out.started_ms + answer.after_ms;
            self.world.sleep(at_ms.saturating_sub(self.world.now_ms())).await;
            let Some(LateAnswer { result, after_ms }) = self.answer.take() else {
                return pending().await;
            };
            let exchange = Exchange::new(result, self.timed_out.started_ms, after_ms);
            self.world.with(|world| {
                world.receive_late(self.number, &self.ids, &self.timed_out, &exchange);
            });
            exchange
        })
    }
}

impl Drop for Open {
    /// Runs when the function stops waiting. If the endpoint accepted the events, each of them is
    /// sent once more than necessary.
    fn drop(&mut self) {
        let (number, ids) = (self.number, &self.ids);
        let Some(LateAnswer { result, .. }) = &self.answer else { return };
        self.world.with(|world| {
            if world.rules[number].expected(result) == Expected::Delivered {
                ids.iter().for_each(|id| *world.ledger.forks.entry(*id).or_default() += 1);
                world.ledger.late_too_late += 1;
            }
        });
    }
}

impl Inner {
    /// Records a late response. A success ends the delivery; any other response changes nothing.
    fn receive_late(&mut self, number: usize, ids: &[Uuid], timed_out: &Exchange, late: &Exchange) {
        let window_ms = self.rules[number].subscription.destination.late_window_ms;
        if late.ended_ms() > timed_out.ended_ms() + window_ms {
            self.record_violation(ids[0], "a response was awaited after its window");
        }
        if self.rules[number].expected(&late.result) != Expected::Delivered {
            return;
        }
        self.ledger.late_in_time += 1;
        for id in ids {
            self.trace(|| format!("receives a late response about {}", self.ledger.name(*id)));
            self.invocation().tallies.entry(*id).or_default().last =
                Some((late.ended_ms(), Expected::Delivered));
            let seen = self.ledger.seen.get_mut(id).into_iter().flatten();
            // Another attempt may have failed within the same millisecond.
            seen.filter(|seen| seen.at_ms == timed_out.started_ms)
                .filter(|seen| seen.result_seen == timed_out.result)
                .for_each(|seen| seen.expected = Expected::Delivered);
        }
    }
}
