//! The work of a deployment in a day: records, invocations, requests, bytes.
//!
//! Separate because it combines a policy's averages with the queues; it knows no prices.
//!
//! Errs on the high side: each failed attempt sends its message in a request of its own, because
//! responses arrive at different times. Hops of one invocation share a request.

use adapters::metrics::{Dimensions, Metric};
use delivery::explain::Always;
use delivery::subscription::Subscription;
use dispatch::{PARTS_MAX, REQUESTS_IN_PLACE, RESPONSE_MARGIN_MS};

use super::average::{AverageDelivery, as_f64};
use super::measured;
use super::plan::{Deployment, Plan, Traffic};
use super::queue_load::{
    EventSourceMapping, ProcessorTime, QueueLoad, QueueWork, REQUEST_ENTRIES, REQUEST_MS, any,
    chunks,
};
use super::subscription_reads::SubscriptionReads;
use super::table_use::{TableUse, Users};
use crate::lints::DISPATCH_TIMEOUT_MS;
use crate::numbers::rounded;

/// The message attributes of an event: our own (about 380 bytes after an attempt, see the
/// fixtures), the topic, their names.
pub(crate) const MESSAGE_OVERHEAD_BYTES: f64 = 512.0;
/// The largest payload of an invocation.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const PAYLOAD_MAX_BYTES: f64 = 6.0 * 1_048_576.0;
/// `MemorySize` of the deadletter function.
pub(crate) const DEAD_LETTER_MEMORY_MB: u32 = 128;
/// `BatchSize` of the deadletter function.
pub(crate) const DEAD_LETTER_BATCH_SIZE: u32 = 10;

/// The work of a day.
#[derive(Debug)]
pub(crate) struct Load {
    /// Deliveries.
    pub(crate) deliveries: f64,
    /// Publishers' requests.
    pub(crate) publishes: f64,
    /// The events queue.
    pub(crate) events: QueueLoad,
    /// The retry queue.
    pub(crate) retries: QueueLoad,
    /// The dead-letter queue.
    pub(crate) dead_letters: QueueLoad,
    /// The parts that an event with too many subscriptions for one invocation is divided into.
    pub(crate) parts: f64,
    /// Requests that send them.
    pub(crate) part_sends: f64,
    /// Requests that send a retry after a failed attempt.
    pub(crate) wait_sends: f64,
    /// Further hops of a wait that share one request.
    pub(crate) hops_together: f64,
    /// Requests that send further hops.
    pub(crate) hop_sends: f64,
    /// Requests that send a dead letter.
    pub(crate) dead_letter_sends: f64,
    /// Blobs written.
    pub(crate) blobs: f64,
    /// Requests that move a delivery to the slow lane, and receive and delete it there.
    pub(crate) slow_lane: f64,
    /// Requests to the table.
    pub(crate) table: TableUse,
    /// Requests for the subscriptions.
    pub(crate) subscriptions: SubscriptionReads,
}

impl Load {
    /// The work of this plan, given the average delivery.
    pub(crate) fn of(plan: &Plan, subscription: &Subscription, average: &AverageDelivery) -> Self {
        let Plan { traffic, deployment } = plan;
        let deliveries = traffic.events * traffic.fan_out;
        let messages = traffic.events / traffic.events_per_message;
        let message_bytes = traffic.events_per_message * traffic.event_bytes;
        let parts = messages * parts(traffic.fan_out * traffic.events_per_message);
        // A delivery that waits has one event.
        let bytes = traffic.event_bytes + MESSAGE_OVERHEAD_BYTES;
        let published_bytes = message_bytes + MESSAGE_OVERHEAD_BYTES;
        let mapping = |concurrency, pollers, window_s, bytes| EventSourceMapping {
            batch_size: deployment.batch_size().min(fitting(bytes)),
            window_s,
            concurrency,
            pollers,
        };
        let fresh = fresh(plan, subscription, average, parts);
        let (window_s, at_once) = (deployment.batch_window_s, deployment.events_at_once());
        let of_events = mapping(at_once, deployment.events_pollers, window_s, published_bytes);
        let events = QueueLoad::of(&fresh, &of_events, published_bytes);
        let retried = retried(plan, subscription, average, deliveries);
        let of_retries = mapping_of_waits(deployment, bytes);
        let retries = QueueLoad::of(&retried, &of_retries, bytes);
        let dead_letters = deliveries * average.dead_letters;
        let queue =
            QueueLoad::of(&stored(dead_letters), &mapping_of_dead_letters(deployment), bytes);
        let (hops, hops_together) = hops(deliveries, average, &retries);
        let users = Users {
            queues: [&events, &retries],
            attempts: deliveries * average.attempts,
            failure_ms: failure_ms(traffic, subscription),
            rate_limited: traffic.rate_limited(subscription),
            concurrency_limited: traffic.concurrency_limited(subscription),
        };
        Self {
            deliveries,
            publishes: messages / traffic.publish_batch
                * chunks(traffic.publish_batch * message_bytes),
            parts,
            part_sends: parts / REQUEST_ENTRIES * chunks(REQUEST_ENTRIES * part_bytes(traffic)),
            wait_sends: deliveries * average.waits * chunks(bytes),
            hops_together,
            hop_sends: hops / hops_together * chunks(hops_together * bytes),
            dead_letter_sends: dead_letters * chunks(bytes),
            blobs: dead_letters,
            slow_lane: deliveries * traffic.slow_share * (2.0 * chunks(bytes) + 1.0),
            table: TableUse::of(plan, &users),
            subscriptions: SubscriptionReads::of(deployment, users.queues),
            events,
            retries,
            dead_letters: queue,
        }
    }
}

