//! Decides how a record waits if it cannot be handled now. Pure.
//!
//! ```text
//! received ─┬─ again: it may have crashed us ───► Isolated    isolation queue, at once     counted by `receives`
//!           ├─ its attribute cannot be read ────► Unreadable  its queue, 1 to 15 min       counted by `unread`
//!           ├─ subscriptions cannot be read ────► Unknown     its queue, 5 min to 1 h      counted by `hold.count`
//!           ├─ too many deliveries already ─────► NoRoom      its queue, at once           not counted
//!           └─ none of these ───────────────────► handled
//! ```
//!
//! A further receive means that a function may have crashed, so waits must not use receives up. A
//! waiting record is re-enqueued with a separate counter. SQS delays a message by at most 15
//! minutes. The rest of a longer wait is a visibility timeout, which costs one receive and no
//! further message. A record that is too large to be re-enqueued is hidden (`Unreadable`,
//! `Unknown`) or handled immediately (`Isolated`, `NoRoom`).

use delivery::ports::{MESSAGE_MAX_BYTES, Message, QueueName, Record};
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use delivery::waits::{DELAY_MAX_MS, TOO_LARGE_SECONDS, hidden_seconds};

use crate::message::{held_message, hold_of, same_message};

/// Upper bound of the clock skew between SQS and a function.
const CLOCK_SKEW_MS: u64 = 60 * SECOND_MS;

/// Maximum number of bytes that a hold adds to an attribute.
const HOLD_BYTES: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordWait {
    /// The record was received before, so the record or another one of its batch may have crashed a
    /// function.
    Isolated,
    /// The attribute cannot be read; newer code may be able to.
    Unreadable,
    /// A subscription that the record needs cannot be read.
    Unknown,
    /// The record has many deliveries, and the invocation already has many from other records.
    NoRoom,
}

/// The wait of a record that cannot be handled now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The record waits as this message in this queue. The received record is acknowledged.
    Requeued(QueueName, Box<Message>),
    /// The record waits in its own queue, hidden by a visibility timeout.
    Hidden {
        /// The visibility timeout in seconds.
        seconds: u32,
    },
}

impl RecordWait {
    /// Returns the wait of the record; `None` if it is handled now. A record that is too large for
    /// a message is handled immediately if the reason is `Isolated` or `NoRoom`.
    pub(crate) fn wait(self, record: &Record, now_ms: u64) -> Option<Wait> {
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
    // Hide the record only on its first receive, even if a slow clock shows remaining time: further
    // receives would look like a crash.
    if record.receives <= 1 && exceeds_a_delay(record) && hold.left_ms(now_ms) > 0 {
        // A hold lasts at most an hour. A longer remaining time was computed with a wrong clock.
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
    // Leaves space for a hold. Without this space, the record would have to be hidden, and its
    // extra receive would look like a crash.
    let has_room = message.size_bytes() + HOLD_BYTES <= MESSAGE_MAX_BYTES;
    requeued(QueueName::Isolation, message).filter(|_| has_room)
}

/// True if the hold is longer than one SQS delay. The record is then received before the hold ends
/// and hidden for the rest, which costs one receive.
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
