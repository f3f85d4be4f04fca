//! Sabotaged rules: they prove that the checks can fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::delivery::Delivery;
use delivery::ports::{Attribute, QueueName, Record};
use delivery::wire::write_delivery;
use uuid::Uuid;

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
    /// Every message loses all its attempts.
    ForgetsAllAttempts,
    /// A message loses its wait.
    ForgetsTheWait,
    /// No message is delayed.
    ForgetsEveryDelay,
    /// A message loses its age.
    ForgetsItsAge,
    /// A wait counts as a receive.
    CountsAWait,
    /// A function believes what a publisher wrote.
    TrustsAPublisher,
    /// Storage writes a blob under another key.
    MisfilesABlob,
    /// Storage changes a blob.
    ForgesABlob,
}

/// Attempts of one delivery that are forgotten: more than any policy allows.
const FORGOTTEN: u32 = 35;
/// So many messages are not delayed; without an end, time would stand still.
const NOT_DELAYED: u32 = 300;

/// Breaks one rule, once or as often as it takes.
#[derive(Debug, Default)]
pub(crate) struct Saboteur {
    /// The rule that is still to be broken.
    plan: Option<Sabotage>,
    /// The rule was broken.
    pub(crate) done: bool,
    /// The second copy of a message, still to be queued.
    pub(crate) copies: Vec<(QueueName, Queued)>,
    forgotten: BTreeMap<Uuid, u32>,
    not_delayed: u32,
}

impl Saboteur {
    /// Breaks this rule.
    pub(crate) fn new(plan: Option<Sabotage>) -> Self {
        Self { plan, ..Self::default() }
    }

    /// Tampers with a message that is sent to a queue; returns whether it is still sent.
    pub(crate) fn tampers(&mut self, queue: QueueName, queued: &mut Queued) -> bool {
        let (Some(plan), Carried::Delivery(delivery)) = (self.plan, &queued.carried) else {
            return true;
        };
        let mut delivery = (**delivery).clone();
        match plan {
            Sabotage::ForgetsAllAttempts if delivery.attempts > 0 => {
                let forgotten = self.forgotten.entry(delivery.id).or_default();
                *forgotten += 1;
                if *forgotten > FORGOTTEN {
                    self.done = true;
                    return true;
                }
                delivery.attempts = 0;
                rewrite(queued, &delivery);
                queued.carried = Carried::Delivery(Arc::new(delivery));
                return true;
            }
            Sabotage::ForgetsEveryDelay if queued.visible_ms > queued.sent_ms => {
                self.not_delayed += 1;
                if self.not_delayed <= NOT_DELAYED {
                    queued.visible_ms = queued.sent_ms;
                }
                self.done = self.not_delayed > NOT_DELAYED;
                return true;
            }
            _ if self.done => return true,
            Sabotage::LosesAMessage => {}
            Sabotage::DoublesAMessage => self.copies.push((queue, queued.clone())),
            Sabotage::ForgetsAnAttempt if delivery.attempts > 0 => {
                delivery.attempts -= 1;
                rewrite(queued, &delivery);
            }
            Sabotage::ForgetsTheWait if queued.visible_ms > queued.sent_ms => {
                delivery.due_ms = 0;
                queued.visible_ms = queued.sent_ms;
                rewrite(queued, &delivery);
            }
            // In the slow lane it may end at once, in deliveries of a dead letter that have an age of their own.
            Sabotage::ForgetsItsAge
                if queue == QueueName::Retry && queued.sent_ms > delivery.published_ms =>
            {
                delivery.published_ms = queued.sent_ms;
                rewrite(queued, &delivery);
            }
            Sabotage::CountsAWait => queued.receives += 1,
            Sabotage::ForgetsAnAttempt
            | Sabotage::ForgetsAllAttempts
            | Sabotage::ForgetsTheWait
            | Sabotage::ForgetsEveryDelay
            | Sabotage::ForgetsItsAge
            | Sabotage::TrustsAPublisher
            | Sabotage::MisfilesABlob
            | Sabotage::ForgesABlob => return true,
        }
        self.done = true;
        plan != Sabotage::LosesAMessage
    }

    /// Tampers with a record that a function receives.
    pub(crate) fn tampers_with_record(&mut self, record: Record) -> Record {
        let forged = match &record.attribute {
            Some(Attribute::Delivery(value) | Attribute::Publication(value)) => {
                value.starts_with('{')
            }
            Some(Attribute::DeadLetter(_)) | None => false,
        };
        let believes = self.plan == Some(Sabotage::TrustsAPublisher)
            && record.queue == QueueName::Events
            && forged;
        if !believes {
            return record;
        }
        self.done = true;
        Record { queue: QueueName::Retry, ..record }
    }

    /// Tampers with a blob that is written to storage.
    pub(crate) fn tampers_with_blob(&mut self, key: &mut String, bytes: &mut Vec<u8>) {
        if self.done {
            return;
        }
        if self.plan == Some(Sabotage::MisfilesABlob) {
            *key = key.replacen("/20", "/19", 1);
            self.done = true;
        }
        if self.plan == Some(Sabotage::ForgesABlob) {
            let text = String::from_utf8_lossy(bytes);
            *bytes = text.replacen("deliveryattempts\":", "deliveryattempts\":1", 1).into_bytes();
            self.done = true;
        }
    }
}

fn rewrite(queued: &mut Queued, delivery: &Delivery) {
    queued.attribute = Some(Attribute::Delivery(write_delivery(delivery)));
}
