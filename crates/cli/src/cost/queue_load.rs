//! A queue and the invocations that process it: batch size, duration and concurrency.
//!
//! Separate because it models Lambda and SQS and knows no policies. The assumption that matters
//! most is how many records an invocation gets. Without a batch window a poller passes on what it
//! finds, so it is the fewest that keep up: one, as long as the concurrency allows it. With a
//! window it is what arrives at one poller during the window.

use adapters::queues::{BATCH_ENTRIES_MAX, BATCH_WINDOW};
use delivery::time::duration::SECOND_MS;

use super::average::as_f64;
use super::plan::Pollers;
use crate::numbers::rounded;
use crate::queues;
use crate::stack::POLLER_INVOCATIONS;

/// Seconds in a day.
pub(crate) const DAY_S: f64 = 86_400.0;
/// SQS bills each started 64 KiB of a payload as one request.
/// <https://aws.amazon.com/sqs/pricing/>
pub(crate) const CHUNK_BYTES: f64 = 65_536.0;
/// Lambda polls a queue with at least this many connections.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
pub(crate) const POLLERS: f64 = 5.0;
/// What an event poller of Lambda's provisioned mode handles at most, beside its invocations: so many bytes and so many
/// polls a second.
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html>
const POLLER_BYTES: f64 = 1_000_000.0;
const POLLER_POLLS: f64 = 10.0;
/// The duration of a poll that finds nothing: `ReceiveMessageWaitTimeSeconds`.
pub(crate) const POLL_S: f64 = 20.0;
/// A function with this memory has one processor, and one with less has a share of it.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
const MEMORY_OF_A_PROCESSOR_MB: u32 = 1_769;
/// The time of a request to SQS or S3. Assumed.
pub(crate) const REQUEST_MS: f64 = 10.0;
/// The most messages of one request.
pub(super) const REQUEST_ENTRIES: f64 = BATCH_ENTRIES_MAX as f64;

/// A queue and the invocations that process it, in a day.
#[derive(Debug, Clone)]
pub(crate) struct QueueLoad {
    /// Messages received.
    pub(crate) records: f64,
    /// Messages per invocation.
    pub(crate) fill: u32,
    /// Invocations.
    pub(crate) invocations: f64,
    /// Invocations that attempt a delivery; the others only send the next hop of a wait.
    pub(crate) attempting: f64,
    /// The duration of an invocation.
    pub(crate) invocation_ms: f64,
    /// Concurrent invocations, on average.
    pub(crate) concurrency: f64,
    /// The same with full batches: the least that is needed.
    pub(crate) concurrency_full: f64,
    /// Event pollers that it takes in provisioned mode, on average.
    pub(crate) pollers: f64,
    /// The same with full batches.
    pub(crate) pollers_full: f64,
    /// Receive requests, including empty ones.
    pub(crate) receives: f64,
    /// Receive requests that find nothing.
    pub(crate) empty: f64,
    /// Delete requests.
    pub(crate) deletes: f64,
    /// Receive requests for the records of an invocation.
    pub(crate) receives_per_invocation: f64,
    /// Delete requests for the records of an invocation.
    pub(crate) deletes_per_invocation: f64,
}

/// The processor time of an invocation, as `bench/run` measures it on a whole processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessorTime {
    pub(super) invocation_us: f64,
    pub(super) record_us: f64,
}

impl ProcessorTime {
    /// How long so many records take a function with this memory.
    fn ms(self, records: f64, memory_mb: u32) -> f64 {
        let share = f64::from(memory_mb.min(MEMORY_OF_A_PROCESSOR_MB))
            / f64::from(MEMORY_OF_A_PROCESSOR_MB);
        (self.invocation_us + self.record_us * records) / 1_000.0 / share
    }
}

/// What the records of a queue cause.
pub(super) struct QueueWork {
    pub(super) records: f64,
    pub(super) attempts_per_record: f64,
    /// The events of a record for one subscription.
    pub(super) events_per_record: f64,
    /// What a record costs the function that handles it.
    pub(super) processor: ProcessorTime,
    pub(super) memory_mb: u32,
    /// The probability that an attempt fails.
    pub(super) fails: f64,
    /// The probability that a record sends a message.
    pub(super) sends: f64,
    /// Time of waits in place and of the attempts after them, per record.
    pub(super) in_place_ms: f64,
    /// The time of an attempt that succeeds, and of one that fails.
    pub(super) answer_ms: f64,
    pub(super) failure_ms: f64,
    /// Concurrent attempts for one subscription.
    pub(super) max_concurrency: u32,
}

/// The settings of an event source mapping.
pub(super) struct EventSourceMapping {
    pub(super) batch_size: u32,
    pub(super) window_s: u32,
    pub(super) concurrency: u32,
    /// `None` where Lambda decides how many there are.
    pub(super) pollers: Option<Pollers>,
}

/// The connections with which Lambda polls a queue at least. How many an idle event poller has AWS does not say: counted is
/// one.
pub(super) fn connections(pollers: Option<Pollers>) -> f64 {
    pollers.map_or(POLLERS, |pollers| POLLERS.max(f64::from(pollers.minimum)))
}

/// The queues that Lambda polls.
pub(super) fn polled() -> f64 {
    as_f64(queues::mappings().count() as u64)
}

/// The polls of so many queues that are empty all day.
pub(super) fn idle_polls(queues: f64) -> f64 {
    queues * POLLERS * DAY_S / POLL_S
}

