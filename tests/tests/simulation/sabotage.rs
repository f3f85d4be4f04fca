//! Sabotaged rules: they prove that the checks can fail.

use delivery::ports::{Attribute, QueueName};
use delivery::wire::write_delivery;

use super::queued::{Carried, Queued};

/// One sabotaged rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// A queue silently drops a message.
    LosesAMessage,
    /// A queue duplicates a message, and no fault is counted.
    DoublesAMessage,
    /// A message loses an attempt.
    ForgetsAnAttempt,
    /// A message loses its wait.
    ForgetsTheWait,
    /// Storage writes a blob under another key.
    MisfilesABlob,
    /// Storage changes a blob.
    ForgesABlob,
}

/// Breaks one rule, once.
#[derive(Debug, Default)]
pub(crate) struct Saboteur {
    /// The rule that is still to be broken.
    pub(crate) plan: Option<Sabotage>,
    /// The rule was broken.
    pub(crate) done: bool,
    /// The second copy of a message, still to be queued.
    pub(crate) copies: Vec<(QueueName, Queued)>,
}

impl Saboteur {
    /// Tampers with a message that is sent to a queue; returns whether it is still sent.
    pub(crate) fn tampers(&mut self, queue: QueueName, held: &mut Queued) -> bool {
        let (Some(plan), false, Carried::Delivery(delivery)) =
            (self.plan, self.done, &held.carried)
        else {
            return true;
        };
        let mut delivery = (**delivery).clone();
        match plan {
            Sabotage::LosesAMessage => {}
            Sabotage::DoublesAMessage => self.copies.push((queue, held.clone())),
            Sabotage::ForgetsAnAttempt if delivery.attempts > 0 => {
                delivery.attempts -= 1;
                held.attribute = Some(Attribute::Delivery(write_delivery(&delivery)));
            }
            Sabotage::ForgetsTheWait if held.visible_ms > held.sent_ms => {
                delivery.due_ms = 0;
                held.visible_ms = held.sent_ms;
                held.attribute = Some(Attribute::Delivery(write_delivery(&delivery)));
            }
            Sabotage::ForgetsAnAttempt
            | Sabotage::ForgetsTheWait
            | Sabotage::MisfilesABlob
            | Sabotage::ForgesABlob => {
                return true;
            }
        }
        self.done = true;
        plan != Sabotage::LosesAMessage
    }

    /// Tampers with a blob that is written to storage.
    pub(crate) fn tampers_with_blob(&mut self, key: &mut String, bytes: &mut Vec<u8>) {
        match self.plan {
            Some(Sabotage::MisfilesABlob) if !self.done => *key = key.replacen("/20", "/19", 1),
            Some(Sabotage::ForgesABlob) if !self.done => {
                let text = String::from_utf8_lossy(bytes).replacen(
                    "deliveryattempts\":",
                    "deliveryattempts\":1",
                    1,
                );
                *bytes = text.into_bytes();
            }
            Some(
                Sabotage::LosesAMessage
                | Sabotage::DoublesAMessage
                | Sabotage::ForgetsAnAttempt
                | Sabotage::ForgetsTheWait
                | Sabotage::MisfilesABlob
                | Sabotage::ForgesABlob,
            )
            | None => return,
        }
        self.done = true;
    }
}
