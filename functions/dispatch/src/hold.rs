//! What is done with a record that cannot be handled now. Pure.
//!
//! A receive count says that a function may have crashed, so nothing else uses it up: what waits is
//! re-enqueued, and counts its waits itself. One delay of SQS is 15 minutes at most; of a longer wait
//! the rest is spent hidden, which costs one more receive and no further message.

use delivery::ports::{MESSAGE_MAX_BYTES, Message, QueueName, Record};
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use delivery::waits::{DELAY_MAX_MS, TOO_LARGE_SECONDS, hidden_seconds};

use crate::message::{held_message, hold_of, queue_of, same_message};

/// How far the clocks of SQS and of a function may be apart, and more.
const CLOCK_SKEW_MS: u64 = 60 * SECOND_MS;

/// At most so many bytes are added to an attribute by a hold.
const HOLD_BYTES: usize = 80;

/// How a record waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As a message in this queue; the record is done.
    Requeued(QueueName, Box<Message>),
    /// In its queue, hidden for this long.
    Hidden {
        /// In seconds from now.
        seconds: u32,
    },
}

/// How a record waits until the subscriptions that it needs can be read.
pub(crate) fn until_known(record: &Record, now_ms: u64) -> Wait {
    let hold = hold_of(record);
    // Once only, and not for a clock that is behind: more receives would look like a crash.
    if record.receives <= 1 && exceeds_a_delay(record) && hold.left_ms(now_ms) > 0 {
        return hidden(hold.left_ms(now_ms));
    }
    requeued(record, held_message(record, hold.next(now_ms), now_ms))
}

/// How a record waits whose attribute cannot be read: newer code may be able to.
pub(crate) fn until_readable(record: &Record) -> Wait {
    match record.unread_message() {
        Some(message) => Wait::Requeued(queue_of(record), Box::new(message)),
        None => Wait::Hidden { seconds: TOO_LARGE_SECONDS },
    }
}

/// The message that moves a record to isolation, if it has to: it was received before, so it or
/// another record of its batch may have crashed a function. One that is too large stays where it is.
pub(crate) fn isolated(record: &Record) -> Option<Message> {
    let expected = if exceeds_a_delay(record) { 2 } else { 1 };
    if record.queue == QueueName::Isolation || record.receives <= expected {
        return None;
    }
    let receives = record.earlier_receives.saturating_add(record.receives);
    let message = Message { receives, ..same_message(record, 0) };
    // With room for a hold: what is hidden because it has none must not be taken for a crash.
    (message.fits() && message.size_bytes() + HOLD_BYTES <= MESSAGE_MAX_BYTES).then_some(message)
}

/// Whether a record is held for longer than one delay, and so received before that.
fn exceeds_a_delay(record: &Record) -> bool {
    let delayed_until_ms = record.sent_ms.saturating_add(DELAY_MAX_MS + CLOCK_SKEW_MS);
    let may_be_hidden = record.queue.is_internal() && record.queue != QueueName::Isolation;
    may_be_hidden && hold_of(record).until_ms > delayed_until_ms
}

fn requeued(record: &Record, message: Message) -> Wait {
    if message.fits() {
        Wait::Requeued(queue_of(record), Box::new(message))
    } else {
        Wait::Hidden { seconds: TOO_LARGE_SECONDS }
    }
}

fn hidden(wait_ms: u64) -> Wait {
    // No hold is longer: what is left of more than an hour was counted by another clock.
    Wait::Hidden { seconds: hidden_seconds(wait_ms.min(HOUR_MS)) }
}
