//! The actions of each invocation, as the world recorded them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::ports::QueueName;
use uuid::Uuid;

use super::queued::Queued;
use super::rules::Expected;

/// The work of one invocation for one delivery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u32,
    /// End of the last request, and the step that must follow it.
    pub(crate) last: Option<(u64, Expected)>,
    /// Start of the first request, and of the last one.
    pub(crate) first_ms: Option<u64>,
    pub(crate) last_at_ms: Option<u64>,
}

/// One invocation of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocation {
    /// True for the deadletter function, which stores dead letters.
    pub(crate) stores: bool,
    /// The received records.
    pub(crate) taken: Vec<(QueueName, Queued)>,
    /// The versions of the catalogue that the invocation read.
    pub(crate) versions: Vec<usize>,
    /// The work for each delivery, by id.
    pub(crate) tallies: BTreeMap<Uuid, Tally>,
    /// Attempted deliveries with the numbers of their subscriptions, including abandoned requests.
    pub(crate) attempted: BTreeSet<(usize, Uuid)>,
    /// Deliveries whose responses carried a reply, each with the record of the reply.
    pub(crate) answered: Vec<(Uuid, usize)>,
    /// The number of injected panics.
    pub(crate) panics: u32,
    /// Published records that the invocation re-enqueued before they were read. A part of a record
    /// also has its deliveries.
    pub(crate) forwarded: Vec<(String, Option<Arc<BTreeSet<Uuid>>>)>,
    /// A crashed invocation is dropped at its next await.
    pub(crate) crashed: bool,
    /// Copies of messages that a fault touched.
    pub(crate) touched: BTreeSet<u64>,
    /// True if the invocation has very little time.
    pub(crate) short: bool,
    /// True if the invocation could not read the subscriptions.
    pub(crate) unreadable: bool,
    /// True if a call of the invocation was slow.
    pub(crate) slow: bool,
    pub(crate) process: usize,
    pub(crate) started_ms: u64,
}

impl Invocation {
    /// The received messages that carry this delivery of the published record `origin`.
    pub(crate) fn messages_for(&self, id: Uuid, origin: &str) -> Vec<&Queued> {
        let carries_it = |held: &Queued| match held.carried.id() {
            Some(carried) => carried == id,
            None => held.holds(id, origin),
        };
        self.taken.iter().map(|(_, held)| held).filter(|held| carries_it(held)).collect()
    }

    /// The received messages that carry this published record as a whole.
    pub(crate) fn messages_of(&self, message: &str) -> Vec<&Queued> {
        let received = self.taken.iter().map(|(_, held)| held);
        received.filter(|held| held.origin() == Some(message)).collect()
    }
}
