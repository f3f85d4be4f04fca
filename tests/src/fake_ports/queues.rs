//! Fake queues. They record the messages that the functions send, and refuse or hang where a test
//! requires it.
//!
//! A suite that needs messages back, as the night does, receives them from the recorded sends.

use std::collections::HashMap;

use delivery::ports::{Message, Queue, QueueError, QueueName};

use super::{FakePorts, Hanging};

/// A fault of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Refuses every message.
    Refuses,
    /// Never responds.
    Hangs,
}

#[derive(Default)]
pub(super) struct Queues {
    faults: HashMap<QueueName, Fault>,
    panics_left: usize,
    /// The sent messages, each with its queue and the time since the start of the test.
    sent: Vec<(u64, QueueName, Message)>,
    visibility_changes: Vec<(QueueName, String, u32)>,
}

impl FakePorts {
    /// Makes every queue except the slow lane refuse every message.
    #[must_use]
    pub fn with_failing_queue(self) -> Self {
        use QueueName::{DeadLetter, Isolation, LastResort, Retry};
        let names = [Retry, Isolation, DeadLetter, LastResort];
        names.into_iter().fold(self, |ports, name| ports.with_queue_fault(name, Fault::Refuses))
    }

    /// Gives this queue a fault.
    pub fn with_queue_fault(self, queue: QueueName, fault: Fault) -> Self {
        self.state().queues.faults.insert(queue, fault);
        self
    }

    /// Makes every queue accept messages again.
    pub fn repair_queues(&self) {
        self.state().queues.faults.clear();
    }

    /// Makes the first send panic.
    #[must_use]
    pub fn with_one_panic_on_send(self) -> Self {
        self.state().queues.panics_left = 1;
        self
    }

    /// The messages that were sent, each with its queue.
    #[must_use]
    pub fn sent(&self) -> Vec<(QueueName, Message)> {
        self.sent_after(0)
    }

    /// The messages that were sent after the first `count`.
    #[must_use]
    pub fn sent_after(&self, count: usize) -> Vec<(QueueName, Message)> {
        let sent = self.timed_sent_after(count).into_iter();
        sent.map(|(_, queue, message)| (queue, message)).collect()
    }

    /// The messages that were sent after the first `count`, each with its queue and the time since
    /// the start of the test.
    #[must_use]
    pub fn timed_sent_after(&self, count: usize) -> Vec<(u64, QueueName, Message)> {
        self.state().queues.sent.get(count..).unwrap_or_default().to_vec()
    }

    /// The time of each sent message since the start of the test.
    #[must_use]
    pub fn sent_after_ms(&self) -> Vec<u64> {
        self.timed_sent_after(0).into_iter().map(|(at_ms, ..)| at_ms).collect()
    }

    /// Queue, receipt and seconds of each changed visibility.
    #[must_use]
    pub fn visibility_changes(&self) -> Vec<(QueueName, String, u32)> {
        self.state().queues.visibility_changes.clone()
    }
}

impl Queue for FakePorts {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        let fault = self.state().queues.faults.get(&queue).copied();
        match fault {
            Some(Fault::Refuses) => return Err(QueueError("injected by the test".to_owned())),
            Some(Fault::Hangs) => std::future::pending().await,
            None => {}
        }
        let (elapsed_ms, queues) = (self.elapsed_ms(), &mut self.state().queues);
        if queues.panics_left > 0 {
            queues.panics_left -= 1;
            panic!("injected by the test");
        }
        queues.sent.push((elapsed_ms, queue, message));
        Ok(())
    }

    async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
        self.hang(Hanging::ChangeVisibility).await;
        self.state().queues.visibility_changes.push((queue, receipt.to_owned(), seconds));
    }
}
