//! Records how replayed deliveries ended, beside the ledgers of their jobs.
//!
//! A delivery that is dead again ends with its dead letter, which this function has just stored; of one that was
//! delivered or dropped, dispatch sends a small message. The ends of a job that one invocation has, of both kinds, are one
//! object in the deployment's container. A delivery that was duplicated may end twice; then it was delivered if one end says so.
//!
//! Separate because an end is a report and no dead letter: it never goes to the last resort and never holds up
//! one. What cannot be written for a day is given up with a log line, and its job shows it as still under way.

use std::collections::BTreeMap;

use adapters::dead_letter_store::BlobLocation;
use adapters::runtime::contained;
use adapters::telemetry;
use delivery::delivery::DeadLetter;
use delivery::delivery::replay::{ReplayEnd, write_ends};
use delivery::ports::{
    Attribute, Message, PutBlob as _, PutError, Queue as _, QueueName, Record, StoragePorts,
};
use delivery::subscription::sink::Container;
use delivery::time::duration::DAY_MS;
use delivery::waits::{REPLAY_END_SECONDS, storage_ms};
use delivery::wire::{WireError, is_replay_end, read_replay_end};
use futures::future::ready;
use futures::stream::{self, StreamExt as _};

/// Messages that return to their queue at a time.
const AT_ONCE: usize = 50;

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
    location: Option<BlobLocation>,
    now_ms: u64,
) -> Option<ReplayEnd> {
    let stored = location.map(|of| (of.container, of.key));
    ReplayEnd::of_dead_letter(letter, stored, now_ms)
}

/// An end and the record that brought it.
pub(crate) type ReceivedEnd<'a> = (&'a Record, ReplayEnd);

/// The ends of an invocation, those of a job together: they share an object.
pub(crate) fn by_job(ends: Vec<ReceivedEnd<'_>>) -> Vec<Vec<ReceivedEnd<'_>>> {
    let mut jobs: BTreeMap<String, Vec<ReceivedEnd<'_>>> = BTreeMap::new();
    for (record, end) in ends {
        jobs.entry(end.replay.job().to_owned()).or_default().push((record, end));
    }
    jobs.into_values().collect()
}

/// Records ends of a job in this container; a panic in it is contained. Names the records that have to be
/// redelivered.
pub(crate) async fn contained_record(
    ports: &impl StoragePorts,
    container: &Container,
    ends: &[ReceivedEnd<'_>],
) -> Vec<String> {
    let done = contained("deadletter", record_ends(ports, container, ends)).await;
    done.unwrap_or_else(|| ends.iter().map(|(record, _)| record.message.clone()).collect())
}

/// Records ends of a job in this container, or re-enqueues them; names the records that are not done.
async fn record_ends(
    ports: &impl StoragePorts,
    container: &Container,
    received: &[ReceivedEnd<'_>],
) -> Vec<String> {
    let ends: Vec<ReplayEnd> = received.iter().map(|(_, end)| end.clone()).collect();
    let Some(job) = ends.first().map(|end| end.replay.job()) else { return Vec::new() };
    let (key, bytes) = write_ends(&container.prefix, job, &ends);
    let Err(error) = ports.blobs().put(&container.bucket, &key, bytes, None).await else {
        ends.iter().for_each(telemetry::replay_ended);
        return Vec::new();
    };
    let error = &error;
    let unrecorded = received.iter().map(|(record, end)| async move {
        let is_done = is_done_without_storage(ports, record, end, error).await;
        (!is_done).then(|| record.message.clone())
    });
    let unrecorded: Vec<_> = unrecorded.collect();
    stream::iter(unrecorded).buffer_unordered(AT_ONCE).filter_map(ready).collect().await
}

/// Re-enqueues an end that storage refused, or gives it up; whether its record is done.
async fn is_done_without_storage(
    ports: &impl StoragePorts,
    record: &Record,
    end: &ReplayEnd,
    error: &PutError,
) -> bool {
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
