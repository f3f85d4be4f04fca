//! From a record of the dead-letter queue to its dead letter. Pure.
//!
//! Most records carry the `deadletter` attribute that dispatch wrote. One without it arrived by
//! native redrive, after dispatch failed on it again and again: what is known of it becomes a dead
//! letter with the reason `ProcessingFailed`.

use delivery::deadletter::{UNPROCESSED, nameless_topic};
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::ports::Record;
use delivery::subscription::name::SubscriptionName;
use delivery::wire::{WireError, read_dead_letter, read_delivery};

/// The detail of a message that arrived by native redrive. The same at every receive, because a dead
/// letter is a function of its message.
const REDRIVEN: &str = "its queue gave it up: it was received again and again without an end";

/// Reads a record.
///
/// # Errors
/// [`WireError::UnknownVersion`] when a newer version wrote its attribute: the record has to return
/// to the queue.
pub fn dead_letter_of(record: &Record) -> Result<DeadLetter, WireError> {
    let read = match (&record.deadletter, &record.delivery) {
        (Some(attribute), _) => read_dead_letter(attribute, &record.body),
        (None, Some(attribute)) => read_delivery(attribute, event_of(record))
            .map(|delivery| processing_failed(record, delivery, REDRIVEN)),
        (None, None) => Ok(processing_failed(record, unprocessed(record), REDRIVEN)),
    };
    match read {
        // No later version reads it either: returned to the queue, it would only fail again.
        Err(WireError::Unreadable(why)) => Ok(processing_failed(record, unprocessed(record), &why)),
        read => read,
    }
}

fn event_of(record: &Record) -> Event {
    // This function reads no subscriptions, so the input of the topic is not known here.
    Event::recall(&record.body, Input::Auto)
}

fn processing_failed(record: &Record, delivery: Delivery, why: &str) -> DeadLetter {
    // Not the time of this receive: every redelivery would begin a new period of trying.
    DeadLetter::without_subscription(delivery, Reason::ProcessingFailed, record.first_received_ms)
        .with_detail(why)
}

/// A published record that dispatch could never decode.
fn unprocessed(record: &Record) -> Delivery {
    let topic =
        record.topic.as_deref().and_then(|topic| topic.parse().ok()).unwrap_or_else(nameless_topic);
    // The array is not split: index 0 stands for the whole record.
    let origin = Origin { message: record.message.clone(), index: 0 };
    let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
    let new = Delivery::new(event_of(record), name, origin, record.sent_ms);
    Delivery { traceparent: record.traceparent.clone(), ..new }
}
