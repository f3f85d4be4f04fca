//! Requests that dispatch abandons because their destination is slow to answer.
//!
//! An abandoned request is not an attempt, so the world removes it from its records. Each delivery
//! may be abandoned only once.

use delivery::ports::QueueName;
use uuid::Uuid;

use super::invocations::Tally;
use super::world::{Inner, World};

/// A request in progress. If the function drops it before it ends, the request was abandoned.
pub(crate) struct UnderWay {
    world: World,
    number: usize,
    /// The deliveries of the request, each with its tally from before the request.
    before: Vec<(Uuid, Tally)>,
    began_ms: u64,
    /// The number of the request; `None` until it reaches the endpoint.
    pub(crate) request: Option<u64>,
    /// True if the response carries a reply.
    pub(crate) is_answered: bool,
    pub(crate) ended: bool,
}

impl UnderWay {
    pub(crate) fn new(handle: &World, world: &Inner, number: usize, ids: &[Uuid]) -> Self {
        let invocation = &world.invocations[world.current];
        let tally = |id| invocation.tallies.get(id).cloned().unwrap_or_default();
        Self {
            world: handle.clone(),
            number,
            before: ids.iter().map(|id| (*id, tally(id))).collect(),
            is_answered: false,
            began_ms: world.now_ms,
            request: None,
            ended: false,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // A panic also drops the request. So does the driver, but `polling` is false then.
        if !self.ended && !std::thread::panicking() {
            self.world.with(|world| {
                if world.polling {
                    world.abandon(self);
                }
            });
        }
    }
}

impl Inner {
    fn abandon(&mut self, request: &UnderWay) {
        let destination = self.rules[request.number].subscription.destination.clone();
        let (queue, now_ms) = (self.invocation().taken[0].0, self.now_ms);
        self.trace(|| format!("ABANDONS a request to s{}", request.number));
        self.ledger.abandoned += 1;
        // A reply that was never received has no publication time yet.
        if let [(id, _)] = &request.before[..] {
            let answered = &mut self.invocation().answered;
            let newest = answered.iter().rposition(|(delivery, _)| delivery == id);
            if let Some(index) = newest.filter(|_| request.is_answered) {
                let (_, record) = answered.remove(index);
                self.ledger.published[record].1.at_ms = u64::MAX;
            }
        }
        for (id, tally) in &request.before {
            let taken_by = [
                (matches!(queue, QueueName::Slow | QueueName::Isolation), "where it has time"),
                (now_ms < request.began_ms + destination.slow_after_ms, "before it was slow"),
                (destination.late_window_ms > 0, "although late answers count"),
                (self.bases(*id).iter().all(|base| base.abandoned), "a second time"),
            ];
            for (_, problem) in taken_by.into_iter().filter(|(broken, _)| *broken) {
                self.record_violation(*id, &format!("abandoned {problem}"));
            }
            self.invocation().tallies.insert(*id, tally.clone());
            let clock_ms = self.clock_ms();
            // The delivery was due when the request began, and is due again now.
            let postponed = (clock_ms - (now_ms - request.began_ms), clock_ms);
            self.ledger.postponements.entry(*id).or_default().push(postponed);
            let seen = self.ledger.seen.entry(*id).or_default();
            let made = seen.iter().rposition(|seen| Some(seen.request) == request.request);
            if let Some(attempt) = made.map(|index| seen.remove(index)) {
                self.ledger.taken_too_late += u64::from(attempt.taken);
            }
        }
        if let Some(address) = request.before.first().and_then(|(id, _)| self.address_of(*id)) {
            self.watches[address].release();
        }
    }
}
