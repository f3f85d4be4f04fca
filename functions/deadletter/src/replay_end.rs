//! Records the results of replayed deliveries, beside the ledgers of their jobs.
//!
//! If a replayed delivery fails again, the result is the dead letter that this function has just
//! stored. If it is delivered or dropped, dispatch sends a small message. All results of one job in
//! one invocation become one object in the deployment's container. With an object for each result,
//! a thousand results would be a thousand objects to write and to read. A duplicated delivery may
//! have two results. It counts as delivered if either result is a success.
//!
//! Separate because a result is a report and not a dead letter: it never goes to the last-resort
//! queue, and never delays a dead letter. A result that still cannot be written after a day is
//! dropped with a log line. Its job then shows an unknown result for the delivery.

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

/// Maximum number of results that are re-enqueued concurrently.
const AT_ONCE: usize = 50;

/// A result that storage refuses is dropped when it is older than this time.
const KEEP_TRYING_FOR_MS: u64 = DAY_MS;
/// Maximum number of receives of a result that neither storage nor the queue accepts. The result is
/// then dropped, long before the queue would move it to the last-resort queue (1,000 receives).
const RECEIVES_MAX: u32 = 10;

/// A record that contains the result of a replayed delivery.
pub(crate) enum ReplayEndRecord {
    Read(ReplayEnd),
    /// The result is unreadable, but newer code may be able to read it.
    Waits(String),
    /// The result is unreadable, and the wait for newer code is over.
    Lost(String),
}

impl ReplayEndRecord {
    /// Reads the replay result in a record; `None` if the record contains something else.
    pub(crate) fn read(record: &Record, now_ms: u64) -> Option<Self> {
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

/// Returns the replay result of a delivery that ended with this dead letter; `None` if the delivery
/// was not a replay.
pub(crate) fn end_of(
    letter: &DeadLetter,
    location: Option<BlobLocation>,
    now_ms: u64,
) -> Option<ReplayEnd> {
    let stored = location.map(|location| (location.container, location.key));
    ReplayEnd::of_dead_letter(letter, stored, now_ms)
}

/// A replay result, and the record that contained it.
pub(crate) type ReceivedEnd<'a> = (&'a Record, ReplayEnd);

/// Groups replay results by job, because the results of a job share an object.
pub(crate) fn by_job(ends: Vec<ReceivedEnd<'_>>) -> Vec<Vec<ReceivedEnd<'_>>> {
    let mut jobs: BTreeMap<String, Vec<ReceivedEnd<'_>>> = BTreeMap::new();
    for (record, end) in ends {
        jobs.entry(end.replay.job().to_owned()).or_default().push((record, end));
    }
    jobs.into_values().collect()
}

/// Records replay results of one job in `container`, and contains any panic. Returns the message
/// ids of the records that SQS must redeliver.
pub(crate) async fn contained_record(
    ports: &impl StoragePorts,
    container: &Container,
    ends: &[ReceivedEnd<'_>],
) -> Vec<String> {
    let done = contained("deadletter", record_ends(ports, container, ends)).await;
    done.unwrap_or_else(|| ends.iter().map(|(record, _)| record.message.clone()).collect())
}

/// Records replay results of one job in this container. Re-enqueues or drops them if the container
/// refuses them. Returns the message ids of the records that SQS must redeliver.
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

/// Re-enqueues a replay result that could not be stored, or drops an old one. Returns true if the
/// record can be acknowledged. Otherwise SQS must redeliver it.
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
    // If this fails, the queue's own visibility timeout applies.
    ports.queues().change_visibility(record.queue, &record.receipt, REPLAY_END_SECONDS).await;
    false
}