impl QueueLoad {
    pub(super) fn of(work: &QueueWork, mapping: &EventSourceMapping, bytes: f64) -> Self {
        Self::with_fill(work, mapping, bytes, work.fill(mapping, bytes))
    }

    /// Takes full batches: the records are there all at once.
    pub(super) fn at_once(work: &QueueWork, mapping: &EventSourceMapping, bytes: f64) -> Self {
        Self::with_fill(work, mapping, bytes, mapping.batch_size.max(1))
    }

    fn with_fill(work: &QueueWork, mapping: &EventSourceMapping, bytes: f64, fill: u32) -> Self {
        let invocations = work.records / f64::from(fill);
        let (full_requests, rest) = (f64::from(fill / 10), f64::from(fill % 10));
        let receives_per_invocation = full_requests * chunks(REQUEST_ENTRIES * bytes)
            + if rest > 0.0 { chunks(rest * bytes) } else { 0.0 };
        let receives = invocations * receives_per_invocation;
        // A delete has no payload to be billed by 64 KiB, so only the ten entries count.
        let deletes_per_invocation = f64::from(fill.div_ceil(10));
        let empty = (connections(mapping.pollers) * DAY_S / POLL_S - receives).max(0.0);
        let invocation_ms = work.invocation_ms(fill);
        Self {
            records: work.records,
            fill,
            invocations,
            attempting: invocations * work.any_attempt(fill),
            invocation_ms,
            concurrency: invocations / DAY_S * invocation_ms / 1_000.0,
            concurrency_full: work.concurrency(mapping.batch_size),
            pollers: work.pollers(fill, bytes),
            pollers_full: work.pollers(mapping.batch_size, bytes),
            receives: receives + empty,
            empty,
            deletes: invocations * deletes_per_invocation,
            receives_per_invocation,
            deletes_per_invocation,
        }
    }

    /// GB-seconds of a function with this memory.
    pub(crate) fn gb_seconds(&self, memory_mb: u32) -> f64 {
        self.invocations * self.invocation_ms / 1_000.0 * f64::from(memory_mb) / 1_024.0
    }
}

impl QueueWork {
    /// Records of an invocation: the fewest that keep up, or what arrives at one poller during the
    /// window.
    fn fill(&self, mapping: &EventSourceMapping, bytes: f64) -> u32 {
        let most = mapping.batch_size.max(1);
        let keeps_up = |records: &u32| {
            let suffices =
                |pollers: Pollers| self.pollers(*records, bytes) <= f64::from(pollers.maximum);
            self.concurrency(*records) <= f64::from(mapping.concurrency)
                && mapping.pollers.is_none_or(suffices)
        };
        let fewest = (1..=most).find(keeps_up).unwrap_or(most);
        let gathered =
            self.records / DAY_S * f64::from(mapping.window_s) / connections(mapping.pollers);
        let in_window =
            (1..=most).rev().find(|records| f64::from(*records) <= gathered).unwrap_or(1);
        fewest.max(in_window)
    }

    /// Concurrent invocations of this many records each.
    fn concurrency(&self, records: u32) -> f64 {
        self.records / DAY_S / f64::from(records) * self.invocation_ms(records) / 1_000.0
    }

    /// Event pollers that invocations of this many records take: for the invocations, the bytes and the polls.
    fn pollers(&self, records: u32, bytes: f64) -> f64 {
        let invocations = self.records / DAY_S / f64::from(records);
        let polls = invocations * (f64::from(records) / REQUEST_ENTRIES).ceil();
        let invoking = self.concurrency(records) / f64::from(POLLER_INVOCATIONS);
        let reading = self.records / DAY_S * bytes / POLLER_BYTES;
        invoking.max(reading).max(polls / POLLER_POLLS)
    }

    /// The probability that an invocation of this many records makes an attempt.
    fn any_attempt(&self, records: u32) -> f64 {
        any(self.attempts_per_record.min(1.0), records)
    }

    /// The duration of an invocation: its slowest attempt, then its sends.
    fn invocation_ms(&self, records: u32) -> f64 {
        let attempts = (f64::from(records) * self.attempts_per_record).ceil();
        let attempts = u32::try_from(rounded(attempts)).unwrap_or(u32::MAX);
        let of_subscription = f64::from(records) * self.events_per_record;
        let rounds = (of_subscription / f64::from(self.max_concurrency.max(1))).ceil();
        let slower_ms = (self.failure_ms - self.answer_ms).max(0.0) * any(self.fails, attempts);
        let send_ms = as_f64(BATCH_WINDOW.as_millis().try_into().unwrap_or(SECOND_MS)) + REQUEST_MS;
        let attempts_ms = rounds * self.any_attempt(records) * (self.answer_ms + slower_ms);
        // Lambda bills whole milliseconds.
        let handled = f64::from(records) * self.attempts_per_record.max(1.0);
        (self.processor.ms(handled, self.memory_mb)
            + attempts_ms
            + self.in_place_ms
            + send_ms * any(self.sends, records))
        .ceil()
    }
}

/// The probability that at least one of this many events happens, each with this probability.
pub(super) fn any(probability: f64, of: u32) -> f64 {
    // Exponentiation by squaring: `powi` may differ between machines, and estimates must not.
    let (mut none, mut base, mut rest) = (1.0, 1.0 - probability, of);
    while rest > 0 {
        if rest % 2 == 1 {
            none *= base;
        }
        base *= base;
        rest /= 2;
    }
    1.0 - none
}

/// Requests that a payload is billed as.
pub(crate) fn chunks(payload_bytes: f64) -> f64 {
    (payload_bytes / CHUNK_BYTES).ceil().max(1.0)
}
