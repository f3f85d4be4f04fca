//! Models a queue and the invocations that empty it: batch size, duration, concurrency and
//! requests.
//!
//! Separate because this module models only Lambda and SQS; it does not depend on retry policies.
//! The most important assumption is the number of records per invocation. Without a batch window, a
//! poller passes on the messages that it finds. The model then assumes the smallest number with
//! which the allowed concurrency keeps up with the load, usually one. With a window, the model
//! assumes the number of messages that arrive at one poller during the window.

use adapters::queues::{BATCH_ENTRIES_MAX, BATCH_WINDOW};

use super::measured;
use crate::terminal::numbers::rounded;

/// The maximum payload that SQS bills as one request. <https://aws.amazon.com/sqs/pricing/>
const CHUNK_BYTES: f64 = 65_536.0;
/// The minimum number of connections with which Lambda polls a queue.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
pub(super) const POLLERS: f64 = 5.0;
/// The memory at which a function gets one whole processor. With less memory, it gets a
/// proportional share. <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
const MEMORY_OF_A_PROCESSOR_MB: f64 = 1_769.0;
/// The largest payload of an invocation.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const PAYLOAD_MAX_BYTES: f64 = 6.0 * 1_048_576.0;
/// The assumed duration of a request to SQS or S3.
pub(super) const REQUEST_MS: f64 = 10.0;
/// The maximum number of messages in one request.
pub(super) const REQUEST_ENTRIES: f64 = BATCH_ENTRIES_MAX as f64;

/// The processor time per invocation and per record, in microseconds of a whole processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessorTime {
    invocation_us: f64,
    record_us: f64,
}

pub(super) const DISPATCH: ProcessorTime = ProcessorTime {
    invocation_us: measured::DISPATCH_INVOCATION_US,
    record_us: measured::DISPATCH_RECORD_US,
};
pub(super) const DEAD_LETTER: ProcessorTime = ProcessorTime {
    invocation_us: measured::DEAD_LETTER_INVOCATION_US,
    record_us: measured::DEAD_LETTER_RECORD_US,
};

/// The work that the records of a queue cause, and the settings with which Lambda reads them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// The number of records that arrive in `seconds` seconds.
    pub(super) records: f64,
    pub(super) seconds: f64,
    /// The size of a record in bytes.
    pub(super) bytes: f64,
    pub(super) attempts_per_record: f64,
    /// The number of request rounds that one record adds to a full invocation. In each round, a
    /// destination gets its maximum number of concurrent requests. The value is the record's number
    /// of events for one destination, divided by that maximum.
    pub(super) rounds_per_record: f64,
    /// The probability that a record causes a message to be sent.
    pub(super) sends: f64,
    pub(super) answer_ms: f64,
    pub(super) processor: ProcessorTime,
    pub(super) memory_mb: u32,
    /// The batch size of the event source mapping through which Lambda reads the queue.
    pub(super) batch_size: u32,
    /// The batch window of the event source mapping, in seconds.
    pub(super) window_s: u32,
    /// The maximum concurrency of the event source mapping.
    pub(super) concurrency: u32,
}

/// A queue with `records` records, and the invocations and requests that empty it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    pub(super) records: f64,
    /// The number of records per second.
    pub(super) rate: f64,
    /// The number of records per invocation.
    pub(super) fill: u32,
    pub(super) invocations: f64,
    pub(super) invocation_ms: f64,
    /// The number of invocations that make attempts. The others only send a delivery
    /// again whose wait is longer than the longest delay of one message.
    pub(super) attempting: f64,
    /// The average number of concurrent invocations.
    pub(super) at_once: f64,
    /// The average number of concurrent invocations if all batches are full. This is the minimum.
    pub(super) at_once_full: f64,
    pub(super) gb_seconds: f64,
    /// The number of billed receive requests that return messages.
    pub(super) receives: f64,
    pub(super) deletes: f64,
}

impl Work {
    /// Computes the invocations with the batches that Lambda forms for this load.
    pub(super) fn queue(&self) -> Queue {
        self.filled(self.fill())
    }

