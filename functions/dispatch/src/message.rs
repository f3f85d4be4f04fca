//! Deliveries and dead letters as messages. Pure.

use std::sync::Arc;

use delivery::delivery::{DeadLetter, Delivery};
use delivery::ports::{Attribute, Message};
use delivery::wire::{write_dead_letter, write_delivery};

/// Whether a delivery fits a message of its own, state and all.
pub(crate) fn fits_a_message(delivery: &Delivery) -> bool {
    delivery_message(delivery, 0).fits()
}

/// A delivery as a message of its own, to be received after about the wait.
pub(crate) fn delivery_message(delivery: &Delivery, wait_ms: u64) -> Message {
    message(delivery, Attribute::Delivery(write_delivery(delivery)), wait_ms)
}

/// A dead letter as a message to its queue. Its wait is the delay of its dead-letter policy.
pub(crate) fn dead_letter_message(letter: &DeadLetter) -> Message {
    // From the decision, not from now: the same dead letter makes the same message.
    let wait_ms = letter.not_before_ms.saturating_sub(letter.decided_ms);
    message(&letter.delivery, Attribute::DeadLetter(write_dead_letter(letter)), wait_ms)
}

fn message(delivery: &Delivery, attribute: Attribute, wait_ms: u64) -> Message {
    Message {
        body: Arc::clone(delivery.event.text()),
        topic: Some(delivery.subscription.topic.clone()),
        attribute,
        subscription: delivery.subscription.clone(),
        wait_ms,
    }
}
