//! Computes the lines of the bill: quantity × unit price = cost. Each line has the formula of its
//! quantity.
//!
//! The estimate is a deliberate upper bound. It assumes a separate send request for each message of
//! a wait, because responses arrive at different times. It assumes a separate request for each dead
//! letter as well.

use adapters::live_topics::LOOK_EVERY_MS;
use adapters::metrics::emf::VALUES_MAX;
use adapters::metrics::meter::KEPT_MS;
use adapters::metrics::{Dimensions, Metric};
use dispatch::READ_EVERY_MS;

use super::load::{Load, message_bytes};
use super::measured::{
    DELIVERED_LINE_BYTES, ENDED_LINE_BYTES, FAILED_LINE_BYTES, MEASURED_VALUES_BYTES,
    METRICS_LINE_BYTES, STORED_LINE_BYTES,
};
use super::prices::{
    ALARM, DATA_OUT, FAIR_REQUEST, GB_SECOND, INVOCATION, LOGS, LOGS_KEPT, METRIC, Price, READ,
    SQS_REQUEST, STORED, TABLE_READ, TAG, WRITE,
};
use super::queue::{POLLERS, Queue, REQUEST_ENTRIES, chunks};
use super::template::{ALARMS, LOGS_KEPT_DAYS, POLL_S};
use super::{DAY_S, MONTH_DAYS, Plan};
use crate::operations::queues;
use crate::terminal::numbers::{count, precise};

/// The number of bytes in a GB, as AWS bills memory, logs and storage.
const GB: f64 = 1_073_741_824.0;
/// The number of bytes that CloudWatch bills in addition to each log line.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
const LINE_OVERHEAD_BYTES: f64 = 26.0;
/// The approximate size of a dead letter without its event: see `tests/golden/blobs`.
const BLOB_OVERHEAD_BYTES: f64 = 700.0;
/// The assumed size of request headers and TLS overhead.
const REQUEST_OVERHEAD_BYTES: f64 = 600.0;
/// The number of objects that a process reads at each check for changed subscriptions: the
/// settings, the publishers and one topic.
const OBJECTS_OF_A_LOOK: f64 = 3.0;
/// The minimum quantity of a line. Smaller quantities would be shown as 0.
const QUANTITY_MIN: f64 = 0.000_5;
/// The read units of one read of the published changes. The read is eventually consistent, which
/// costs half as much as a consistent read.
const UNITS_OF_THE_NEWS: f64 = 0.5;

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) item: &'static str,
    /// The billed quantity per month, in units of the price.
    pub(crate) quantity: f64,
    pub(crate) price: &'static Price,
    /// The formula of the quantity, for people.
    pub(crate) how: String,
}

impl Line {
    pub(super) fn new(
        item: &'static str,
        quantity: f64,
        price: &'static Price,
        how: impl Into<String>,
    ) -> Self {
        Self { item, quantity, price, how: how.into() }
    }

    /// Returns the cost of the line in dollars.
    pub(crate) fn usd(&self) -> f64 {
        self.quantity * self.price.usd / self.price.per
    }
}

/// Returns the total of the lines of a bill, in dollars.
pub(crate) fn sum(lines: &[Line]) -> f64 {
    lines.iter().map(Line::usd).sum()
}

/// Returns the bill of a month. Omits lines with a quantity below [`QUANTITY_MIN`].
pub(super) fn lines(plan: &Plan, load: &Load) -> Vec<Line> {
    let mut lines = published(plan, load);
    lines.extend(waits(plan, load));
    lines.extend(polls(load));
    lines.extend(dispatched(&[("for events", &load.events), ("for waits", &load.waits)]));
    lines.extend(logs(plan, load));
    lines.extend(metrics(load));
    lines.push(requests(plan, load.deliveries * load.average.attempts));
    lines.extend(letters(plan, &load.letters));
    lines.extend(looks(load));
    lines.retain(|line| line.quantity >= QUANTITY_MIN);
    lines
}

fn published(plan: &Plan, load: &Load) -> Vec<Line> {
    let request_bytes = plan.publish_batch * plan.events_per_message * plan.event_bytes;
    let sent = load.messages / plan.publish_batch * chunks(request_bytes);
    let of_parts = chunks(REQUEST_ENTRIES * message_bytes(plan));
    vec![
        Line::new(
            "events published",
            sent,
            &SQS_REQUEST,
            format!(
                "{} messages ÷ {} per request",
                count(load.messages),
                count(plan.publish_batch)
            ),
        ),
        received("events received, deleted", &load.events),
        Line::new(
            "parts sent",
            load.parts / REQUEST_ENTRIES * of_parts,
            &SQS_REQUEST,
            format!("{} parts of divided messages, sent in batches of 10", count(load.parts)),
        ),
    ]
}

