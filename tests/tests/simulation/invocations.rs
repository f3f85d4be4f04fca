//! What the invocations did, recorded by the world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::ports::QueueName;
use uuid::Uuid;

use super::queued::Queued;
use super::rules::Expected;

/// What one invocation did for one delivery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Requests made.
    pub(crate) requests: u32,
    /// When the last one ended, and the step that has to follow.
    pub(crate) last: Option<(u64, Expected)>,
    /// Start of the first of them, and of the last.
    pub(crate) first_ms: Option<u64>,
    pub(crate) last_at_ms: Option<u64>,
}

/// One invocation of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocation {
    /// It is the deadletter function.
    pub(crate) stores: bool,
    /// The records that it received.
    pub(crate) taken: Vec<(QueueName, Queued)>,
    /// The versions of the catalogue that it was given.
    pub(crate) versions: Vec<usize>,
    /// Its work, by delivery.
    pub(crate) tallies: BTreeMap<Uuid, Tally>,
    /// The deliveries that it attempted, with the numbers of their subscriptions; also what it abandoned.
    pub(crate) attempted: BTreeSet<(usize, Uuid)>,
    /// The deliveries whose responses carried a reply, and the record that stands for it.
    pub(crate) answered: Vec<(Uuid, usize)>,
    /// Panics that were injected into it.
    pub(crate) panics: u32,
    /// The published records that it re-enqueued before they were read, with the deliveries of those
    /// that are parts.
    pub(crate) forwarded: Vec<(String, Option<Arc<BTreeSet<Uuid>>>)>,
    /// It is dropped at its next await.
    pub(crate) crashed: bool,
    /// The copies of its messages that a fault touched.
    pub(crate) touched: BTreeSet<u64>,
    /// It was given very little time.
    pub(crate) short: bool,
    /// It could not read the subscriptions.
    pub(crate) unreadable: bool,
    /// A call of it was slow.
    pub(crate) slow: bool,
    /// Its process.
    pub(crate) process: usize,
    /// When it began.
    pub(crate) started_ms: u64,
}

impl Invocation {
    /// The received messages that carry a delivery of this published record.
    pub(crate) fn messages_for(&self, id: Uuid, origin: &str) -> Vec<&Queued> {
        let carries_it = |held: &Queued| match held.carried.id() {
            Some(of) => of == id,
            None => held.holds(id, origin),
        };
        self.taken.iter().map(|(_, held)| held).filter(|held| carries_it(held)).collect()
    }

    /// The received messages that are this published record as a whole.
    pub(crate) fn messages_of(&self, message: &str) -> Vec<&Queued> {
        let received = self.taken.iter().map(|(_, held)| held);
        received.filter(|held| held.origin() == Some(message)).collect()
    }
}
