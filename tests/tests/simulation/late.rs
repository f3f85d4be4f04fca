//! Responses after the response timeout, and whether a function still waits for them.

use std::future::pending;

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::ports::{Clock as _, Late};
use uuid::Uuid;

use super::endpoints::answered;
use super::faults::JitterSource;
use super::rules::Expected;
use super::world::{Inner, World};

/// The response that an endpoint sends long after the request started.
#[derive(Debug, Clone)]
pub(crate) struct LateAnswer {
    pub(crate) result: TransportResult,
    pub(crate) after_ms: u64,
}

impl LateAnswer {
    /// The late response to a request that timed out; an endpoint that has accepted its events
    /// sends only a success.
    pub(crate) fn choose(dice: &mut JitterSource, taken: bool, timeout_ms: u64) -> Option<Self> {
        let after_ms = timeout_ms + dice.one_of(&[1, 500, 3_000, 9_000, 40_000]);
        match dice.below(4) {
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
    pub(crate) given_up: Exchange,
    pub(crate) answer: Option<LateAnswer>,
}

impl Open {
    /// What happens to it.
    pub(crate) fn late(mut self) -> Late {
        Box::pin(async move {
            let Some(answer) = &self.answer else { return pending().await };
            let at_ms = self.given_up.started_ms + answer.after_ms;
            self.world.sleep(at_ms.saturating_sub(self.world.now_ms())).await;
            let Some(LateAnswer { result, after_ms }) = self.answer.take() else {
                return pending().await;
            };
            let exchange = Exchange::new(result, self.given_up.started_ms, after_ms);
            self.world.with(|world| world.hear(self.number, &self.ids, &self.given_up, &exchange));
            exchange
        })
    }
}

impl Drop for Open {
    /// The function stopped waiting. If the endpoint has accepted the events, each is in flight
    /// once more than necessary.
    fn drop(&mut self) {
        let (number, ids) = (self.number, &self.ids);
        let Some(LateAnswer { result, .. }) = &self.answer else { return };
        self.world.with(|world| {
            if world.rules[number].expected(result) == Expected::Delivered {
                ids.iter().for_each(|id| *world.ledger.forks.entry(*id).or_default() += 1);
                world.ledger.late_unheard += 1;
            }
        });
    }
}

impl Inner {
    /// The function receives a late response: a success ends the delivery, anything else changes
    /// nothing.
    fn hear(&mut self, number: usize, ids: &[Uuid], given_up: &Exchange, late: &Exchange) {
        let window_ms = self.rules[number].subscription.destination.late_window_ms;
        if late.ended_ms() > given_up.ended_ms() + window_ms {
            self.broke(ids[0], "an answer was awaited after its window");
        }
        if self.rules[number].expected(&late.result) != Expected::Delivered {
            return;
        }
        self.ledger.late_heard += 1;
        for id in ids {
            self.tell(|| format!("hears late of {}", self.ledger.name(*id)));
            self.invocation().tallies.entry(*id).or_default().last =
                Some((late.ended_ms(), Expected::Delivered));
            let seen = self.ledger.seen.get_mut(id).into_iter().flatten();
            seen.filter(|seen| seen.at_ms == given_up.started_ms)
                .for_each(|seen| seen.expected = Expected::Delivered);
        }
    }
}