/// Returns the cost of the requests that receive and delete the records of a queue.
pub(super) fn received(item: &'static str, queue: &Queue) -> Line {
    let how = format!("{} records, {} an invocation", count(queue.records), queue.fill);
    Line::new(item, queue.receives + queue.deletes, &SQS_REQUEST, how)
}

/// Returns the surcharge for requests with a message group: `sends` send requests, and the requests
/// that receive and delete the messages.
pub(super) fn fair(sends: f64, queue: &Queue) -> Line {
    let all = sends + queue.receives + queue.deletes;
    Line::new("fair queues", all, &FAIR_REQUEST, "sent, received and deleted above")
}

fn waits(plan: &Plan, load: &Load) -> [Line; 3] {
    let sends = load.waits.records * chunks(message_bytes(plan));
    let how = format!(
        "{} deliveries × {} messages",
        count(load.deliveries),
        precise(load.average.messages)
    );
    [
        Line::new("waits sent", sends, &SQS_REQUEST, how),
        received("waits received, deleted", &load.waits),
        fair(sends, &load.waits),
    ]
}

/// Returns the cost of empty polls: the polls of all queues, minus those that return messages.
fn polls(load: &Load) -> [Line; 1] {
    let of_a_queue = POLLERS * MONTH_DAYS * DAY_S / POLL_S;
    let used = [&load.events, &load.waits, &load.letters];
    let others = f64::from(u32::try_from(queues::mappings().count() - used.len()).unwrap_or(0));
    let empty = used.map(|queue| (of_a_queue - queue.receives).max(0.0));
    let all = empty.iter().sum::<f64>() + others * of_a_queue;
    let how = format!(
        "{} queues × 5 pollers ÷ 20 s, minus the polls with messages",
        queues::mappings().count()
    );
    [Line::new("empty polls", all, &SQS_REQUEST, how)]
}

