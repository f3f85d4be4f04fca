//! The end of an invocation: records are deleted, returned to their queue, redriven or expired.

use delivery::ports::{MESSAGE_MAX_BYTES, QueueName, Record};
use delivery::wire::ATTRIBUTE_MAX_BYTES;
use uuid::Uuid;

use super::faults::Fault;
use super::queued::{Carried, Queued};
use super::world::Inner;

impl Inner {
    /// The records of a batch, as Lambda passes them to the function.
    pub(crate) fn records(&mut self, queue: QueueName, batch: &[Queued]) -> Vec<Record> {
        let forged = |queued: &&Queued| {
            matches!(queued.carried, Carried::Nothing) && queued.attribute.is_some()
        };
        let count = batch.iter().filter(forged).count();
        (0..count).for_each(|_| self.random.count(Fault::Forged));
        let records = batch.iter().map(|queued| queued.record(queue));
        records.map(|record| self.saboteur.tampers_with_record(record)).collect()
    }

    /// Records that a queue moved a message to its redrive target.
    pub(crate) fn note_redriven(&mut self, queue: QueueName, held: &Queued) {
        self.random.count(Fault::Redriven);
        self.trace(|| format!("REDRIVES {} from {queue:?}", held.message));
        if queue == QueueName::DeadLetter {
            return;
        }
        let id = held.carried.id().or_else(|| self.ledger.unprocessed_of(held));
        if let Some(record) = held.origin() {
            self.ledger.redriven_records.insert(record.to_owned());
        }
        if let Some(id) = id {
            self.ledger.must_end.insert(id);
            *self.ledger.letters.entry(id).or_default() += 1;
        }
    }

    /// Records that a queue deleted a message at the end of its retention period. This is allowed
    /// only in the dead-letter queue, if storage refused the message and the message is too large
    /// to be moved with our attribute.
    pub(crate) fn note_expired(&mut self, queue: QueueName, held: &Queued) {
        let tried = queue == QueueName::DeadLetter && held.receives > 0;
        if tried && is_too_large_to_move(held) && self.storage.refuses(self.now_ms) {
            self.ledger.expired.extend(self.ledger.whole_id(held));
        }
    }

    /// Injects a second delivery of a message.
    pub(crate) fn maybe_duplicate(&mut self, queue: QueueName, held: &Queued) {
        if !self.random.injects(Fault::DeliveredTwice) {
            return;
        }
        self.ledger.fork(held);
        let visible_ms = self.now_ms + self.random.pick(&[0, 30, 1_000, 500_000]);
        let copy = self.queues.number();
        self.trace(|| format!("TWICE {}", held.message));
        let (receipt, excused) = (String::new(), held.receives);
        let twice = Queued { copy, visible_ms, receipt, excused, ..held.clone() };
        self.queues.put(queue, twice);
    }

    /// Handles the batch response like Lambda: keeps the failed records and deletes all others.
    pub(crate) fn acknowledge(&mut self, returned_records: &[String]) {
        let taken = std::mem::take(&mut self.invocation().taken);
        self.trace(|| format!("returns {returned_records:?} to the queue"));
        if returned_records.iter().any(|id| !taken.iter().any(|(_, held)| held.message == *id)) {
            self.ledger.record_violation(
                "a batch response names a message that was not received".to_owned(),
            );
        }
        for (queue, held) in &taken {
            if returned_records.contains(&held.message) {
                self.note_returned(*queue, held);
                continue;
            }
            self.queues.delete(*queue, held.copy);
            self.note_replies_owed(held);
            if let Some(record) = held.origin()
                && !self.invocation().stores
            {
                self.note_acknowledged(record, held);
            }
        }
        self.invocation().taken = taken;
    }

    /// Checks that a returned record has a reason to return:
    /// - something failed;
    /// - the record has no room for our attributes;
    /// - the record spends the rest of a long hold in its queue.
    fn note_returned(&mut self, queue: QueueName, queued: &Queued) {
        let touched = self.invocation().touched.remove(&queued.copy);
        if touched || is_too_large_to_move(queued) {
            self.queues.excuse(queue, queued.copy);
        } else if queued.receives >= queued.planned_receives(queue) + queued.excused {
            self.ledger.record_violation(format!(
                "{} returned to {queue:?} although nothing failed",
                queued.message
            ));
        }
    }

    /// Records that the visibility of a message could not be changed. The message is then received
    /// at another time than planned.
    pub(crate) fn note_still_hidden(&mut self, receipt: &str) {
        let taken = self.invocation().taken.iter();
        let copies: Vec<u64> = taken
            .filter(|(_, queued)| queued.receipt == receipt)
            .map(|(_, queued)| queued.copy)
            .collect();
        self.invocation().touched.extend(copies);
    }

    /// Records that an invocation ended without a response. All its records are received again.
    pub(crate) fn note_unanswered(&mut self) {
        for (queue, queued) in std::mem::take(&mut self.invocation().taken) {
            self.queues.excuse(queue, queued.copy);
            self.invocation().taken.push((queue, queued));
        }
    }

    /// Records that a published record, or a part of one, was acknowledged. Each of its deliveries
    /// must now end, unless it waits in a separate message.
    fn note_acknowledged(&mut self, message: &str, held: &Queued) {
        if !self.ledger.has_record(message) {
            return;
        }
        let record = self.ledger.record_of(message);
        let forwarded = self.invocation().forwarded.clone();
        let forwarded =
            || forwarded.iter().filter(|(origin, _)| origin == message).map(|(_, part)| part);
        let waits =
            |id: &Uuid| forwarded().any(|part| part.as_ref().is_none_or(|part| part.contains(id)));
        if forwarded().any(Option::is_none) || forwarded().any(|part| *part == held.part) {
            return;
        }
        self.ledger.acknowledged.insert(message.to_owned());
        let versions = self.invocation().versions.clone();
        let ids: Vec<_> = self.ledger.ids_of(record).collect();
        let ids = ids.into_iter().filter(|(.., id)| held.holds(*id, message));
        for (subscription, _, id) in ids {
            let takes = self.takes(&self.ledger.known[&id]);
            let facts = subscription.map(|number| (number, self.versions.facts(&versions, number)));
            let is_there = facts
                .as_ref()
                .is_none_or(|(_, facts)| !facts.is_empty() && facts.iter().all(Option::is_some));
            let stays = facts.is_none_or(|(number, _)| self.versions.always_have(number));
            if takes && waits(&id) && stays {
                self.ledger.divided.insert(id);
            } else if takes && is_there && !waits(&id) {
                self.ledger.must_end.insert(id);
            }
        }
    }
}

/// True if the record may have no room for our attributes.
fn is_too_large_to_move(queued: &Queued) -> bool {
    queued.body.len() + ATTRIBUTE_MAX_BYTES > MESSAGE_MAX_BYTES
}
