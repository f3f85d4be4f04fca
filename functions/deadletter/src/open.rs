//! From a record of the dead-letter queue to its letter. Pure.
//!
//! Most records carry the `deadletter` attribute that dispatch wrote. One without it came by native redrive, after
//! dispatch failed on it again and again: what is known of it becomes a letter with the reason `ProcessingFailed`.

use adapters::records::Record;
use delivery::blob::{UNPROCESSED, nameless_topic};
use delivery::deadletter::{Letter, Reason};
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::subscription::SubscriptionName;
use delivery::wire::{WireError, read_delivery, read_letter};

/// Told of a message that came by native redrive. The same at every receive: a letter is a function of its message.
const GIVEN_UP: &str = "its queue gave it up: it was received again and again without an end";

/// Reads a record.
///
/// # Errors
/// [`WireError`] when its attribute is not ours to read: the record has to be given back.
pub(crate) fn open(record: &Record) -> Result<Letter, WireError> {
    if let Some(attribute) = &record.deadletter {
        return read_letter(attribute, &record.body);
    }
    let event = Event::recall(&record.body, Input::Auto);
    let delivery = match &record.delivery {
        Some(attribute) => read_delivery(attribute, event)?,
        None => unprocessed(record, event),
    };
    let decided_ms = record.first_received_ms;
    Ok(Letter::without_subscription(delivery, Reason::ProcessingFailed, decided_ms).because(GIVEN_UP))
}

/// A published record that dispatch could never take apart.
fn unprocessed(record: &Record, event: Event) -> Delivery {
    let topic = record.topic.as_deref().and_then(|topic| topic.parse().ok()).unwrap_or_else(nameless_topic);
    let origin = Origin { message: record.message.clone(), index: 0 };
    Delivery::new(event, SubscriptionName { topic, name: UNPROCESSED.to_owned() }, origin, record.sent_ms)
}