/// Returns the cost of dispatch's invocations for these queues.
pub(super) fn dispatched(queues: &[(&'static str, &Queue)]) -> [Line; 2] {
    let how =
        |queue: &Queue| format!("{} × {} ms", count(queue.invocations), count(queue.invocation_ms));
    let each: Vec<String> =
        queues.iter().map(|(name, queue)| format!("{} {name}", how(queue))).collect();
    running(
        ["dispatch invoked", "dispatch runs"],
        queues.iter().map(|(_, queue)| *queue),
        each.join(" + "),
    )
}

fn running<'a>(
    [invoked, runs]: [&'static str; 2],
    queues: impl Iterator<Item = &'a Queue> + Clone,
    how: String,
) -> [Line; 2] {
    let invocations = queues.clone().map(|queue| queue.invocations).sum();
    let gb_seconds = queues.map(|queue| queue.gb_seconds).sum();
    [
        Line::new(invoked, invocations, &INVOCATION, "as received"),
        Line::new(runs, gb_seconds, &GB_SECOND, how),
    ]
}

/// Returns the cost of writing and storing log lines. Each item in `lines` is a number of lines,
/// their name, and their size in bytes.
pub(super) fn logged(item: &'static str, lines: &[(f64, &str, f64)]) -> [Line; 2] {
    let bytes = |bytes: f64| bytes + LINE_OVERHEAD_BYTES;
    let gb = lines.iter().map(|(number, _, size)| number * bytes(*size)).sum::<f64>() / GB;
    let how = lines.iter().filter(|(number, ..)| *number > 0.0);
    let how = how.map(|(number, name, size)| {
        format!("{} {name} × {} B", count(*number), count(bytes(*size)))
    });
    [
        Line::new(item, gb, &LOGS, how.collect::<Vec<_>>().join(" + ")),
        Line::new(
            "logs kept",
            gb * LOGS_KEPT_DAYS / MONTH_DAYS,
            &LOGS_KEPT,
            "the same, not compressed",
        ),
    ]
}

fn logs(plan: &Plan, load: &Load) -> [Line; 2] {
    let average = &load.average;
    let at_once = if plan.logs_all { 1.0 } else { 1.0 - plan.success };
    let delivered = load.deliveries * (at_once - average.dead_letters).max(0.0);
    let failed = load.deliveries * (average.attempts - 1.0 + average.dead_letters);
    let lines =
        [(delivered, "delivered", DELIVERED_LINE_BYTES), (failed, "failed", FAILED_LINE_BYTES)];
    logged("logs of deliveries", &lines)
}

/// Returns the cost of the metrics and the alarm that every deployment has. Metrics of single
/// topics or subscriptions are omitted. A process logs a line every half minute if it has counted
/// anything. The line contains the measured values of each attempt.
fn metrics(load: &Load) -> [Line; 4] {
    let attempts = load.deliveries * load.average.attempts;
    let every_s = KEPT_MS as f64 / 1_000.0;
    let written = [&load.events, &load.waits]
        .map(|queue| (queue.at_once.ceil() * MONTH_DAYS * DAY_S / every_s).min(queue.attempting));
    let written = written.iter().sum::<f64>() + load.letters.invocations;
    let written = written.max(attempts / VALUES_MAX as f64);
    // Metrics for exceptional events are billed for only a few hours, so the estimate omits them.
    let is_usual = |metric: &Metric| !metric.is_exceptional() && *metric != Metric::SetAsideCount;
    let usual = Metric::ALL.into_iter().filter(is_usual);
    let combinations =
        usual.filter(|metric| metric.dimensions().contains(&Dimensions::None)).count();
    let combinations = if attempts > 0.0 { combinations as f64 } else { 0.0 };
    let values = attempts * MEASURED_VALUES_BYTES;
    let gb = (written * (METRICS_LINE_BYTES + LINE_OVERHEAD_BYTES) + values) / GB;
    let how = format!("{} lines, and {} attempts × 9 B", count(written), count(attempts));
    [
        Line::new("logs of metrics", gb, &LOGS, how),
        Line::new("logs of metrics kept", gb * LOGS_KEPT_DAYS / MONTH_DAYS, &LOGS_KEPT, "the same"),
        Line::new("metrics", combinations, &METRIC, "of the whole deployment"),
        Line::new("alarm", ALARMS, &ALARM, "of the last-resort queue"),
    ]
}

/// Returns the cost of the data sent to destinations.
pub(super) fn requests(plan: &Plan, attempts: f64) -> Line {
    let bytes = plan.event_bytes + REQUEST_OVERHEAD_BYTES;
    let how = format!("{} attempts × {} B, to the internet", count(attempts), count(bytes));
    Line::new("requests to destinations", attempts * bytes / GB, &DATA_OUT, how)
}

/// Returns the cost of dead letters: sending, logging, and storing them for a month.
pub(super) fn letters(plan: &Plan, queue: &Queue) -> Vec<Line> {
    let sends = queue.records * chunks(message_bytes(plan));
    let letter_bytes = plan.event_bytes + BLOB_OVERHEAD_BYTES;
    let how = format!("{} dead letters", count(queue.records));
    let mut lines = vec![
        Line::new("dead letters sent", sends, &SQS_REQUEST, how.clone()),
        received("dead letters received, deleted", queue),
        fair(sends, queue),
    ];
    lines.extend(stored(queue));
    // Each dead letter has two log lines. `logged` adds the overhead of one line, so add the
    // overhead of the other line here.
    let both = ENDED_LINE_BYTES + LINE_OVERHEAD_BYTES + STORED_LINE_BYTES;
    lines.extend(logged("logs of dead letters", &[(queue.records, "dead letters", both)]));
    lines.push(Line::new("dead letters written", queue.records, &WRITE, how.clone()));
    lines.push(Line::new(
        "dead letters kept",
        queue.records * letter_bytes / GB,
        &STORED,
        how.clone(),
    ));
    lines.push(Line::new("dead letters tagged", queue.records, &TAG, how));
    lines
}

/// Returns the cost of the deadletter function's invocations.
pub(super) fn stored(queue: &Queue) -> [Line; 2] {
    let how = format!("{} × {} ms", count(queue.invocations), count(queue.invocation_ms));
    running(["deadletter invoked", "deadletter runs"], [queue].into_iter(), how)
}

/// Returns the cost of the periodic reads of each process that receives events: the subscriptions,
/// and the published changes in the table.
fn looks(load: &Load) -> [Line; 2] {
    let looks = |every_ms: u64| {
        let of_a_process = MONTH_DAYS * DAY_S * 1_000.0 / every_ms as f64;
        let queue_looks =
            |queue: &Queue| (queue.at_once.ceil() * of_a_process).min(queue.invocations);
        queue_looks(&load.events) + queue_looks(&load.waits)
    };
    let reads = looks(LOOK_EVERY_MS) * OBJECTS_OF_A_LOOK;
    let news = looks(READ_EVERY_MS) * UNITS_OF_THE_NEWS;
    let processes = count(load.events.at_once.ceil() + load.waits.at_once.ceil());
    let each = |objects: &str| format!("{objects}, by each of {processes} processes");
    [
        Line::new("subscriptions read", reads, &READ, each("settings, publishers and a topic")),
        Line::new("table read", news, &TABLE_READ, each("published changes")),
    ]
}
