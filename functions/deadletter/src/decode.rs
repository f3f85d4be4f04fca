//! From a record of the dead-letter queue to its dead letter. Pure.
//!
//! Most records carry the `deadletter` attribute that dispatch wrote. One without it arrived by
//! native redrive, after dispatch failed on it again and again: what is known of it becomes a dead
//! letter with the reason `ProcessingFailed`. Publishers wrote what the events queue gave up, so such
//! a record has no attribute here.

use delivery::deadletter::UNPROCESSED;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Publication};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Record};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::wire::{WireError, read_dead_letter, read_delivery, read_publication};

/// The detail of a message that arrived by native redrive. The same at every receive, because a dead
/// letter is a function of its message.
const REDRIVEN: &str = "its queue gave it up: it was received again and again without an end";

/// Reads a record.
///
/// # Errors
/// [`WireError`] when newer code may be able to read its attribute: the record has to wait.
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
    // This function reads no subscriptions, so the input of the topic is not known here.
    Event::recall(&record.body, Input::Auto)
}

fn processing_failed(record: &Record, delivery: Delivery, why: &str) -> DeadLetter {
    // Not the time of this receive: every redelivery would begin a new period of trying.
    DeadLetter::without_subscription(delivery, Reason::ProcessingFailed, record.first_received_ms)
        .with_detail(why)
}

/// A published record that dispatch could never decode.
fn unprocessed(record: &Record, publication: &Publication) -> Delivery {
    let topic = publication.topic.as_deref().map_or_else(TopicName::nameless, TopicName::published);
    let name = SubscriptionName { topic, name: UNPROCESSED.to_owned() };
    publication.whole(event_of(record), name)
}
