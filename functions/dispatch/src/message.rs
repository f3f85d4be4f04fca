//! Writes deliveries, dead letters and whole records as queue messages. Pure.

use std::sync::Arc;

use delivery::delivery::{DeadLetter, Delivery, Hold, Publication};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Message, MessageGroup, Record};
use delivery::wire::{
    read_delivery, read_hold, read_publication, write_dead_letter, write_delivery,
    write_publication,
};

/// Maximum number of deliveries of one request that are moved to the slow lane, or re-enqueued
/// because no slot is free. Each delivery becomes a separate message, so a larger batch would
/// become many requests.
pub(crate) const APART_MAX: usize = 10;

/// True if the delivery, with its state, fits one message.
pub(crate) fn fits_a_message(delivery: &Delivery) -> bool {
    delivery_message(delivery, 0).fits()
}

/// Writes a delivery as a queue message that is delayed by `wait_ms`.
pub(crate) fn delivery_message(delivery: &Delivery, wait_ms: u64) -> Message {
    message(delivery, Attribute::Delivery(write_delivery(delivery)), wait_ms)
}

/// Writes a dead letter as a message, delayed by the `delay` of the dead-letter policy.
pub(crate) fn dead_letter_message(letter: &DeadLetter) -> Message {
    // Measured from the decision instead of now, so the same dead letter always gives the same
    // message.
    let wait_ms = letter.not_before_ms.saturating_sub(letter.decided_ms);
    message(&letter.delivery, Attribute::DeadLetter(write_dead_letter(letter)), wait_ms)
}

fn message(delivery: &Delivery, attribute: Attribute, wait_ms: u64) -> Message {
    Message {
        body: Arc::clone(delivery.event.text()),
        topic: Some(delivery.subscription.topic.clone()),
        attribute,
        group: MessageGroup::Subscription(delivery.subscription.clone()),
        receives: 0,
        unread: 0,
        wait_ms,
    }
}

/// Returns the trusted attribute of a record. For a published record, returns the `publication`
/// attribute that the record gets in an internal queue.
fn attribute_of(record: &Record) -> Attribute {
    let published = || Attribute::Publication(write_publication(&record.as_publication()));
    record.trusted_attribute().cloned().unwrap_or_else(published)
}

/// True if the record was published, even if it has moved to an internal queue. False for a record
/// with one delivery or dead letter.
pub(crate) fn is_published(record: &Record) -> bool {
    matches!(record.trusted_attribute(), None | Some(Attribute::Publication(_)))
}

/// Returns the hold of a record: its waits since the last attempt. The hold is empty if there was
/// none.
pub(crate) fn hold_of(record: &Record) -> Hold {
    record.trusted_attribute().map_or_else(Hold::default, |ours| read_hold(ours.value()))
}

/// Returns the earliest time at which the event could have been delivered: its publication, or the
/// start of its delivery.
pub(crate) fn deliverable_since_ms(record: &Record) -> u64 {
    let known = match record.trusted_attribute() {
        Some(Attribute::Publication(text)) => {
            read_publication(text).map(|publication| publication.published_ms).ok()
        }
        Some(Attribute::Delivery(text)) => {
            let event = Event::recall(&record.body, Input::Auto);
            read_delivery(text, event).map(|delivery| delivery.starts_ms).ok()
        }
        Some(Attribute::DeadLetter(_)) | None => None,
    };
    known.unwrap_or(record.sent_ms)
}

/// Copies a record into a message that is delayed by `wait_ms`.
pub(crate) fn same_message(record: &Record, wait_ms: u64) -> Message {
    Message {
        body: Arc::clone(&record.body),
        topic: record.topic.as_deref().and_then(|topic| topic.parse().ok()),
        attribute: attribute_of(record),
        group: match record.queue.is_internal() {
            true => MessageGroup::Received(record.group.clone()),
            false => MessageGroup::Publisher(record.group.clone()),
        },
        receives: 0,
        unread: record.unread,
        wait_ms,
    }
}

/// Copies a record into a message with `hold`. An unreadable attribute is copied unchanged. A
/// delivery waits until its due time if that is later than the end of the hold. Without this
/// longer wait, it would return after each hold only to be re-enqueued.
pub(crate) fn held_message(record: &Record, hold: Hold, now_ms: u64) -> Message {
    let message = same_message(record, hold.left_ms(now_ms));
    let mut wait_ms = message.wait_ms;
    let attribute = match message.attribute {
        Attribute::Publication(text) => {
            let held = read_publication(&text)
                .map(|publication| write_publication(&Publication { hold, ..publication }));
            Attribute::Publication(held.unwrap_or(text))
        }
        Attribute::Delivery(text) => {
            let held = read_delivery(&text, Event::recall(&record.body, Input::Auto));
            Attribute::Delivery(held.map_or(text, |delivery| {
                wait_ms = wait_ms.max(delivery.due_ms.saturating_sub(now_ms));
                write_delivery(&Delivery { hold, ..delivery })
            }))
        }
        dead_letter @ Attribute::DeadLetter(_) => dead_letter,
    };
    Message { attribute, wait_ms, ..message }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::Origin;
    use delivery::delivery::outcome::{Exchange, TransportResult};
    use delivery::ports::{EVENT_MAX_BYTES, MESSAGE_MAX_BYTES};
    use delivery::publish::topic_bytes;
    use delivery::subscription::Subscription;
    use delivery::subscription::profile::{ATTEMPTS_MAX, Dialect};

    use super::*;

    /// Counts the attempts until an event of `bytes` bytes, including the topic, no longer fits a
    /// message with its state.
    fn attempts_of(bytes: usize) -> u32 {
        let url = "https://billing.example.com/".parse().expect("a URL");
        let name = "shop/orders/billing".parse().expect("a name");
        let subscription = Subscription::new(name, Dialect::Native, url);
        let head = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":""#;
        let of_topic = topic_bytes(&subscription.name.topic);
        let text = format!("{head}{}\"}}", "x".repeat(bytes - of_topic - head.len() - 2));
        let event = Event::recall(&text.into(), Input::Auto);
        let message = "4c2b1f5e-9a3d-4e0b-8f6a-7d1c2e3f4a5b".to_owned();
        let origin = Origin { message, index: 0 };
        let mut delivery =
            Delivery::new(event, subscription.name.clone(), origin, 1_795_158_180_123);
        let result =
            TransportResult::Answered { status: 503, retry_after: None, body: vec![b'x'; 1_024] };
        while fits_a_message(&delivery) && delivery.attempts < ATTEMPTS_MAX {
            let started_ms = 1_795_158_180_123 + u64::from(delivery.attempts) * 60_000;
            delivery.record(&Exchange::new(result.clone(), started_ms, 50), &subscription);
        }
        delivery.attempts
    }

    #[test]
    fn the_documented_sizes_are_attempted_as_often_as_documented() {
        for (bytes, attempts) in [
            (MESSAGE_MAX_BYTES, 0..=1),
            (MESSAGE_MAX_BYTES - 1_000, 1..=1),
            (MESSAGE_MAX_BYTES - 4_096, 30..=ATTEMPTS_MAX),
            (EVENT_MAX_BYTES, ATTEMPTS_MAX..=ATTEMPTS_MAX),
        ] {
            let found = attempts_of(bytes);
            assert!(attempts.contains(&found), "{bytes} bytes: {found} attempts");
        }
    }
}
