//! What the parts of a deployment have to do in a day: records, invocations, requests, bytes.
//!
//! Separate because it knows how Lambda and SQS work and nothing of money. How many records an invocation gets is the
//! assumption that matters most: without a batch window as few as keep up (one, as long as the concurrency allows it),
//! for a poller hands on what it finds. With a window, what arrives in it at one of the pollers.
//!
//! Counts on the high side: failed attempts send their messages one by one, since answers come at different times;
//! hops of one invocation leave together.

use adapters::queues::{BATCH_ENTRIES_MAX, LINGER};
use delivery::duration::SECOND_MS;
use delivery::explain::Always;
use delivery::subscription::Subscription;
use dispatch::DELIVERIES_IN_PLACE;

use super::chain::{Average, as_f64};
use super::{Deployment, Plan, Traffic};
use crate::remarks::{DISPATCH_TIMEOUT_MS, TIMEOUT_MARGIN_MS};

/// Seconds of a day.
pub(crate) const DAY_S: f64 = 86_400.0;
/// A request to SQS is billed per so many bytes of its payload. <https://aws.amazon.com/sqs/pricing/>
pub(crate) const CHUNK_BYTES: f64 = 65_536.0;
/// Lambda polls a queue with so many connections at least.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
pub(crate) const POLLERS: f64 = 5.0;
/// A poll that finds nothing takes so long: `ReceiveMessageWaitTimeSeconds`.
pub(crate) const POLL_S: f64 = 20.0;
/// What travels beside an event: our attribute (about 380 bytes after an attempt, see the fixtures), the topic, names.
pub(crate) const BESIDE_BYTES: f64 = 512.0;
/// An invocation's own time besides attempts and sends. Assumed.
pub(crate) const OWN_MS: f64 = 2.0;
/// A request to SQS or S3. Assumed.
pub(crate) const REQUEST_MS: f64 = 10.0;
/// `MaximumConcurrency` and `BatchSize` of deadletter.
pub(crate) const LETTERS_CONCURRENCY: u32 = 5;
/// The batches of deadletter.
pub(crate) const LETTERS_BATCH: u32 = 10;

/// A queue and the invocations that empty it, in a day.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    /// Messages received.
    pub(crate) records: f64,
    /// Of an invocation.
    pub(crate) fill: u32,
    /// Invocations.
    pub(crate) invocations: f64,
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
struct Work {
    records: f64,
    attempts_per_record: f64,
    /// The probability that an attempt fails.
    fails: f64,
    /// The probability that a record leads to a message.
    sends: f64,
    /// Waits in place and the attempts after them, per record.
    in_place_ms: f64,
    /// An answer, and an attempt that fails.
    answer_ms: f64,
    failure_ms: f64,
    /// Attempts at once for one subscription.
    lanes: u32,
}