/// The parts that an event for so many subscriptions is divided into, and their parts.
fn parts(fan_out: f64) -> f64 {
    let mut parts = (fan_out / as_f64(REQUESTS_IN_PLACE as u64)).ceil();
    let mut sum = 0.0;
    while parts > 1.0 {
        sum += parts;
        parts = (parts / as_f64(PARTS_MAX as u64)).ceil();
    }
    sum
}

/// The size of a part: its own elements, for some subscriptions.
fn part_bytes(traffic: &Traffic) -> f64 {
    let events = as_f64(REQUESTS_IN_PLACE as u64) / traffic.fan_out.max(1.0);
    events.clamp(1.0, traffic.events_per_message.max(1.0)) * traffic.event_bytes
        + MESSAGE_OVERHEAD_BYTES
}

/// The mapping of a queue of waits or of replays, for messages of this size.
pub(super) fn mapping_of_waits(deployment: &Deployment, bytes: f64) -> EventSourceMapping {
    EventSourceMapping {
        batch_size: deployment.batch_size().min(fitting(bytes)),
        window_s: deployment.batch_window_s,
        concurrency: deployment.concurrency.retry,
        pollers: None,
    }
}

/// Messages of this size that fit into one invocation.
pub(super) fn fitting(bytes: f64) -> u32 {
    u32::try_from(rounded((PAYLOAD_MAX_BYTES / bytes).floor())).unwrap_or(u32::MAX).max(1)
}

/// Further hops, and how many of them share one request: those of one invocation, at most ten.
fn hops(deliveries: f64, average: &AverageDelivery, retries: &QueueLoad) -> (f64, f64) {
    let hops = deliveries * (average.messages - average.waits);
    let share = if retries.records > 0.0 { hops / retries.records } else { 0.0 };
    let each = f64::from(retries.fill) * share;
    let requests = any(share, retries.fill).max(each / REQUEST_ENTRIES);
    (hops, if requests > 0.0 { each / requests } else { 1.0 })
}

/// What dispatch does with a record, and deadletter with one.
pub(super) const DISPATCH: ProcessorTime = ProcessorTime {
    invocation_us: measured::DISPATCH_INVOCATION_US,
    record_us: measured::DISPATCH_RECORD_US,
};
const DEAD_LETTER: ProcessorTime = ProcessorTime {
    invocation_us: measured::DEAD_LETTER_INVOCATION_US,
    record_us: measured::DEAD_LETTER_RECORD_US,
};

/// The event source mapping of the deadletter function.
pub(super) fn mapping_of_dead_letters(deployment: &Deployment) -> EventSourceMapping {
    EventSourceMapping {
        batch_size: DEAD_LETTER_BATCH_SIZE,
        window_s: 0,
        concurrency: deployment.concurrency.dead_letter,
        pollers: None,
    }
}

