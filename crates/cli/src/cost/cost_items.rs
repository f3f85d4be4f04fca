//! The bill: items of quantity × unit price = cost, each with the formula of its quantity.
//!
//! Separate because rounding happens here: each average is rounded once, and everything after that
//! is whole numbers.

use adapters::metrics::emf::VALUES_MAX;
use adapters::metrics::meter::KEPT_MS;
use delivery::time::duration::DAY_MS;

use super::average::{AverageDelivery, Wait, as_f64};
use super::load::{DEAD_LETTER_MEMORY_MB, Load};
use super::measured::{
    DELIVERED_LINE_BYTES, ENDED_LINE_BYTES, FAILED_LINE_BYTES, MEASURED_VALUES_BYTES,
    METRICS_LINE_BYTES, STORED_LINE_BYTES,
};
use super::plan::{Architecture, Deployment, LogDeliveries, LogLevel, Plan, Pollers};
use super::prices::{
    ALARM, API_DESTINATION, ARM64, DATA_OUT, EVENT_BUS, EVENT_GRID, EVENT_POLLER, FAIR_REQUEST,
    GET, INVOCATION, LOGS, LOGS_KEPT, METRIC, NAT_DATA, NAT_HOUR, PUB_SUB, PUT, Price, SCHEDULE,
    SNS_HTTP, SNS_PUBLISH, SQS_REQUEST, STORED, SVIX, TABLE_READ, TABLE_WRITE, TAG, X86_64,
};
use super::queue_load::{POLLERS, QueueLoad, chunks, connections, idle_polls, polled};
use super::subscription_reads::SubscriptionReads;
use super::table_use::{TableUse, processes};
use crate::numbers::{count, decimals, precise, rounded};

/// The length of a month in the bill.
pub(crate) const MONTH_DAYS: u32 = 30;
/// A GB, as memory, logs and storage are billed.
const GB: f64 = 1_073_741_824.0;
/// Pub/Sub bills a message as at least so many bytes.
/// <https://cloud.google.com/pubsub/pricing>
const PUB_SUB_LEAST_BYTES: f64 = 1_000.0;
/// CloudWatch bills these bytes on top of each log line.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
const LINE_OVERHEAD_BYTES: f64 = 26.0;
/// About what a dead letter holds besides its event: see `tests/golden/blobs`.
const BLOB_OVERHEAD_BYTES: f64 = 700.0;
/// The two lines of a dead letter, less what CloudWatch adds to one.
pub(super) const DEAD_LETTER_LINES_BYTES: f64 =
    ENDED_LINE_BYTES + LINE_OVERHEAD_BYTES + STORED_LINE_BYTES;
/// Headers of a request, and what TLS adds. Assumed.
const REQUEST_OVERHEAD_BYTES: f64 = 600.0;
/// `RetentionInDays` of the log groups.
const LOGS_KEPT_DAYS: f64 = 30.0;

/// One line of the bill.
#[derive(Debug)]
pub(crate) struct CostItem {
    /// The quantity that is billed.
    pub(crate) what: &'static str,
    /// The quantity of a day, in thousandths of its unit.
    pub(crate) thousandths: u64,
    /// The price of one unit.
    pub(crate) price: &'static Price,
    /// The formula of the quantity, for people.
    pub(crate) formula: String,
}

impl CostItem {
    /// A quantity, in whole units where they are counted.
    pub(super) fn new(
        what: &'static str,
        quantity: f64,
        price: &'static Price,
        formula: String,
    ) -> Self {
        let thousandths = if price.is_counted {
            rounded(quantity).saturating_mul(1_000)
        } else {
            rounded(quantity * 1_000.0)
        };
        Self { what, thousandths, price, formula }
    }

    /// Its cost in millionths of a millionth of a dollar.
    pub(crate) const fn pico_dollars(&self) -> u128 {
        self.price.of(self.thousandths)
    }
}

