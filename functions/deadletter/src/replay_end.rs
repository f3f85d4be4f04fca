//! Records how replayed deliveries ended, beside the ledgers of their jobs.
//!
//! A delivery that is dead again ends with its dead letter, which this function has just stored; of one that was
//! delivered or dropped, dispatch sends a small message. The end is one object in the deployment's container. Of a
//! delivery that was duplicated there may be two; then it was delivered if one of them says so.
//!
//! Separate because an end is a report and no dead letter: it never goes to the last resort and never holds up
//! one. What cannot be written for a day is given up with a log line, and its job shows it as still under way.

use adapters::dead_letter_store::BlobLocation;
use adapters::runtime::contained;
use adapters::telemetry;
use delivery::delivery::DeadLetter;
use delivery::delivery::replay::ReplayEnd;
use delivery::ports::{
    Attribute, Message, PutBlob as _, Queue as _, QueueName, Record, StoragePorts,
};
use delivery::subscription::sink::Container;
use delivery::time::duration::DAY_MS;
use delivery::waits::{REPLAY_END_SECONDS, storage_ms};
use delivery::wire::{WireError, is_replay_end, read_replay_end};

/// An end that storage refused for this long is given up.
const KEEP_TRYING_FOR_MS: u64 = DAY_MS;
/// Where neither storage nor the queue takes an end, its record is redelivered this often. Well below the
/// queue's own limit, behind which it would be a dead letter.
const RECEIVES_MAX: u32 = 10;

/// A record with the end of a replayed delivery.
pub(crate) enum ReplayEndRecord {
    /// It was read.
    Read(ReplayEnd),
    /// Newer code may be able to read it.
    Waits(String),
    /// Nobody can read it.
    Lost(String),
}

impl ReplayEndRecord {
    /// The end that a record carries; `None` if it carries something else.
    pub(crate) fn of(record: &Record, now_ms: u64) -> Option<Self> {
        let Some(Attribute::DeadLetter(text)) = record.trusted_attribute() else { return None };
        if !is_replay_end(text) {
            return None;
        }
        Some(match read_replay_end(text) {
            Ok(end) => Self::Read(end),
            Err(WireError::Unreadable(why)) if record.has_waited_unread(now_ms) => Self::Lost(why),
            Err(error) => Self::Waits(error.to_string()),
        })
    }
}

/// The end that a stored dead letter is, if its delivery was a replay.
pub(crate) fn end_of(
    letter: &DeadLetter,
    location: Option<&BlobLocation>,
    now_ms: u64,
) -> Option<ReplayEnd> {
    let stored = location.map(|of| (of.container.clone(), of.key.clone()));
    ReplayEnd::of_dead_letter(letter, stored, now_ms)
}

/// Records an end in this container; a panic in it is contained. Names its record if it has to be redelivered.
pub(crate) async fn contained_record(
    ports: &impl StoragePorts,
    container: &Container,
    record: &Record,
    end: ReplayEnd,
) -> Vec<String> {
    let done = contained("deadletter", record_end(ports, container, record, &end)).await;
    if done.unwrap_or(false) { Vec::new() } else { vec![record.message.clone()] }
}

/// Records an end in this container, or re-enqueues it; whether its record is done.
pub(crate) async fn record_end(
    ports: &impl StoragePorts,
    container: &Container,
    record: &Record,
    end: &ReplayEnd,
) -> bool {
    let key = end.key(&container.prefix);
    let Err(error) = ports.blobs().put(&container.bucket, &key, end.bytes(), None).await else {
        telemetry::replay_ended(end);
        return true;
    };
    let since_ms = ports.now_ms().saturating_sub(end.at_ms);
    if since_ms >= KEEP_TRYING_FOR_MS {
        telemetry::replay_end_lost(&record.message, &error.to_string());
        return true;
    }
    let wait_ms = storage_ms(since_ms);
    telemetry::replay_end_refused(end, &error.to_string(), wait_ms);
    let sent =
        ports.queues().send(QueueName::DeadLetter, Message::of_replay_end(end, wait_ms)).await;
    let Err(unsent) = sent else { return true };
    telemetry::unsent(end.replay.job(), &unsent.to_string());
    if record.receives >= RECEIVES_MAX {
        telemetry::replay_end_lost(&record.message, &error.to_string());
        return true;
    }
    // Should it fail, the queue's own visibility timeout applies.
    ports.queues().change_visibility(record.queue, &record.receipt, REPLAY_END_SECONDS).await;
    false
}
