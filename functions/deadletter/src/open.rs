//! From a record of the dead-letter queue to its letter. Pure.
//!
//! Most records carry the `deadletter` attribute that dispatch wrote. One without it came by native
//! redrive, after dispatch failed on it again and again: what is known of it becomes a letter with
//! the reason `ProcessingFailed`.

use adapters::records::Record;
use delivery::deadletter::{UNPROCESSED, nameless_topic};
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::event::{Event, Input};
use delivery::subscription::name::SubscriptionName;
use delivery::wire::{WireError, read_dead_letter, read_delivery};

/// Told of a message that came by native redrive. The same at every receive: a letter is a function
/// of its message.
const GIVEN_UP: &str = "its queue gave it up: it was received again and again without an end";

/// Reads a record.
///
/// # Errors
/// [`WireError::UnknownVersion`] when a newer version wrote its attribute: the record has to be
/// given back.
pub fn open(record: &Record) -> Result<DeadLetter, WireError> {
    let read = match (&record.deadletter, &record.delivery) {
        (Some(attribute), _) => read_dead_letter(attribute, &record.body),
        (None, Some(attribute)) => read_delivery(attribute, event_of(record))
            .map(|delivery| given_up(record, delivery, GIVEN_UP)),
        (None, None) => Ok(given_up(record, unprocessed(record), GIVEN_UP)),
    };
    match read {
        Err(WireError::Unreadable(why)) => Ok(given_up(record, unprocessed(record), &why)),
        read => read,
    }
}

fn event_of(record: &Record) -> Event {
    Event::recall(&record.body, Input::Auto)
}

fn given_up(record: &Record, delivery: Delivery, why: &str) -> DeadLetter {
    DeadLetter::without_subscription(delivery, Reason::ProcessingFailed, record.first_received_ms)
        .with_detail(why)
}

/// A published record that dispatch could never take apart.
fn unprocessed(record: &Record) -> Delivery {
    let topic =
        record.topic.as_deref().and_then(|topic| topic.parse().ok()).unwrap_or_else(nameless_topic);
    let origin = Origin { message: record.message.clone(), index: 0 };
    let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
    let new = Delivery::new(event_of(record), name, origin, record.sent_ms);
    Delivery { traceparent: record.traceparent.clone(), ..new }
}