/// The sum of a bill, in millionths of a millionth of a dollar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Total {
    pub(crate) day: u128,
    pub(crate) month: u128,
    pub(crate) million_events: u128,
}

impl Total {
    pub(crate) fn of(items: &[CostItem], events: f64) -> Self {
        let day: u128 = items.iter().map(CostItem::pico_dollars).sum();
        let million_events = (day * 1_000_000).checked_div(rounded(events).into()).unwrap_or(0);
        Self { day, month: day * u128::from(MONTH_DAYS), million_events }
    }
}

/// The bill of a day, without items whose quantity is zero.
pub(crate) fn cost_items(plan: &Plan, average: &AverageDelivery, load: &Load) -> Vec<CostItem> {
    let mut items = sqs(plan, average, load);
    items.extend(lambda(plan, load));
    items.extend(cloudwatch(plan, average, load));
    items.extend(storage(plan, average, load));
    items.extend(subscriptions(&load.subscriptions));
    items.extend(table(&load.table));
    items.extend(nat(plan, average, load));
    items.retain(|item| item.thousandths > 0);
    items
}

/// Requests to SQS.
pub(super) fn sqs_requests(what: &'static str, quantity: f64, formula: String) -> CostItem {
    CostItem::new(what, quantity, &SQS_REQUEST, formula)
}

