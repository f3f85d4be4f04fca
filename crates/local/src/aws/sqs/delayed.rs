//! Copies of the delayed messages of one queue, so that they can be received early.
//!
//! Separate because neither SQS nor the engine can release delayed messages early, and messages
//! that are still delayed when the local AWS stops would be lost.
//!
//! Promises: a copy exists as long as its message is delayed. If copies are sent, a receiver may
//! receive a message twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustack_sqs_model::input::SendMessageInput;
use tokio::time::sleep;

/// Copies of delayed messages, by message id.
#[derive(Debug, Default)]
pub(super) struct Delayed(Mutex<HashMap<String, SendMessageInput>>);

impl Delayed {
    /// Stores the copy of a message until the delay of the message is over.
    pub(super) fn keep(self: &Arc<Self>, id: String, message: SendMessageInput, delay: Duration) {
        self.with(|copies| copies.insert(id.clone(), message));
        let kept = Arc::clone(self);
        tokio::spawn(async move {
            sleep(delay).await;
            kept.with(|copies| copies.remove(&id));
        });
    }

    /// Removes and returns all copies, as messages without a delay.
    pub(super) fn take(&self) -> Vec<SendMessageInput> {
        let copies = self.with(std::mem::take);
        copies.into_values().map(|copy| SendMessageInput { delay_seconds: None, ..copy }).collect()
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, SendMessageInput>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
