//! Dead letters that are replayed: the deliveries that start, and the ends that the functions record.
//!
//! Separate from `paused`, which decides which dead letters are replayed. In the ledger, a replay is a record of its
//! own with one delivery: it has the event of the first delivery and its own time of publication.

use std::sync::Arc;

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::replay::{
    REPLAYS_FOLDER, Replay, ReplayOutcome, StoredReplayEnd, read_ends,
};
use delivery::ports::{Attribute, Message, MessageGroup, PutError, QueueName};
use delivery::wire::write_delivery;
use uuid::Uuid;

use super::ledger::{Known, Ledger};
use super::publish::Published;
use super::queued::Carried;
use super::rules::Rules;
use super::storage::DEFAULT_CONTAINER;
use super::world::Inner;

/// True if a key belongs to a replay, and not to a dead letter.
pub(crate) fn is_of_replay(key: &str) -> bool {
    key.split('/').any(|folder| folder == REPLAYS_FOLDER)
}

impl Inner {
    /// Sends the replay of a dead letter by a job, with this id, to the retry queue.
    pub(crate) fn send_replay(&mut self, letter: &StoredDeadLetter, job: &str, id: Uuid) {
        let delivery = letter.again(id, Replay::new(job, letter.id), self.now_ms);
        self.ledger.know_replay(&self.rules, letter.id, id, self.now_ms);
        let message = Message {
            body: Arc::clone(delivery.event.text()),
            topic: None,
            attribute: Attribute::Delivery(write_delivery(&delivery)),
            group: MessageGroup::Subscription(letter.subscription.clone()),
            receives: 0,
            unread: 0,
            wait_ms: 0,
        };
        let carried = Carried::decode(&message);
        self.enqueue(QueueName::Retry, message, carried, None);
    }

    /// The replay that the running invocation received of a delivery, or that delivery itself.
    pub(crate) fn replayed_as(&self, first: Uuid) -> Uuid {
        let taken = &self.invocations[self.current].taken;
        let received = taken.iter().filter_map(|(_, held)| held.carried.id());
        let is_replay = |id: &Uuid| self.ledger.replays.get(id) == Some(&first);
        received.into_iter().find(is_replay).unwrap_or(first)
    }

    /// Ends of replays that are written to storage. Each has to be true.
    pub(crate) fn store_ends(
        &mut self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
    ) -> Result<(), PutError> {
        for end in read_ends(&bytes) {
            if !self.is_true(&end) {
                self.record_violation(end.delivery, "the end of its replay is not true");
            }
        }
        let (_, answer) = self.storage.put(&mut self.random, self.now_ms, (bucket, key), bytes);
        answer
    }

    fn is_true(&self, end: &StoredReplayEnd) -> bool {
        let seen = self.ledger.seen.get(&end.delivery);
        match end.state {
            ReplayOutcome::Delivered => seen.into_iter().flatten().any(|seen| seen.taken),
            ReplayOutcome::DeadAgain => self.storage.blobs.contains_key(&(
                DEFAULT_CONTAINER.split('/').next().unwrap_or_default().to_owned(),
                end.key.clone().unwrap_or_default(),
            )),
            ReplayOutcome::Dropped => false,
        }
    }
}

impl Ledger {
    /// Records a delivery with this id that replays the dead letter of another one now.
    fn know_replay(&mut self, rules: &[Rules], letter: Uuid, id: Uuid, now_ms: u64) {
        let known = self.known[&letter].clone();
        let published = &self.published[known.record].1;
        let elements = vec![published.elements[known.index].clone()];
        let published = Published { at_ms: now_ms, elements, ..published.clone() };
        let (record, message) = (self.published.len(), format!("replay {id}"));
        let first = self.replays.get(&letter).copied().unwrap_or(letter);
        self.replays.insert(id, first);
        self.ids.insert((record, known.subscription, 0), id);
        self.know(rules, id, Known { record, index: 0, ..known });
        self.must_end.insert(id);
        self.acknowledged.insert(message.clone());
        self.add_record(message, published);
    }
}
