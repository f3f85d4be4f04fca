//! Queues that behave like SQS: delays, visibility, receive counts, redrive, retention.

use delivery::ports::QueueName;
use delivery::time::duration::SECOND_MS;
use delivery::waits::delay_seconds;

use super::limits::Limits;
use super::publish::Published;
use super::queue_state::QueueState;
use super::queued::{Carried, Queued};

/// The queues that functions read, in polling order.
pub(crate) const READ: [QueueName; 5] = [
    QueueName::Events,
    QueueName::Retry,
    QueueName::Slow,
    QueueName::Isolation,
    QueueName::DeadLetter,
];
/// Every queue.
pub(crate) const ALL: [QueueName; 6] = [
    QueueName::Events,
    QueueName::Retry,
    QueueName::Slow,
    QueueName::Isolation,
    QueueName::DeadLetter,
    QueueName::LastResort,
];
/// The delay of a message that carries a wait. A long wait is divided into several equal delays.
pub(crate) fn delay_ms(wait_ms: u64) -> u64 {
    delay_seconds(wait_ms) * SECOND_MS
}

/// The visibility timeout of a received message.
fn visibility_ms(queue: QueueName) -> u64 {
    if queue == QueueName::Isolation { 7_200 * SECOND_MS } else { 720 * SECOND_MS }
}

/// The redrive target of a queue, and its maximum receive count.
fn redrive(queue: QueueName) -> Option<(QueueName, u32)> {
    match queue {
        QueueName::Events | QueueName::Retry | QueueName::Slow => {
            Some((QueueName::DeadLetter, 100))
        }
        QueueName::Isolation => Some((QueueName::DeadLetter, 10)),
        QueueName::DeadLetter => Some((QueueName::LastResort, 1_000)),
        QueueName::LastResort => None,
    }
}

/// All queues.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    states: [QueueState; ALL.len()],
    copies: u64,
}

/// The result of polling a queue.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) batch: Vec<Queued>,
    /// Messages that were moved to the redrive target instead.
    pub(crate) redriven: Vec<Queued>,
    /// True if more messages are visible, but too many are in flight.
    pub(crate) quota_reached: bool,
}

impl Queues {
    /// A new unique number.
    pub(crate) fn number(&mut self) -> u64 {
        self.copies += 1;
        self.copies
    }

    fn state(&mut self, queue: QueueName) -> &mut QueueState {
        &mut self.states[queue as usize]
    }

    /// Puts a record into the events queue.
    pub(crate) fn publish(&mut self, message: &str, published: &Published) {
        let queued = Queued {
            copy: self.number(),
            message: message.to_owned(),
            letter_of: message.to_owned(),
            body: published.body.as_str().into(),
            topic: published.topic.map(ToOwned::to_owned),
            attribute: published.forged.clone(),
            carried: Carried::Nothing,
            part: None,
            group: published.group.map(ToOwned::to_owned),
            sent_ms: published.at_ms,
            first_received_ms: None,
            receives: 0,
            excused: 0,
            earlier_receives: 0,
            unread: 0,
            visible_ms: published.at_ms,
            receipt: String::new(),
        };
        self.put(QueueName::Events, queued);
    }

    /// Puts a message into a queue.
    pub(crate) fn put(&mut self, queue: QueueName, queued: Queued) {
        self.state(queue).put(queued);
    }

    /// Sets the retention period of a queue.
    pub(crate) fn keep_for(&mut self, queue: QueueName, retention_ms: u64) {
        self.state(queue).keep_for(retention_ms);
    }

    /// All messages of a queue.
    pub(crate) fn all(&self, queue: QueueName) -> impl Iterator<Item = &Queued> {
        self.states[queue as usize].messages.values()
    }

    /// The earliest time at which a message becomes visible in the queues that functions read.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let next = |queue: &QueueName| self.states[*queue as usize].hidden.first();
        READ.iter().filter_map(next).map(|(at_ms, _)| *at_ms).min()
    }

    /// True if a queue has visible messages.
    pub(crate) fn has_visible(&mut self, queue: QueueName, now_ms: u64) -> bool {
        self.state(queue).reveal(now_ms);
        !self.state(queue).visible.is_empty()
    }

    /// Receives up to this many messages from a queue.
    pub(crate) fn receive(
        &mut self,
        queue: QueueName,
        most: usize,
        now_ms: u64,
        limits: &Limits,
    ) -> Received {
        let mut received = Received::default();
        self.state(queue).reveal(now_ms);
        while received.batch.len() < most {
            // Copies and receipts share one counter, so a receipt is never reused.
            let receipt = self.number();
            let state = self.state(queue);
            let Some(copy) = state.next(limits.fair) else { break };
            if state.in_flight.len() >= limits.in_flight {
                received.quota_reached = true;
                break;
            }
            match redrive(queue).filter(|(_, limit)| state.messages[&copy].receives >= *limit) {
                Some((next, _)) => {
                    let queued = state.remove(copy).expect("a visible message is there");
                    received.redriven.push(queued.clone());
                    // Messages that the events queue redrives come from publishers, so the function
                    // ignores their attributes.
                    let attribute = queued.attribute.filter(|_| queue != QueueName::Events);
                    let queued = Queued {
                        attribute,
                        receives: 0,
                        excused: 0,
                        receipt: String::new(),
                        visible_ms: now_ms,
                        first_received_ms: None,
                        ..queued
                    };
                    self.put(next, queued);
                }
                None => {
                    received.batch.push(state.take(copy, receipt, now_ms, visibility_ms(queue)));
                }
            }
        }
        received
    }

    /// Deletes a copy of a message.
    pub(crate) fn delete(&mut self, queue: QueueName, copy: u64) {
        self.state(queue).remove(copy);
    }

    /// Records that a failure explains the last receive of a message.
    pub(crate) fn excuse(&mut self, queue: QueueName, copy: u64) {
        if let Some(queued) = self.state(queue).messages.get_mut(&copy) {
            queued.excused += 1;
        }
    }

    /// Changes the time at which a received message becomes visible.
    pub(crate) fn change_visibility(
        &mut self,
        queue: QueueName,
        receipt: &str,
        until_ms: u64,
    ) -> bool {
        let state = self.state(queue);
        let Some(copy) = state.receipts.get(receipt).copied() else { return false };
        let before = state.messages[&copy].clone();
        state.hidden.remove(&(before.visible_ms, copy));
        state.remove_visible(&before);
        let queued = state.messages.get_mut(&copy).expect("a receipt belongs to a message");
        queued.visible_ms = until_ms;
        state.hidden.insert((until_ms, copy));
        true
    }

    /// Deletes messages past their retention, and returns them. The last-resort queue is excluded,
    /// because people read it.
    pub(crate) fn delete_expired(&mut self, now_ms: u64) -> Vec<(QueueName, Queued)> {
        let mut expired = Vec::new();
        for queue in READ {
            let state = self.state(queue);
            while let Some((at_ms, copy)) = state.expiry.first().copied()
                && at_ms <= now_ms
            {
                expired.extend(state.remove(copy).map(|queued| (queue, queued)));
            }
        }
        expired
    }
}