/// How the invocations of a queue are set up.
struct Mapping {
    batch_size: u32,
    window_s: u32,
    concurrency: u32,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Load {
    /// Deliveries.
    pub(crate) deliveries: f64,
    /// Publishers' requests.
    pub(crate) publishes: f64,
    /// The events queue.
    pub(crate) events: Queue,
    /// The retry queue.
    pub(crate) retries: Queue,
    /// The dead-letter queue.
    pub(crate) letters: Queue,
    /// Requests that send a delivery of an event with many subscriptions.
    pub(crate) split_sends: f64,
    /// Requests that send a wait after a failed attempt.
    pub(crate) wait_sends: f64,
    /// Requests that send what is left of a wait.
    pub(crate) hop_sends: f64,
    /// Requests that send a dead letter.
    pub(crate) letter_sends: f64,
    /// Blobs written.
    pub(crate) blobs: f64,
}

impl Load {
    /// Of this plan, where one delivery on average is so.
    pub(crate) fn of(plan: &Plan, subscription: &Subscription, average: &Average) -> Self {
        let Plan { traffic, deployment } = plan;
        let deliveries = traffic.events * traffic.fan_out;
        let splits = traffic.fan_out > as_f64(DELIVERIES_IN_PLACE as u64);
        let split = if splits { deliveries } else { 0.0 };
        let bytes = traffic.event_bytes + BESIDE_BYTES;
        let mapping = |concurrency| Mapping {
            batch_size: deployment.batch_size,
            window_s: deployment.batch_window_s,
            concurrency,
        };
        let fresh = fresh(traffic, subscription, average, deliveries, split);
        let events = Queue::of(&fresh, &mapping(deployment.events_concurrency), bytes);
        let retried = retried(traffic, subscription, average, deliveries);
        let retries = Queue::of(&retried, &mapping(deployment.retry_concurrency), bytes);
        let letters = deliveries * average.dead_letters;
        let queue = Queue::of(&stored(letters), &LETTERS, bytes);
        let together = f64::from(retries.fill).min(ENTRIES);
        let hops = deliveries * (average.messages - average.waits);
        Self {
            deliveries,
            publishes: traffic.events / traffic.publish_batch * chunks(traffic.publish_batch * traffic.event_bytes),
            split_sends: split / ENTRIES * chunks(ENTRIES * bytes),
            wait_sends: deliveries * average.waits * chunks(bytes),
            hop_sends: hops / together * chunks(together * bytes),
            letter_sends: letters * chunks(bytes),
            blobs: letters / f64::from(subscription.dead_letter.events_per_blob.min(queue.fill)),
            events,
            retries,
            letters: queue,
        }
    }
}

/// Messages of one request.
const ENTRIES: f64 = BATCH_ENTRIES_MAX as f64;
/// How deadletter is set up.
const LETTERS: Mapping = Mapping { batch_size: LETTERS_BATCH, window_s: 0, concurrency: LETTERS_CONCURRENCY };

/// Records of the events queue: one attempt per delivery, and what is tried again in place.
fn fresh(traffic: &Traffic, of: &Subscription, average: &Average, deliveries: f64, split: f64) -> Work {
    let records = traffic.events + split;
    let per_record = if records > 0.0 { deliveries / records } else { 0.0 };
    Work {
        records,
        attempts_per_record: per_record,
        fails: average.first_fails,
        sends: (per_record * average.first_fails).min(1.0),
        in_place_ms: per_record * (average.in_place_ms + average.attempts_in_place * traffic.answer_ms),
        answer_ms: traffic.answer_ms,
        failure_ms: failure_ms(traffic, of),
        lanes: of.destination.max_concurrency,
    }
}

/// Records of the retry queue: hops, and the attempts at their end.
fn retried(traffic: &Traffic, of: &Subscription, average: &Average, deliveries: f64) -> Work {
    let records = deliveries * average.messages;
    let part = |of: f64, whole: f64| if whole > 0.0 { (of / whole).clamp(0.0, 1.0) } else { 0.0 };
    let attempts = average.attempts_after_messages();
    let fails = part(average.failures - average.first_fails, average.attempts - 1.0);
    Work {
        records,
        attempts_per_record: part(attempts, average.messages),
        fails,
        sends: part(average.messages - attempts + attempts * fails, average.messages),
        in_place_ms: 0.0,
        answer_ms: traffic.answer_ms,
        failure_ms: failure_ms(traffic, of),
        lanes: of.destination.max_concurrency,
    }
}

/// Records of the dead-letter queue: one blob each, all of an invocation at once.
fn stored(letters: f64) -> Work {
    Work {
        records: letters,
        attempts_per_record: 1.0,
        fails: 0.0,
        sends: 0.0,
        in_place_ms: 0.0,
        answer_ms: REQUEST_MS,
        failure_ms: REQUEST_MS,
        lanes: LETTERS_BATCH,
    }
}

/// How long an attempt takes that does not succeed: no answer means the response timeout, as far as the function allows.
fn failure_ms(traffic: &Traffic, of: &Subscription) -> f64 {
    match traffic.failure {
        Always::Timeout => as_f64(of.destination.response_timeout_ms.min(DISPATCH_TIMEOUT_MS - TIMEOUT_MARGIN_MS)),
        Always::Status(_) | Always::Refused | Always::Reset | Always::Dns | Always::Tls | Always::Blocked => {
            traffic.answer_ms
        }
    }
}

impl Queue {
    fn of(work: &Work, mapping: &Mapping, bytes: f64) -> Self {
        let fill = work.fill(mapping);
        let records_at_once = f64::from(fill);
        let invocations = work.records / records_at_once;
        let (tens, rest) = (f64::from(fill / 10), f64::from(fill % 10));
        let payload = tens * chunks(ENTRIES * bytes) + if rest > 0.0 { chunks(rest * bytes) } else { 0.0 };
        let receives = invocations * payload;
        let each_deletes = f64::from(fill.div_ceil(10));
        let empty = (POLLERS * DAY_S / POLL_S - receives).max(0.0);
        let invocation_ms = work.invocation_ms(fill).ceil();
        Self {
            records: work.records,
            fill,
            invocations,
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
    /// Records of an invocation: the fewest that keep up, or what gathers in the window at one poller.
    fn fill(&self, mapping: &Mapping) -> u32 {
        let most = mapping.batch_size.max(1);
        let keeps_up = |records: &u32| self.concurrency(*records) <= f64::from(mapping.concurrency);
        let fewest = (1..=most).find(keeps_up).unwrap_or(most);
        let gathered = self.records / DAY_S * f64::from(mapping.window_s) / POLLERS;
        let in_window = (1..=most).rev().find(|records| f64::from(*records) <= gathered).unwrap_or(1);
        fewest.max(in_window)
    }

    /// Invocations at once, of so many records each.
    fn concurrency(&self, records: u32) -> f64 {
        self.records / DAY_S / f64::from(records) * self.invocation_ms(records) / 1_000.0
    }

    /// An invocation lasts as long as its slowest attempt, and sends after that.
    fn invocation_ms(&self, records: u32) -> f64 {
        let attempts = (1..=u32::MAX).find(|n| f64::from(*n) >= f64::from(records) * self.attempts_per_record);
        let attempts = if self.attempts_per_record > 0.0 { attempts.unwrap_or(records) } else { 0 };
        let rounds = f64::from(records.div_ceil(self.lanes.max(1)));
        let any_attempt = any(self.attempts_per_record.min(1.0), records);
        let slower_ms = (self.failure_ms - self.answer_ms).max(0.0) * any(self.fails, attempts);
        let send_ms = as_f64(LINGER.as_millis().try_into().unwrap_or(SECOND_MS)) + REQUEST_MS;
        OWN_MS
            + rounds * any_attempt * (self.answer_ms + slower_ms)
            + self.in_place_ms
            + send_ms * any(self.sends, records)
    }
}

/// The probability that one of so many happens, each with this probability.
fn any(probability: f64, of: u32) -> f64 {
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

impl Deployment {
    /// Custom metrics that such traffic makes: ten names without dimensions and per topic, two of them per outcome and
    /// three per reason, and ten per subscription where that is asked for.
    pub(crate) fn metrics(&self) -> f64 {
        let per_subscription = if self.metrics_per_subscription { METRIC_NAMES * self.subscriptions } else { 0.0 };
        METRIC_NAMES + METRIC_NAMES * self.topics + 2.0 * OUTCOMES + 3.0 * REASONS + per_subscription
    }
}

/// Names of metrics.
const METRIC_NAMES: f64 = 10.0;
/// Outcomes that are seen in a month. Assumed.
const OUTCOMES: f64 = 5.0;
/// Reasons that are seen in a month. Assumed.
const REASONS: f64 = 2.0;
