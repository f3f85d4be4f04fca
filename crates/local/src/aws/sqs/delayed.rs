//! Copies of the messages that one queue delays, so that they can be received before their time.
//!
//! Separate because SQS has no such operation, and neither has the engine: what waits when the queues end would be lost.
//!
//! Promises: a copy is there as long as its message is delayed. Whoever receives copies may receive a message twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustack_sqs_model::input::SendMessageInput;
use tokio::time::sleep;

/// The copies, by the ids of their messages.
#[derive(Debug, Default)]
pub(super) struct Delayed(Mutex<HashMap<String, SendMessageInput>>);

impl Delayed {
    /// Keeps the copy of a message until its delay is over.
    pub(super) fn keep(self: &Arc<Self>, id: String, message: SendMessageInput, delay: Duration) {
        self.with(|copies| copies.insert(id.clone(), message));
        let kept = Arc::clone(self);
        tokio::spawn(async move {
            sleep(delay).await;
            kept.with(|copies| copies.remove(&id));
        });
    }

    /// Takes all copies, without their delays.
    pub(super) fn take(&self) -> Vec<SendMessageInput> {
        let copies = self.with(std::mem::take);
        copies.into_values().map(|copy| SendMessageInput { delay_seconds: None, ..copy }).collect()
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, SendMessageInput>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
