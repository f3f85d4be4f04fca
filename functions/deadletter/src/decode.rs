//! Reads the dead letter in a record of the dead-letter queue. Pure.
//!
//! Dispatch writes the attribute `deadletter` into most records. A record without this attribute
//! arrived by native redrive, after dispatch had failed on it repeatedly. Its event becomes a dead
//! letter with the reason `ProcessingFailed`. The attributes of a record from the events queue are
//! not trusted, because its publisher wrote them.

use delivery::deadletter::UNPROCESSED;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Publication};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Record};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::wire::{WireError, read_dead_letter, read_delivery, read_publication};

/// Detail of a dead letter that arrived by native redrive. The text is constant, because a
/// redelivered message must produce the same dead letter.
const REDRIVEN: &str = "the queue moved the message here: it was received repeatedly but never \
                        completed";

/// Returns the dead letter in a record.
///
/// # Errors
/// [`WireError`] if the attribute may come from a newer version. The record must then wait.
pub fn dead_letter_of(record: &Record, now_ms: u64) -> Result<DeadLetter, WireError> {
    let topic = || record.topic.as_deref().map_or_else(TopicName::nameless, TopicName::published);
    let read = match record.trusted_attribute() {
        Some(Attribute::DeadLetter(text)) => read_dead_letter(text, &record.body),
        Some(Attribute::Delivery(text)) => read_delivery(text, event_of(record))
            .map(|delivery| processing_failed(record, delivery, REDRIVEN)),
        Some(Attribute::Publication(text)) => read_publication(text).map(|publication| {
            let part = publication.part.as_ref();
            let why = part.map_or(REDRIVEN.to_owned(), |part| format!("{REDRIVEN} ({part})"));
            processing_failed(record, unprocessed(record, &publication), &why)
        }),
        None => Ok(processing_failed(record, record.unprocessed(topic()), REDRIVEN)),
    };
    match read {
        Err(WireError::Unreadable(why)) if record.has_waited_unread(now_ms) => {
            Ok(processing_failed(record, record.unprocessed(topic()), &why))
        }
        read => read,
    }
}

fn event_of(record: &Record) -> Event {
    // This function reads no subscriptions, so the topic's `input` setting is not available.
    Event::recall(&record.body, Input::Auto)
}

fn processing_failed(record: &Record, delivery: Delivery, why: &str) -> DeadLetter {
    // Use the time of the first receive: with the current time, every redelivery would begin a new
    // period of retries.
    DeadLetter::without_subscription(delivery, Reason::ProcessingFailed, record.first_received_ms)
        .with_detail(why)
}

/// Creates one delivery for a whole published record, because dispatch could never decode it.
fn unprocessed(record: &Record, publication: &Publication) -> Delivery {
    let topic = publication.topic.as_deref().map_or_else(TopicName::nameless, TopicName::published);
    let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
    publication.whole(event_of(record), name)
}
