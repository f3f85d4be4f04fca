//! Queues in memory: a message is received after its delay, and once more if it was not acknowledged. The messages of
//! the functions come from the sends that `FakePorts` records.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::ports::{Attribute, Message, QueueName, Record};
use delivery::time::duration::SECOND_MS;
use delivery::waits::delay_seconds;
use lastmile_tests::fake_ports::FakePorts;

/// The most messages that an invocation receives, as in the template.
const BATCH_MAX: usize = 10;
/// The visibility timeout, as in the template.
const HIDDEN_MS: u64 = 360 * SECOND_MS;

/// All queues: messages by the time at which they are received, and by the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    waiting: BTreeMap<(u64, u64), Record>,
    /// So many messages were put into a queue.
    put: u64,
    /// So many of the recorded sends are among them.
    taken: usize,
}

impl Queues {
    /// Sends an event as a publisher does.
    pub(crate) fn publish(&mut self, topic: &str, body: String, at_ms: u64) {
        self.put(QueueName::Events, (topic.to_owned(), body.into()), None, at_ms, at_ms);
    }

    /// Takes over the messages that the functions have sent since the last call.
    pub(crate) fn take_sent(&mut self, ports: &FakePorts) {
        let sent = ports.timed_sent_after(self.taken);
        self.taken += sent.len();
        for (at_ms, queue, message) in sent {
            self.send(queue, message, ports.start_ms() + at_ms);
        }
    }

    fn send(&mut self, queue: QueueName, message: Message, now_ms: u64) {
        let Message { body, topic, attribute, group, receives, unread, wait_ms } = message;
        let topic = topic.map(|topic| topic.to_string()).unwrap_or_default();
        let visible_ms = now_ms + delay_seconds(wait_ms) * SECOND_MS;
        let record = self.put(queue, (topic, body), Some(attribute), now_ms, visible_ms);
        record.group = Some(group.to_string()).filter(|group| !group.is_empty());
        (record.earlier_receives, record.unread) = (receives, unread);
    }

    fn put(
        &mut self,
        queue: QueueName,
        (topic, body): (String, Arc<str>),
        attribute: Option<Attribute>,
        sent_ms: u64,
        visible_ms: u64,
    ) -> &mut Record {
        self.put += 1;
        let message = format!("message-{}", self.put);
        self.waiting.entry((visible_ms, self.put)).or_insert(Record {
            receipt: message.clone(),
            message,
            queue,
            body,
            topic: Some(topic).filter(|topic| !topic.is_empty()),
            attribute,
            group: None,
            traceparent: None,
            sent_ms,
            first_received_ms: 0,
            receives: 0,
            earlier_receives: 0,
            unread: 0,
        })
    }

    /// The time at which the next message is received.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    /// Receives the next messages of the queue whose turn it is. They stay in it, hidden, until they are deleted.
    pub(crate) fn receive(&mut self, now_ms: u64) -> Vec<Record> {
        let Some((_, Record { queue, .. })) = self.waiting.first_key_value() else {
            return Vec::new();
        };
        let queue = *queue;
        let is_next = |((at_ms, _), record): &(&(u64, u64), &Record)| {
            *at_ms <= now_ms && record.queue == queue
        };
        let due = self.waiting.iter().filter(is_next).take(BATCH_MAX);
        let due: Vec<(u64, u64)> = due.map(|(place, _)| *place).collect();
        due.into_iter().filter_map(|place| self.hide(place, now_ms + HIDDEN_MS, now_ms)).collect()
    }

    fn hide(&mut self, place: (u64, u64), until_ms: u64, now_ms: u64) -> Option<Record> {
        let mut record = self.waiting.remove(&place)?;
        record.receives += 1;
        if record.receives == 1 {
            record.first_received_ms = now_ms;
        }
        self.waiting.insert((until_ms, place.1), record.clone());
        Some(record)
    }

    /// Deletes a message.
    pub(crate) fn delete(&mut self, message: &str) {
        self.waiting.retain(|_, record| record.message != message);
    }
}