    /// Computes the invocations with full batches, as if all records arrived at the same time.
    pub(super) fn queue_at_once(&self) -> Queue {
        self.filled(self.most())
    }

    fn filled(&self, fill: u32) -> Queue {
        let invocations = self.records / f64::from(fill);
        let (full, rest) = (f64::from(fill / 10), f64::from(fill % 10));
        let receives = full * chunks(REQUEST_ENTRIES * self.bytes)
            + if rest > 0.0 { chunks(rest * self.bytes) } else { 0.0 };
        let invocation_ms = self.invocation_ms(fill);
        Queue {
            records: self.records,
            rate: self.records / self.seconds,
            fill,
            invocations,
            invocation_ms,
            attempting: invocations * any(self.attempts_per_record.min(1.0), fill),
            at_once: self.at_once(fill),
            at_once_full: self.at_once(self.most()),
            gb_seconds: invocations * invocation_ms / 1_000.0 * f64::from(self.memory_mb) / 1_024.0,
            receives: invocations * receives,
            // A delete request has no payload that could be billed as several requests.
            deletes: invocations * f64::from(fill.div_ceil(10)),
        }
    }

    /// Returns the maximum number of records of an invocation.
    fn most(&self) -> u32 {
        let fitting = rounded((PAYLOAD_MAX_BYTES / self.bytes).floor());
        self.batch_size.min(u32::try_from(fitting).unwrap_or(u32::MAX)).max(1)
    }

    /// Returns the number of records per invocation. Without a batch window, this is the smallest
    /// number that keeps up with the load. With a window, it is the number that arrives at one
    /// poller during the window.
    fn fill(&self) -> u32 {
        let most = self.most();
        let keeps_up = |records: &u32| self.at_once(*records) <= f64::from(self.concurrency);
        let fewest = (1..=most).find(keeps_up).unwrap_or(most);
        let gathered = self.records / self.seconds * f64::from(self.window_s) / POLLERS;
        let in_window = (1..=most).rev().find(|records| f64::from(*records) <= gathered);
        fewest.max(in_window.unwrap_or(1))
    }

    /// Returns the average number of concurrent invocations if each has this many records (Little's
    /// law).
    fn at_once(&self, records: u32) -> f64 {
        let each_s = self.invocation_ms(records) / 1_000.0;
        self.records / self.seconds / f64::from(records) * each_s
    }

    /// Returns the duration of an invocation: its processor time, then its slowest attempt, then
    /// the send requests.
    pub(super) fn invocation_ms(&self, records: u32) -> f64 {
        let share = (f64::from(self.memory_mb) / MEMORY_OF_A_PROCESSOR_MB).min(1.0);
        let handled = f64::from(records) * self.attempts_per_record.max(1.0);
        let ProcessorTime { invocation_us, record_us } = self.processor;
        let processor_ms = (invocation_us + record_us * handled) / 1_000.0 / share;
        let rounds = (f64::from(records) * self.rounds_per_record).ceil();
        let attempts = any(self.attempts_per_record.min(1.0), records);
        // The first message of a batch waits for others during `BATCH_WINDOW`, before the request
        // is sent.
        let send_ms = BATCH_WINDOW.as_secs_f64() * 1_000.0 + REQUEST_MS;
        // Lambda bills whole milliseconds.
        (processor_ms + rounds * attempts * self.answer_ms + send_ms * any(self.sends, records))
            .ceil()
    }
}

/// Returns the probability that at least one of `count` independent events happens.
fn any(probability: f64, count: u32) -> f64 {
    // Use exponentiation by squaring, because `powi` may differ between machines, and estimates
    // must not.
    let (mut none, mut base, mut rest) = (1.0, 1.0 - probability, count);
    while rest > 0 {
        if rest % 2 == 1 {
            none *= base;
        }
        base *= base;
        rest /= 2;
    }
    1.0 - none
}

/// Returns the number of requests that SQS bills for a payload.
pub(super) fn chunks(payload_bytes: f64) -> f64 {
    (payload_bytes / CHUNK_BYTES).ceil().max(1.0)
}
