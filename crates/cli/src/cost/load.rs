//! What the parts of a deployment have to do in a day: records, invocations, requests, bytes.
//!
//! Separate because it is where a policy's averages meet the queues; it knows nothing of money.
//!
//! Counts on the high side: failed attempts send their messages one by one, since answers come at
//! different times; hops of one invocation leave together.

use adapters::metrics::{Dimensions, Metric};
use delivery::explain::Always;
use delivery::subscription::Subscription;
use dispatch::DELIVERIES_IN_PLACE;

use super::chain::{Average, as_f64};
use super::lines::whole;
use super::queue::{ENTRIES, Mapping, Queue, REQUEST_MS, Work, any, chunks};
use super::{Deployment, Plan, Traffic};
use crate::remarks::{DISPATCH_TIMEOUT_MS, TIMEOUT_MARGIN_MS};

/// What travels beside an event: our attribute (about 380 bytes after an attempt, see the
/// fixtures), the topic, names.
pub(crate) const BESIDE_BYTES: f64 = 512.0;
/// What an invocation is handed at most.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const PAYLOAD_MAX_BYTES: f64 = 6.0 * 1_048_576.0;
/// `MaximumConcurrency` and `BatchSize` of deadletter.
pub(crate) const LETTERS_CONCURRENCY: u32 = 5;
/// The batches of deadletter.
pub(crate) const LETTERS_BATCH: u32 = 10;

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
    /// Messages with what is left of a wait that leave in one request.
    pub(crate) hops_together: f64,
    /// Requests that send these.
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
            batch_size: deployment.batch_size.min(fitting(bytes)),
            window_s: deployment.batch_window_s,
            concurrency,
        };
        let fresh = fresh(traffic, subscription, average, deliveries, split);
        let events = Queue::of(&fresh, &mapping(deployment.events_concurrency), bytes);
        let retried = retried(traffic, subscription, average, deliveries);
        let retries = Queue::of(&retried, &mapping(deployment.retry_concurrency), bytes);
        let letters = deliveries * average.dead_letters;
        let queue = Queue::of(&stored(letters), &LETTERS, bytes);
        let (hops, hops_together) = hops(deliveries, average, &retries);
        Self {
            deliveries,
            publishes: traffic.events / traffic.publish_batch
                * chunks(traffic.publish_batch * traffic.event_bytes),
            split_sends: split / ENTRIES * chunks(ENTRIES * bytes),
            wait_sends: deliveries * average.waits * chunks(bytes),
            hops_together,
            hop_sends: hops / hops_together * chunks(hops_together * bytes),
            letter_sends: letters * chunks(bytes),
            blobs: letters / f64::from(subscription.dead_letter.events_per_blob.min(queue.fill)),
            events,
            retries,
            letters: queue,
        }
    }
}

/// Messages of this size that one invocation takes.
fn fitting(bytes: f64) -> u32 {
    u32::try_from(whole((PAYLOAD_MAX_BYTES / bytes).floor())).unwrap_or(u32::MAX).max(1)
}

/// Further hops, and how many of them leave in one request: those of one invocation, ten at most.
fn hops(deliveries: f64, average: &Average, retries: &Queue) -> (f64, f64) {
    let hops = deliveries * (average.messages - average.waits);
    let share = if retries.records > 0.0 { hops / retries.records } else { 0.0 };
    let each = f64::from(retries.fill) * share;
    let requests = any(share, retries.fill).max(each / ENTRIES);
    (hops, if requests > 0.0 { each / requests } else { 1.0 })
}

/// How deadletter is set up.
const LETTERS: Mapping =
    Mapping { batch_size: LETTERS_BATCH, window_s: 0, concurrency: LETTERS_CONCURRENCY };

/// Records of the events queue: one attempt per delivery, and what is tried again in place.
fn fresh(
    traffic: &Traffic,
    of: &Subscription,
    average: &Average,
    deliveries: f64,
    split: f64,
) -> Work {
    let records = traffic.events + split;
    let per_record = if records > 0.0 { deliveries / records } else { 0.0 };
    Work {
        records,
        attempts_per_record: per_record,
        fails: average.first_fails,
        sends: (per_record * average.first_fails
            + if split > 0.0 { traffic.events / records } else { 0.0 })
        .min(1.0),
        in_place_ms: per_record
            * (average.in_place_ms + average.attempts_in_place * traffic.answer_ms),
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

/// How long an attempt takes that does not succeed: no answer means the response timeout, as far as
/// the function allows.
fn failure_ms(traffic: &Traffic, of: &Subscription) -> f64 {
    match traffic.failure {
        Always::Timeout => {
            as_f64(of.destination.response_timeout_ms.min(DISPATCH_TIMEOUT_MS - TIMEOUT_MARGIN_MS))
        }
        Always::Status(_)
        | Always::Refused
        | Always::Reset
        | Always::Dns
        | Always::Tls
        | Always::Blocked => traffic.answer_ms,
    }
}

impl Deployment {
    /// Custom metrics that such traffic makes: each metric in each of its dimension sets, as often
    /// as these have values.
    pub(crate) fn metrics(&self) -> f64 {
        let values = |of: &Dimensions| match of {
            Dimensions::None => 1.0,
            Dimensions::Topic => self.topics,
            Dimensions::Outcome => OUTCOMES,
            Dimensions::Reason => REASONS,
            Dimensions::Subscription => self.subscriptions,
        };
        let subscription = |of: Metric| self.metrics_per_subscription && of.is_per_subscription();
        let sets = |of: Metric| {
            let sets = of.dimensions().iter();
            sets.chain(subscription(of).then_some(&Dimensions::Subscription))
                .map(values)
                .sum::<f64>()
        };
        Metric::ALL.into_iter().map(sets).sum()
    }
}

/// Outcomes that are seen in a month. Assumed.
const OUTCOMES: f64 = 5.0;
/// Reasons that are seen in a month. Assumed.
const REASONS: f64 = 2.0;