/// The receive and delete requests of a queue.
pub(super) fn drained(queue: &QueueLoad, [received, deleted]: [&'static str; 2]) -> [CostItem; 2] {
    let receives = per_invocation(queue, queue.receives_per_invocation);
    let deletes = per_invocation(queue, queue.deletes_per_invocation);
    [
        sqs_requests(received, queue.receives - queue.empty, receives),
        sqs_requests(deleted, queue.deletes, deletes),
    ]
}

fn sqs(plan: &Plan, average: &AverageDelivery, load: &Load) -> Vec<CostItem> {
    let traffic = &plan.traffic;
    let deliveries = count(load.deliveries);
    let message_bytes = traffic.events_per_message * traffic.event_bytes;
    let arrays = match traffic.events_per_message {
        one if one <= 1.0 => String::new(),
        many => format!(" in arrays of {}", count(many)),
    };
    let published = format!(
        "{} events{arrays}, {} a request × {} of 64 KiB",
        count(traffic.events),
        count(traffic.publish_batch),
        count(chunks(traffic.publish_batch * message_bytes))
    );
    let parts =
        format!("{} parts of events for many subscriptions, 10 a request", count(load.parts));
    let waits = format!("{deliveries} deliveries × {} waits", precise(average.waits));
    let hops = format!(
        "{deliveries} × ({} messages − {} waits), {} a request",
        precise(average.messages),
        precise(average.waits),
        precise(load.hops_together)
    );
    let dead_letters = format!("{deliveries} × {}", precise(average.dead_letters));
    let mut items = vec![sqs_requests("events published", load.publishes, published)];
    items.extend(drained(&load.events, ["events received", "events deleted"]));
    items.push(sqs_requests("parts sent", load.part_sends, parts));
    items.push(sqs_requests("waits sent", load.wait_sends, waits));
    items.push(sqs_requests("further hops sent", load.hop_sends, hops));
    items.extend(drained(&load.retries, ["waits received", "waits deleted"]));
    items.push(sqs_requests("dead letters sent", load.dead_letter_sends, dead_letters));
    items.extend(drained(&load.dead_letters, ["dead letters received", "dead letters deleted"]));
    let moved = deliveries_moved(plan, load);
    items.push(sqs_requests("slow lane", load.slow_lane, moved));
    let connections = connections(plan.deployment.events_pollers);
    let queues = polled();
    let polls = match connections > POLLERS {
        true => format!("({} queues × 5 pollers + {} of events)", queues - 1.0, count(connections)),
        false => format!("{queues} queues × 5 pollers"),
    };
    let polls = format!("{polls} × 86,400 s ÷ 20 s, less what finds something");
    // Messages are counted in three queues. What the others get is split, slow or goes wrong.
    let used = [&load.events, &load.retries, &load.dead_letters];
    let idle = idle_polls(queues - as_f64(used.len() as u64));
    let empty = used.iter().map(|queue| queue.empty).sum::<f64>() + idle;
    items.push(sqs_requests("polls that find nothing", empty, polls));
    items.push(fair_queues(load));
    items
}

/// The formula of requests that receive or delete the records of a queue.
fn per_invocation(queue: &QueueLoad, requests: f64) -> String {
    let (invocations, requests) = (count(queue.invocations), count(requests));
    let records = if queue.fill == 1 { "record" } else { "records" };
    format!("{invocations} invocations of {} {records} × {requests}", queue.fill)
}

fn deliveries_moved(plan: &Plan, load: &Load) -> String {
    let moved = load.deliveries * plan.traffic.slow_share;
    format!("{} deliveries that move, each sent, received and deleted there", count(moved))
}

/// The surcharge of requests with a message group: those of waits, of the slow lane and of dead letters.
fn fair_queues(load: &Load) -> CostItem {
    let sends = load.wait_sends + load.hop_sends + load.dead_letter_sends + load.slow_lane;
    let formula = "sent, received and deleted above, of waits, slow lane and dead letters";
    surcharge(sends, &[&load.retries, &load.dead_letters], formula)
}

/// The surcharge of so many requests that send, and of those that receive from these queues and delete there.
pub(super) fn surcharge(sends: f64, queues: &[&QueueLoad], formula: &str) -> CostItem {
    let requests =
        queues.iter().fold(sends, |sum, queue| sum + queue.receives - queue.empty + queue.deletes);
    CostItem::new("fair queues", requests, &FAIR_REQUEST, formula.to_owned())
}

/// The data that NAT gateways pass on, if there are any.
pub(super) fn nat_data(deployment: &Deployment, bytes: f64, formula: String) -> Option<CostItem> {
    let passes = deployment.nat_gateways > 0.0;
    passes.then(|| CostItem::new("NAT data", bytes / GB, &NAT_DATA, formula))
}

fn lambda(plan: &Plan, load: &Load) -> Vec<CostItem> {
    let deployment = &plan.deployment;
    let dispatched = load.events.invocations + load.retries.invocations;
    let both = format!(
        "{} for events + {} for waits",
        count(load.events.invocations),
        count(load.retries.invocations)
    );
    let mut items = vec![
        invoked("dispatch invoked", dispatched, both),
        running("dispatch for events", &load.events, deployment.memory_mb, deployment),
        running("dispatch for waits", &load.retries, deployment.memory_mb, deployment),
    ];
    items.extend(storing(&load.dead_letters, deployment));
    items.extend(deployment.events_pollers.map(|pollers| event_pollers(pollers, &load.events)));
    items
}

pub(super) fn invoked(what: &'static str, invocations: f64, formula: String) -> CostItem {
    CostItem::new(what, invocations, &INVOCATION, formula)
}

/// The time of the invocations of a queue.
pub(super) fn running(
    what: &'static str,
    queue: &QueueLoad,
    memory_mb: u32,
    deployment: &Deployment,
) -> CostItem {
    let price = match deployment.architecture {
        Architecture::Arm64 => &ARM64,
        Architecture::X86_64 => &X86_64,
    };
    let (invocations, each_ms) = (count(queue.invocations), count(queue.invocation_ms));
    let formula = format!("{invocations} × {each_ms} ms × {memory_mb} ÷ 1,024");
    CostItem::new(what, queue.gb_seconds(memory_mb), price, formula)
}

/// The deadletter function.
pub(super) fn storing(queue: &QueueLoad, deployment: &Deployment) -> [CostItem; 2] {
    let dead_letters = format!("{} dead letters ÷ {}", count(queue.records), queue.fill);
    [
        invoked("deadletter invoked", queue.invocations, dead_letters),
        running("deadletter", queue, DEAD_LETTER_MEMORY_MB, deployment),
    ]
}

/// The hours of provisioned event pollers: of those that stand by, or of more if the load needs them.
fn event_pollers(pollers: Pollers, events: &QueueLoad) -> CostItem {
    let Pollers { minimum, maximum } = pollers;
    let used = events.pollers.ceil().min(f64::from(maximum)).max(f64::from(minimum));
    let formula = format!("{} of {minimum} to {maximum} event pollers × 24 h", count(used));
    CostItem::new("event pollers", used * 24.0, &EVENT_POLLER, formula)
}

/// The logged bytes of deliveries and dead letters, with their formula.
fn delivery_log_bytes(plan: &Plan, average: &AverageDelivery, load: &Load) -> (f64, String) {
    let delivered = match plan.deployment.log_deliveries {
        LogDeliveries::All => 1.0,
        LogDeliveries::Failures => average.first_fails,
    };
    log_lines(
        &plan.deployment,
        load.deliveries,
        &[
            ((delivered - average.dead_letters).max(0.0), "delivered", DELIVERED_LINE_BYTES),
            (average.failures, "failed attempts", FAILED_LINE_BYTES),
            (average.dead_letters, "dead letters", DEAD_LETTER_LINES_BYTES),
        ],
    )
}

/// The logged bytes of so many deliveries with these lines each, with their formula.
pub(super) fn log_lines(
    deployment: &Deployment,
    deliveries: f64,
    lines: &[(f64, &str, f64)],
) -> (f64, String) {
    let logged = match deployment.log_level {
        LogLevel::Info => deliveries,
        LogLevel::Warn => 0.0,
    };
    let of = |bytes: f64| bytes + LINE_OVERHEAD_BYTES;
    let formula: Vec<String> = lines
        .iter()
        .map(|(each, what, bytes)| {
            format!("{} {what} × {} B", count(logged * each), count(of(*bytes)))
        })
        .collect();
    (lines.iter().map(|(each, _, bytes)| logged * each * of(*bytes)).sum(), formula.join(" + "))
}

/// The logged bytes of metrics, with their formula: each process writes once in half a minute, if it counted
/// anything, and deadletter in each invocation; and there are lines for all measured values.
fn metric_log_bytes(plan: &Plan, average: &AverageDelivery, load: &Load) -> (f64, String) {
    let deployment = &plan.deployment;
    let windows = |queue: &QueueLoad, limit: u32| {
        let windows = processes(queue, limit) * as_f64(DAY_MS / KEPT_MS);
        windows.min(queue.attempting)
    };
    let writings = windows(&load.events, deployment.events_at_once())
        + windows(&load.retries, deployment.concurrency.retry)
        + load.dead_letters.invocations;
    let attempts = load.deliveries * average.attempts;
    let writings = writings.max(attempts / as_f64(VALUES_MAX as u64));
    // No more combinations are written than there are deliveries.
    let per_writing = if writings > 0.0 { load.deliveries / writings } else { 0.0 };
    let splits = deployment.metrics_per;
    let combinations =
        |wanted: bool, values: f64| if wanted { values.min(per_writing) } else { 0.0 };
    let lines = 1.0
        + combinations(splits.topic, deployment.topics)
        + combinations(splits.subscription, deployment.subscriptions);
    let sets = 1.0
        + [splits.topic, splits.subscription].map(|it| f64::from(u8::from(it))).iter().sum::<f64>();
    let (line_bytes, values) = (METRICS_LINE_BYTES + LINE_OVERHEAD_BYTES, attempts * sets);
    let formula = format!(
        "{} lines × {} B + {} attempts × {} B",
        count(writings * lines),
        count(line_bytes),
        count(values),
        count(MEASURED_VALUES_BYTES)
    );
    (writings * lines * line_bytes + values * MEASURED_VALUES_BYTES, formula)
}

fn cloudwatch(plan: &Plan, average: &AverageDelivery, load: &Load) -> Vec<CostItem> {
    let mut items = logs([
        ("logs of deliveries", delivery_log_bytes(plan, average, load)),
        ("logs of metrics", metric_log_bytes(plan, average, load)),
    ]);
    let attempts = load.deliveries * average.attempts;
    let metrics = if attempts > 0.0 { plan.deployment.metrics() } else { 0.0 };
    let metrics_how = format!("{} combinations ÷ {MONTH_DAYS} days", count(metrics));
    let month = f64::from(MONTH_DAYS);
    items.push(CostItem::new("metrics", metrics / month, &METRIC, metrics_how));
    let alarm_how = format!("that of the last-resort queue ÷ {MONTH_DAYS} days");
    items.push(CostItem::new("alarm", 1.0 / month, &ALARM, alarm_how));
    items
}

/// Logs of so many bytes, written and kept.
pub(super) fn logs<const N: usize>(logs: [(&'static str, (f64, String)); N]) -> Vec<CostItem> {
    let bytes: f64 = logs.iter().map(|(_, (bytes, _))| bytes).sum();
    let kept_gb_months = bytes / GB * LOGS_KEPT_DAYS / f64::from(MONTH_DAYS);
    let kept_how = "the same for 30 days, not compressed".to_owned();
    let written = logs.map(|(what, (bytes, how))| CostItem::new(what, bytes / GB, &LOGS, how));
    let mut items = Vec::from(written);
    items.push(CostItem::new("logs kept", kept_gb_months, &LOGS_KEPT, kept_how));
    items
}

fn storage(plan: &Plan, average: &AverageDelivery, load: &Load) -> Vec<CostItem> {
    let mut items = Vec::from(stored(plan, load.blobs));
    items.push(requests(plan, load.deliveries * average.attempts));
    items
}

/// The network traffic of so many attempts.
pub(super) fn requests(plan: &Plan, attempts: f64) -> CostItem {
    let bytes = plan.traffic.event_bytes + REQUEST_OVERHEAD_BYTES;
    let formula = format!("{} attempts × {} B, to the internet", count(attempts), count(bytes));
    CostItem::new("requests to destinations", attempts * bytes / GB, &DATA_OUT, formula)
}

/// Dead letters, each written as a blob with a tag, and kept.
pub(super) fn stored(plan: &Plan, dead_letters: f64) -> [CostItem; 3] {
    let dead_letter_bytes = plan.traffic.event_bytes + BLOB_OVERHEAD_BYTES;
    let kept_ms = plan.deployment.dead_letters_kept_ms;
    let months = as_f64(kept_ms) / as_f64(DAY_MS) / f64::from(MONTH_DAYS);
    let gb_months = dead_letters * dead_letter_bytes / GB * months;
    let stored_how = format!(
        "{} dead letters × {} B, {} months",
        count(dead_letters),
        count(dead_letter_bytes),
        decimals(months)
    );
    let puts = format!("{} dead letters", count(dead_letters));
    [
        CostItem::new("dead letters written", dead_letters, &PUT, puts),
        CostItem::new("dead letters kept", gb_months, &STORED, stored_how),
        CostItem::new(
            "dead letters tagged",
            dead_letters * months,
            &TAG,
            format!("{} blobs × 1 tag, {} months", count(dead_letters), decimals(months)),
        ),
    ]
}

/// Requests for the subscriptions.
pub(super) fn subscriptions(of: &SubscriptionReads) -> [CostItem; 2] {
    let reads = "settings, publishers and topics".to_owned();
    // S3 lists at the price of a write.
    let writes = format!("{} pages of the listing + {} topics", count(of.lists), count(of.writes));
    [
        CostItem::new("subscriptions read", of.reads, &GET, reads),
        CostItem::new("subscriptions looked at", of.lists + of.writes, &PUT, writes),
    ]
}

/// Requests for the documents that all processes share: each change reads the document and replaces it.
pub(super) fn table(table: &TableUse) -> [CostItem; 2] {
    let reads = format!(
        "{} of the news + {} before probes + {} before changes about failing destinations",
        count(table.news),
        count(table.questions),
        count(table.findings)
    );
    let writes = format!(
        "{} about failing destinations + {} for slots + {} for permits",
        count(table.findings),
        count(table.slots),
        count(table.permits)
    );
    [
        CostItem::new("table read", table.reads(), &TABLE_READ, reads),
        CostItem::new("table written", table.writes(), &TABLE_WRITE, writes),
    ]
}

/// The NAT gateways of a dispatch in a VPC: requests to destinations pass them, and messages to SQS, which no
/// gateway endpoint takes. Lambda itself receives messages and writes logs, elsewhere.
fn nat(plan: &Plan, average: &AverageDelivery, load: &Load) -> Vec<CostItem> {
    let gateways = plan.deployment.nat_gateways;
    let attempts = load.deliveries * average.attempts;
    let messages = load.deliveries * (average.messages + average.dead_letters) + load.parts;
    let bytes = plan.traffic.event_bytes + REQUEST_OVERHEAD_BYTES;
    let formula = format!(
        "({} attempts + {} messages to SQS) × {} B",
        count(attempts),
        count(messages),
        count(bytes)
    );
    let hours = format!("{} gateways × 24 h", count(gateways));
    let mut items = vec![CostItem::new("NAT gateways", gateways * 24.0, &NAT_HOUR, hours)];
    items.extend(nat_data(&plan.deployment, (attempts + messages) * bytes, formula));
    items
}

/// The same traffic through other services, by their list prices. Without the network, which costs
/// the same with each of them.
pub(crate) fn alternatives(
    plan: &Plan,
    average: &AverageDelivery,
    waits: &[Wait],
) -> Vec<CostItem> {
    let traffic = &plan.traffic;
    let (events, deliveries) = (traffic.events, traffic.events * traffic.fan_out);
    let attempts = deliveries * average.attempts;
    let events_how = || format!("{} events", count(events));
    let attempts_how =
        || format!("{} deliveries × {} attempts", count(deliveries), precise(average.attempts));
    let chunked = chunks(traffic.event_bytes);
    let operations = (events + attempts) * chunked;
    let operations_how = format!("{} events + {} attempts", count(events), count(attempts));
    let each_bytes = traffic.event_bytes.max(PUB_SUB_LEAST_BYTES);
    let throughput = (events + attempts) * each_bytes;
    let throughput_how = format!(
        "({} events + {} attempts) × {} B",
        count(events),
        count(attempts),
        count(each_bytes)
    );
    let mut items = vec![
        CostItem::new("events on a bus", events * chunked, &EVENT_BUS, events_how()),
        CostItem::new("API destinations", attempts * chunked, &API_DESTINATION, attempts_how()),
        CostItem::new("publications", events * chunked, &SNS_PUBLISH, events_how()),
        CostItem::new("HTTP deliveries", attempts * chunked, &SNS_HTTP, attempts_how()),
        CostItem::new("publications and attempts", operations, &EVENT_GRID, operations_how),
        CostItem::new("throughput", throughput / GB, &PUB_SUB, throughput_how),
        CostItem::new("messages", deliveries, &SVIX, format!("{} deliveries", count(deliveries))),
        scheduled_waits(deliveries, average, waits),
    ];
    items.retain(|item| item.thousandths > 0);
    items
}

/// The waits that need more than one message, as schedules of EventBridge Scheduler.
fn scheduled_waits(deliveries: f64, average: &AverageDelivery, waits: &[Wait]) -> CostItem {
    let hops: f64 = waits
        .iter()
        .filter(|wait| wait.messages > 1)
        .map(|wait| wait.reached * f64::from(wait.messages))
        .sum();
    let formula = format!(
        "{} deliveries × {} such waits; with lastmile they are {} messages",
        count(deliveries),
        precise(average.long_waits),
        count(deliveries * hops)
    );
    let schedules = deliveries * average.long_waits;
    CostItem::new("one schedule per wait over 15 min", schedules, &SCHEDULE, formula)
}
