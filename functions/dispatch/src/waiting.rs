//! How a record waits that cannot be handled now. Pure.
//!
//! ```text
//! received ─┬─ again: it may have crashed us ───► Isolated    isolation queue, at once     counted by `receives`
//!           ├─ its attribute cannot be read ────► Unreadable  its queue, 1 to 15 min       counted by `unread`
//!           ├─ subscriptions cannot be read ────► Unknown     its queue, 5 min to 1 h      counted by `hold.count`
//!           ├─ no room beside other records ────► NoRoom      its queue, at once           not counted
//!           └─ none of these ───────────────────► handled
//! ```
//!
//! A receive count says that a function may have crashed, so waits do not use it up: a waiting record is re-enqueued with a count of
//! its own. SQS delays a message by 15 minutes at most. A longer wait ends hidden, which costs one receive and no further message. A record
//! that is too large to be re-enqueued is hidden (`Unreadable`, `Unknown`) or handled at once (`Isolated`, `NoRoom`).

use delivery::ports::{MESSAGE_MAX_BYTES, Message, QueueName, Record};
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use delivery::waits::{DELAY_MAX_MS, TOO_LARGE_SECONDS, hidden_seconds};

use crate::message::{held_message, hold_of, same_message};

/// How far the clocks of SQS and of a function may be apart, and more.
const CLOCK_SKEW_MS: u64 = 60 * SECOND_MS;

/// At most so many bytes are added to an attribute by a hold.
const HOLD_BYTES: usize = 80;

/// The reason why a record waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordWait {
    /// It was received before, so it or another record of its batch may have crashed a function.
    Isolated,
    /// Its attribute cannot be read; newer code may be able to.
    Unreadable,
    /// Subscriptions that it needs cannot be read.
    Unknown,
    /// It has many deliveries, and so have other records of the invocation.
    NoRoom,
}

/// Where a record waits.
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

impl RecordWait {
    /// Where the record waits; `None` if it is handled now. An isolated record, and one without room, does not wait if it is too
    /// large for a message.
    pub(crate) fn of(self, record: &Record, now_ms: u64) -> Option<Wait> {
        match self {
            Self::Isolated => isolated(record),
            Self::Unreadable => Some(requeued_or_hidden(record.unread_message())),
            Self::Unknown => Some(until_known(record, now_ms)),
            Self::NoRoom => requeued(QueueName::Retry, same_message(record, 0)),
        }
    }
}

fn until_known(record: &Record, now_ms: u64) -> Wait {
    let hold = hold_of(record);
    // Once only, and not for a clock that is behind: more receives would look like a crash.
    if record.receives <= 1 && exceeds_a_delay(record) && hold.left_ms(now_ms) > 0 {
        // No hold is longer: what is left of more than an hour was counted by another clock.
        return Wait::Hidden { seconds: hidden_seconds(hold.left_ms(now_ms).min(HOUR_MS)) };
    }
    requeued_or_hidden(Some(held_message(record, hold.next(now_ms), now_ms)))
}

fn isolated(record: &Record) -> Option<Wait> {
    let expected = if exceeds_a_delay(record) { 2 } else { 1 };
    if record.queue == QueueName::Isolation || record.receives <= expected {
        return None;
    }
    let receives = record.earlier_receives.saturating_add(record.receives);
    let message = Message { receives, ..same_message(record, 0) };
    // With room for a hold: what is hidden because it has none must not be taken for a crash.
    let has_room = message.size_bytes() + HOLD_BYTES <= MESSAGE_MAX_BYTES;
    requeued(QueueName::Isolation, message).filter(|_| has_room)
}

/// True if a record is held for longer than one delay, and so received before that.
fn exceeds_a_delay(record: &Record) -> bool {
    let delayed_until_ms = record.sent_ms.saturating_add(DELAY_MAX_MS + CLOCK_SKEW_MS);
    let may_be_hidden = record.queue.is_internal() && record.queue != QueueName::Isolation;
    may_be_hidden && hold_of(record).until_ms > delayed_until_ms
}

fn requeued(queue: QueueName, message: Message) -> Option<Wait> {
    message.fits().then(|| Wait::Requeued(queue, Box::new(message)))
}

fn requeued_or_hidden(message: Option<Message>) -> Wait {
    let requeued = message.and_then(|message| requeued(QueueName::Retry, message));
    requeued.unwrap_or(Wait::Hidden { seconds: TOO_LARGE_SECONDS })
}