/// Records of the events queue: one attempt per delivery that does not wait first, and its retries in place.
fn fresh(plan: &Plan, of: &Subscription, average: &AverageDelivery, parts: f64) -> QueueWork {
    let traffic = &plan.traffic;
    let messages = traffic.events / traffic.events_per_message;
    let records = messages + parts;
    let part = |of: f64| if records > 0.0 { of / records } else { 0.0 };
    let per_record = part(traffic.events * traffic.fan_out);
    let at_once = per_record * average.first_at_once();
    let waits = per_record - at_once;
    QueueWork {
        records,
        attempts_per_record: at_once,
        events_per_record: traffic.events_per_message.min(per_record),
        processor: DISPATCH,
        memory_mb: plan.deployment.memory_mb,
        fails: average.first_fails,
        sends: (waits
            + at_once * average.first_fails
            + if parts > 0.0 { part(messages) } else { 0.0 })
        .min(1.0),
        in_place_ms: at_once
            * (average.in_place_ms + average.attempts_in_place * traffic.answer_ms),
        answer_ms: traffic.answer_ms,
        failure_ms: failure_ms(traffic, of),
        max_concurrency: of.destination.max_concurrency.most,
    }
}

/// Records of the retry queue: hops, and the attempts at their end.
fn retried(
    plan: &Plan,
    of: &Subscription,
    average: &AverageDelivery,
    deliveries: f64,
) -> QueueWork {
    let traffic = &plan.traffic;
    let records = deliveries * average.messages;
    let part = |of: f64, whole: f64| if whole > 0.0 { (of / whole).clamp(0.0, 1.0) } else { 0.0 };
    let attempts = average.attempts_after_messages();
    let first = average.first_at_once();
    let fails = part(average.failures - first * average.first_fails, average.attempts - first);
    QueueWork {
        records,
        attempts_per_record: part(attempts, average.messages),
        events_per_record: 1.0,
        processor: DISPATCH,
        memory_mb: plan.deployment.memory_mb,
        fails,
        sends: part(average.messages - attempts + attempts * fails, average.messages),
        // Deliveries that do not wait first make them in the invocations of the events queue.
        in_place_ms: if average.messages > 0.0 {
            average.starts_later
                * (average.in_place_ms + average.attempts_in_place * traffic.answer_ms)
                / average.messages
        } else {
            0.0
        },
        answer_ms: traffic.answer_ms,
        failure_ms: failure_ms(traffic, of),
        max_concurrency: of.destination.max_concurrency.most,
    }
}

/// Records of the dead-letter queue: one blob each, those of an invocation written concurrently.
pub(super) fn stored(dead_letters: f64) -> QueueWork {
    QueueWork {
        records: dead_letters,
        attempts_per_record: 1.0,
        events_per_record: 1.0,
        processor: DEAD_LETTER,
        memory_mb: DEAD_LETTER_MEMORY_MB,
        fails: 0.0,
        sends: 0.0,
        in_place_ms: 0.0,
        answer_ms: REQUEST_MS,
        failure_ms: REQUEST_MS,
        max_concurrency: DEAD_LETTER_BATCH_SIZE,
    }
}

/// How long a failed attempt takes: without a response, the response timeout, cut to what the
/// function's timeout allows.
pub(super) fn failure_ms(traffic: &Traffic, of: &Subscription) -> f64 {
    match traffic.failure {
        Always::Timeout => {
            as_f64(of.destination.response_timeout_ms.min(DISPATCH_TIMEOUT_MS - RESPONSE_MARGIN_MS))
        }
        Always::Status(_)
        | Always::Refused
        | Always::Reset
        | Always::Dns
        | Always::Tls
        | Always::Blocked
        | Always::Aborted => traffic.answer_ms,
    }
}

impl Deployment {
    /// Custom metrics of this traffic: each metric once per value of each of its dimension sets. Those of
    /// unhealthy destinations and of what is set aside are written in few hours, and each is billed for these.
    pub(crate) fn metrics(&self) -> f64 {
        let values = |of: &Dimensions| match of {
            Dimensions::None => 1.0,
            Dimensions::Topic => self.topics,
            Dimensions::Outcome => OUTCOMES,
            Dimensions::Reason => REASONS,
            Dimensions::Subscription => self.subscriptions,
        };
        let splits = self.metrics_per;
        let sets = |of: Metric| {
            let subscription = of.is_per_subscription().then_some(&Dimensions::Subscription);
            let sets = of.dimensions().iter().chain(subscription);
            sets.filter(|of| splits.has(**of)).map(values).sum::<f64>()
        };
        let is_rare = |of: &Metric| of.is_exceptional() || *of == Metric::SetAsideCount;
        Metric::ALL.into_iter().filter(|of| !is_rare(of)).map(sets).sum()
    }
}

/// Different outcomes in a month. Assumed.
const OUTCOMES: f64 = 5.0;
/// Different dead-letter reasons in a month. Assumed.
const REASONS: f64 = 2.0;
