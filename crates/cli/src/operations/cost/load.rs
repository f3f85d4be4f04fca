//! Computes the work of a month: the average delivery, and the records of each queue.
//!
//! Separate from the bill because the work depends on retry policies and queues, but not on prices.

use delivery::explain::{Always, Endpoint, explain_jittered};
use delivery::subscription::Subscription;
use delivery::subscription::profile::Dialect;
use delivery::waits::{DELAY_MAX_MS, Jitter};
use dispatch::{PARTS_MAX, REQUESTS_IN_PLACE};

use super::queue::{DEAD_LETTER, DISPATCH, ProcessorTime, Queue, REQUEST_MS, Work};
use super::template::{
    BATCH_SIZE, BATCH_SIZE_WITH_WINDOW, DEAD_LETTER_BATCH_SIZE, DEAD_LETTER_MEMORY_MB,
    DISPATCH_MEMORY_MB,
};
use super::{DAY_S, MONTH_DAYS, Plan};

/// The size of a message's attributes: internal ones (about 380 bytes after an attempt, see the
/// fixtures), the topic, and the names of the attributes.
const MESSAGE_OVERHEAD_BYTES: f64 = 512.0;
/// The average jitter: half of the maximum.
pub(super) const HALF_JITTER: Jitter = Jitter(u32::MAX / 2 + 1);

/// The average delivery under the default policy of the native format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Average {
    pub(crate) attempts: f64,
    /// The number of messages sent while the delivery waits between attempts.
    pub(crate) messages: f64,
    /// The probability that the delivery becomes a dead letter.
    pub(crate) dead_letters: f64,
}

impl Average {
    /// Computes the average delivery, if an attempt succeeds with probability `success`. Attempt
    /// `k` is made with probability `q^(k-1)`, where `q` is `1 - success`.
    fn new(success: f64) -> Self {
        let endpoint = Endpoint { always: Always::Status(503), retry_after: None };
        let life = explain_jittered(&subscription(), &endpoint, 0, HALF_JITTER);
        let (mut reached, mut average) =
            (1.0, Self { attempts: 0.0, messages: 0.0, dead_letters: 0.0 });
        for attempt in &life.attempts {
            average.attempts += reached;
            average.messages += reached * messages(attempt.wait_ms);
            reached *= 1.0 - success;
        }
        Self { dead_letters: reached, ..average }
    }
}

/// The deliveries, messages and queue records of a month.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) deliveries: f64,
    pub(super) average: Average,
    /// The number of messages that publishers send.
    pub(super) messages: f64,
    /// The number of parts into which messages are split if one invocation cannot make all their
    /// deliveries.
    pub(super) parts: f64,
    pub(super) events: Queue,
    pub(super) waits: Queue,
    pub(super) letters: Queue,
}

impl Load {
    pub(super) fn new(plan: &Plan) -> Self {
        let average = Average::new(plan.success);
        let (messages, deliveries) =
            (plan.events / plan.events_per_message, plan.events * plan.fan_out);
        let parts = messages * parts(plan.fan_out * plan.events_per_message);
        let fails = 1.0 - plan.success;
        let records = messages + parts;
        let per_record = share(deliveries, records);
        let divided = if parts > 0.0 { share(messages, records) } else { 0.0 };
        let events = Work {
            bytes: plan.events_per_message * plan.event_bytes + MESSAGE_OVERHEAD_BYTES,
            attempts_per_record: per_record,
            rounds_per_record: plan.events_per_message.min(per_record) / requests_at_once(),
            sends: (per_record * fails + divided).min(1.0),
            concurrency: plan.concurrency.events,
            ..work(plan, records)
        };
        let (waiting, retried) =
            (deliveries * average.messages, deliveries * (average.attempts - 1.0));
        let waits = Work {
            attempts_per_record: share(retried, waiting),
            // A record sends either the next message of the same wait, or the first message of the
            // next wait.
            sends: share(waiting - retried + retried * fails, waiting),
            ..work(plan, waiting)
        };
        Self {
            deliveries,
            average,
            messages,
            parts,
            events: events.queue(),
            waits: waits.queue(),
            letters: letters(plan, deliveries * average.dead_letters).queue(),
        }
    }
}

/// Returns the work for this many records of the retry queue, each with one attempt.
pub(super) fn work(plan: &Plan, records: f64) -> Work {
    let has_window = plan.batch_window_s > 0;
    Work {
        records,
        seconds: MONTH_DAYS * DAY_S,
        bytes: message_bytes(plan),
        attempts_per_record: 1.0,
        rounds_per_record: 1.0 / requests_at_once(),
        sends: 0.0,
        answer_ms: plan.answer_ms,
        processor: DISPATCH,
        memory_mb: DISPATCH_MEMORY_MB,
        batch_size: if has_window { BATCH_SIZE_WITH_WINDOW } else { BATCH_SIZE },
        window_s: plan.batch_window_s,
        concurrency: plan.concurrency.retry,
    }
}

/// Returns the work for this many records of the dead-letter queue. Each record becomes one blob,
/// and an invocation writes its blobs concurrently.
pub(super) fn letters(plan: &Plan, records: f64) -> Work {
    let processor: ProcessorTime = DEAD_LETTER;
    Work {
        rounds_per_record: 1.0 / f64::from(DEAD_LETTER_BATCH_SIZE),
        answer_ms: REQUEST_MS,
        processor,
        memory_mb: DEAD_LETTER_MEMORY_MB,
        batch_size: DEAD_LETTER_BATCH_SIZE,
        window_s: 0,
        concurrency: plan.concurrency.dead_letter,
        ..work(plan, records)
    }
}

/// Returns the size of a message with one event, in bytes.
pub(super) fn message_bytes(plan: &Plan) -> f64 {
    plan.event_bytes + MESSAGE_OVERHEAD_BYTES
}

/// Returns the number of parts into which a message with this many deliveries is split, including
/// parts of parts.
fn parts(deliveries: f64) -> f64 {
    let mut parts = (deliveries / REQUESTS_IN_PLACE as f64).ceil();
    let mut sum = 0.0;
    while parts > 1.0 {
        sum += parts;
        parts = (parts / PARTS_MAX as f64).ceil();
    }
    sum
}

/// Returns the number of messages that a wait needs. SQS delays a message by at most 15 minutes, so
/// a longer wait needs several messages, one after another.
pub(super) fn messages(wait_ms: u64) -> f64 {
    u32::try_from(wait_ms.div_ceil(DELAY_MAX_MS)).map_or(f64::MAX, f64::from)
}

/// Returns `part / whole`; 0 if `whole` is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns the maximum number of concurrent requests of an invocation to one destination.
fn requests_at_once() -> f64 {
    f64::from(subscription().destination.max_concurrency.most)
}

/// Returns a subscription with the default policy of the native format.
fn subscription() -> Subscription {
    let name = "cost/cost/cost".parse().expect("three names");
    let url = "https://example.com/".parse().expect("a URL");
    Subscription::new(name, Dialect::Native, url)
}
