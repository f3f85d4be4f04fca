//! A queue and the invocations that empty it: how full their batches are, how long they take, how
//! many are at once.
//!
//! Separate because it knows how Lambda and SQS work, and nothing of policies. How many records an
//! invocation gets is the assumption that matters most: without a batch window as few as keep up
//! (one, as long as the concurrency allows it), for a poller hands on what it finds. With a window,
//! what arrives in it at one of the pollers.

use adapters::queues::{BATCH_ENTRIES_MAX, BATCH_WINDOW};
use delivery::time::duration::SECOND_MS;

use super::chain::as_f64;
use super::lines::whole;

/// Seconds of a day.
pub(crate) const DAY_S: f64 = 86_400.0;
/// A request to SQS is billed per so many bytes of its payload.
/// <https://aws.amazon.com/sqs/pricing/>
pub(crate) const CHUNK_BYTES: f64 = 65_536.0;
/// Lambda polls a queue with so many connections at least.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
pub(crate) const POLLERS: f64 = 5.0;
/// A poll that finds nothing takes so long: `ReceiveMessageWaitTimeSeconds`.
pub(crate) const POLL_S: f64 = 20.0;
/// An invocation's own time besides attempts and sends. Assumed.
pub(crate) const OWN_MS: f64 = 2.0;
/// A request to SQS or S3. Assumed.
pub(crate) const REQUEST_MS: f64 = 10.0;
/// Messages of one request.
pub(super) const ENTRIES: f64 = BATCH_ENTRIES_MAX as f64;

/// A queue and the invocations that empty it, in a day.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    /// Messages received.
    pub(crate) records: f64,
    /// Of an invocation.
    pub(crate) fill: u32,
    /// Invocations.
    pub(crate) invocations: f64,
    /// Of which attempt a delivery; the others only send their messages on.
    pub(crate) attempting: f64,
    /// How long one takes.
    pub(crate) invocation_ms: f64,
    /// Invocations at once, on average.
    pub(crate) concurrency: f64,
    /// The same if every batch were full: what it takes at least.
    pub(crate) concurrency_full: f64,
    /// Requests that receive, empty ones included.
    pub(crate) receives: f64,
    /// Of which find nothing.
    pub(crate) empty: f64,
    /// Requests that delete.
    pub(crate) deletes: f64,
    /// Requests that an invocation's records are received with, and that delete them.
    pub(crate) each: (f64, f64),
}

/// What the records of a queue bring about.
pub(super) struct Work {
    pub(super) records: f64,
    pub(super) attempts_per_record: f64,
    /// The probability that an attempt fails.
    pub(super) fails: f64,
    /// The probability that a record leads to a message.
    pub(super) sends: f64,
    /// Waits in place and the attempts after them, per record.
    pub(super) in_place_ms: f64,
    /// An answer, and an attempt that fails.
    pub(super) answer_ms: f64,
    pub(super) failure_ms: f64,
    /// Attempts at once for one subscription.
    pub(super) lanes: u32,
}

/// How the invocations of a queue are set up.
pub(super) struct Mapping {
    pub(super) batch_size: u32,
    pub(super) window_s: u32,
    pub(super) concurrency: u32,
}

impl Queue {
    pub(super) fn of(work: &Work, mapping: &Mapping, bytes: f64) -> Self {
        let fill = work.fill(mapping);
        let records_at_once = f64::from(fill);
        let invocations = work.records / records_at_once;
        let (tens, rest) = (f64::from(fill / 10), f64::from(fill % 10));
        let payload =
            tens * chunks(ENTRIES * bytes) + if rest > 0.0 { chunks(rest * bytes) } else { 0.0 };
        let receives = invocations * payload;
        let each_deletes = f64::from(fill.div_ceil(10));
        let empty = (POLLERS * DAY_S / POLL_S - receives).max(0.0);
        let invocation_ms = work.invocation_ms(fill);
        Self {
            records: work.records,
            fill,
            invocations,
            attempting: invocations * work.any_attempt(fill),
            invocation_ms,
            concurrency: invocations / DAY_S * invocation_ms / 1_000.0,
            concurrency_full: work.concurrency(mapping.batch_size),
            receives: receives + empty,
            empty,
            deletes: invocations * each_deletes,
            each: (payload, each_deletes),
        }
    }

    /// Seconds of 1 GB, for a function of this memory.
    pub(crate) fn gb_seconds(&self, memory_mb: u32) -> f64 {
        self.invocations * self.invocation_ms / 1_000.0 * f64::from(memory_mb) / 1_024.0
    }
}

impl Work {
    /// Records of an invocation: the fewest that keep up, or what gathers in the window at one
    /// poller.
    fn fill(&self, mapping: &Mapping) -> u32 {
        let most = mapping.batch_size.max(1);
        let keeps_up = |records: &u32| self.concurrency(*records) <= f64::from(mapping.concurrency);
        let fewest = (1..=most).find(keeps_up).unwrap_or(most);
        let gathered = self.records / DAY_S * f64::from(mapping.window_s) / POLLERS;
        let in_window =
            (1..=most).rev().find(|records| f64::from(*records) <= gathered).unwrap_or(1);
        fewest.max(in_window)
    }

    /// Invocations at once, of so many records each.
    fn concurrency(&self, records: u32) -> f64 {
        self.records / DAY_S / f64::from(records) * self.invocation_ms(records) / 1_000.0
    }

    /// The probability that an invocation of so many records has an attempt.
    fn any_attempt(&self, records: u32) -> f64 {
        any(self.attempts_per_record.min(1.0), records)
    }

    /// An invocation lasts as long as its slowest attempt, and sends after that.
    fn invocation_ms(&self, records: u32) -> f64 {
        let attempts = (f64::from(records) * self.attempts_per_record).ceil();
        let attempts = u32::try_from(whole(attempts)).unwrap_or(u32::MAX);
        let rounds = f64::from(records.div_ceil(self.lanes.max(1)));
        let slower_ms = (self.failure_ms - self.answer_ms).max(0.0) * any(self.fails, attempts);
        let send_ms = as_f64(BATCH_WINDOW.as_millis().try_into().unwrap_or(SECOND_MS)) + REQUEST_MS;
        let attempts_ms = rounds * self.any_attempt(records) * (self.answer_ms + slower_ms);
        // Billed by the whole millisecond.
        (OWN_MS + attempts_ms + self.in_place_ms + send_ms * any(self.sends, records)).ceil()
    }
}

/// The probability that one of so many happens, each with this probability.
pub(super) fn any(probability: f64, of: u32) -> f64 {
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
