//! The bill: lines of quantity × unit price = money, each with where its quantity comes from.
//!
//! Separate because money begins here: averages are rounded once, and everything after that is
//! whole numbers.

use delivery::time::duration::DAY_MS;

use super::Plan;
use super::chain::{Average, Wait, as_f64};
use super::load::Load;
use super::prices::{
    API_DESTINATION, ARM64, DATA_OUT, EVENT_BUS, EVENT_GRID, FAIR_REQUEST, INVOCATION, LOGS,
    LOGS_KEPT, METRIC, PUT, Price, SCHEDULE, SNS_HTTP, SNS_PUBLISH, SQS_REQUEST, STORED, X86_64,
};
use super::queue::{Queue, chunks};
use super::report::{count, decimals, precise};

/// A month has so many days here.
pub(crate) const MONTH_DAYS: u32 = 30;
/// A GB, as memory, logs and storage are billed.
const GB: f64 = 1_073_741_824.0;
/// CloudWatch counts so many bytes beside each line.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
const BESIDE_LINE_BYTES: f64 = 26.0;
/// `delivery.attempted`, measured: a test writes one.
pub(crate) const ATTEMPT_LINE_BYTES: f64 = 375.0;
/// `delivery.ended`, measured: a test writes one.
pub(crate) const END_LINE_BYTES: f64 = 310.0;
/// `deadletter.stored`, measured: a test writes one.
pub(crate) const STORED_LINE_BYTES: f64 = 420.0;
/// Lambda's own two lines of an invocation, `platform.start` and `platform.report`. Assumed.
const PLATFORM_BYTES: f64 = 145.0 + 260.0 + 2.0 * BESIDE_LINE_BYTES;
/// A line of metrics: a combination of dimensions with four metrics, as CloudWatch's embedded
/// format writes them. An invocation that counts anything has one without dimensions, one for its
/// topic, and one for its subscription where that is asked for.
const METRICS_LINE_BYTES: f64 = 480.0 + BESIDE_LINE_BYTES;
/// What a dead letter says beside its event, about: see `tests/golden/blobs`.
const BESIDE_EVENT_BYTES: f64 = 700.0;
/// What a request says beside its body, and what TLS adds. Assumed.
const REQUEST_BYTES: f64 = 600.0;
/// `RetentionInDays` of the log groups.
const LOGS_KEPT_DAYS: f64 = 30.0;
/// `MemorySize` of deadletter.
pub(crate) const LETTERS_MEMORY_MB: u32 = 256;

/// One line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Whose bill it is on.
    pub(crate) service: &'static str,
    /// What is paid for.
    pub(crate) what: &'static str,
    /// How many thousandths of its unit, in a day.
    pub(crate) thousandths: u128,
    /// What a unit costs.
    pub(crate) price: &'static Price,
    /// Where the quantity comes from.
    pub(crate) how: String,
}

impl Line {
    /// So many whole units.
    fn whole(
        service: &'static str,
        what: &'static str,
        quantity: f64,
        price: &'static Price,
        how: String,
    ) -> Self {
        Self { service, what, thousandths: whole(quantity) * 1_000, price, how }
    }

    /// So many units, to the thousandth.
    fn exact(
        service: &'static str,
        what: &'static str,
        quantity: f64,
        price: &'static Price,
        how: String,
    ) -> Self {
        Self { service, what, thousandths: whole(quantity * 1_000.0), price, how }
    }

    /// What it comes to, in millionths of a millionth of a dollar.
    pub(crate) const fn pico_dollars(&self) -> u128 {
        self.price.of(self.thousandths)
    }
}

/// Rounded to the nearest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "quantities are positive and below 2^53"
)]
pub(crate) fn whole(quantity: f64) -> u128 {
    (quantity + 0.5).max(0.0) as u128
}

/// What the lines come to, in millionths of a millionth of a dollar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Total {
    pub(crate) day: u128,
    pub(crate) month: u128,
    pub(crate) million_events: u128,
}

impl Total {
    pub(crate) fn of(lines: &[Line], events: f64) -> Self {
        let day: u128 = lines.iter().map(Line::pico_dollars).sum();
        let million_events = (day * 1_000_000).checked_div(whole(events)).unwrap_or(0);
        Self { day, month: day * u128::from(MONTH_DAYS), million_events }
    }
}

/// The bill of a day; lines that come to nothing are left out.
pub(crate) fn lines(plan: &Plan, average: &Average, load: &Load) -> Vec<Line> {
    let mut lines = sqs(plan, average, load);
    lines.extend(lambda(plan, load));
    lines.extend(cloudwatch(plan, average, load));
    lines.extend(storage(plan, average, load));
    lines.retain(|line| line.thousandths > 0);
    lines
}

fn sqs(plan: &Plan, average: &Average, load: &Load) -> Vec<Line> {
    let traffic = &plan.traffic;
    let line = |what, quantity, how| Line::whole("SQS", what, quantity, &SQS_REQUEST, how);
    let per = |queue: &Queue, each: f64| {
        let records = if queue.fill == 1 { "record" } else { "records" };
        format!(
            "{} invocations of {} {records} × {}",
            count(queue.invocations),
            queue.fill,
            count(each)
        )
    };
    let deliveries = count(load.deliveries);
    let [events, retries, letters] = [&load.events, &load.retries, &load.letters];
    let groups =
        load.split_sends + load.wait_sends + load.hop_sends + load.letter_sends + retries.receives
            - retries.empty
            + retries.deletes
            + letters.receives
            - letters.empty
            + letters.deletes;
    let published = format!(
        "{} events, {} a request × {} of 64 KiB",
        count(traffic.events),
        count(traffic.publish_batch),
        count(chunks(traffic.publish_batch * traffic.event_bytes))
    );
    let waits = format!(
        "{deliveries} deliveries × {} waits after a failed attempt",
        precise(average.waits)
    );
    let hops = format!(
        "{deliveries} × ({} messages − {} waits), {} a request",
        precise(average.messages),
        precise(average.waits),
        precise(load.hops_together)
    );
    let mut lines = vec![
        line("events published", load.publishes, published),
        line("events received", events.receives - events.empty, per(events, events.each.0)),
        line("events deleted", events.deletes, per(events, events.each.1)),
        line(
            "deliveries split",
            load.split_sends,
            format!("{deliveries} deliveries, 10 a request"),
        ),
        line("waits sent", load.wait_sends, waits),
        line("further hops sent", load.hop_sends, hops),
        line("waits received", retries.receives - retries.empty, per(retries, retries.each.0)),
        line("waits deleted", retries.deletes, per(retries, retries.each.1)),
        line(
            "dead letters sent",
            load.letter_sends,
            format!("{deliveries} × {}", precise(average.dead_letters)),
        ),
        line(
            "dead letters received",
            letters.receives - letters.empty,
            per(letters, letters.each.0),
        ),
        line("dead letters deleted", letters.deletes, per(letters, letters.each.1)),
    ];
    let polls = "3 queues × 5 pollers × 86,400 s ÷ 20 s, less what finds something".to_owned();
    lines.push(line(
        "polls that find nothing",
        events.empty + retries.empty + letters.empty,
        polls,
    ));
    if plan.deployment.fair_queues {
        let how = "split, sent, received and deleted above, of waits and dead letters".to_owned();
        lines.push(Line::whole("SQS", "fair queues", groups, &FAIR_REQUEST, how));
    }
    lines
}

fn lambda(plan: &Plan, load: &Load) -> Vec<Line> {
    let deployment = &plan.deployment;
    let price = if deployment.arm64 { &ARM64 } else { &X86_64 };
    let dispatched = load.events.invocations + load.retries.invocations;
    let both = format!(
        "{} for events + {} for waits",
        count(load.events.invocations),
        count(load.retries.invocations)
    );
    let seconds = |queue: &Queue, memory_mb: u32| {
        format!(
            "{} × {} ms × {memory_mb} ÷ 1,024",
            count(queue.invocations),
            count(queue.invocation_ms)
        )
    };
    let line = |what, queue: &Queue, memory_mb| {
        Line::exact("Lambda", what, queue.gb_seconds(memory_mb), price, seconds(queue, memory_mb))
    };
    let letters = format!("{} letters ÷ {}", count(load.letters.records), load.letters.fill);
    vec![
        Line::whole("Lambda", "dispatch invoked", dispatched, &INVOCATION, both),
        line("dispatch for events", &load.events, deployment.memory_mb),
        line("dispatch for waits", &load.retries, deployment.memory_mb),
        Line::whole("Lambda", "deadletter invoked", load.letters.invocations, &INVOCATION, letters),
        line("deadletter", &load.letters, LETTERS_MEMORY_MB),
    ]
}

fn cloudwatch(plan: &Plan, average: &Average, load: &Load) -> Vec<Line> {
    let deployment = &plan.deployment;
    let attempts = load.deliveries * average.attempts;
    let letters = load.deliveries * average.dead_letters;
    let invocations = load.events.invocations + load.retries.invocations + load.letters.invocations;
    let per_attempt = ATTEMPT_LINE_BYTES + BESIDE_LINE_BYTES;
    let per_end = END_LINE_BYTES + BESIDE_LINE_BYTES;
    let per_letter = STORED_LINE_BYTES + BESIDE_LINE_BYTES;
    let told = if deployment.logs_attempts {
        attempts * per_attempt + load.deliveries * per_end + letters * per_letter
    } else {
        0.0
    };
    let told_how = format!(
        "{} attempts × {} B + {} ends × {} B + {} letters × {} B",
        count(attempts),
        count(per_attempt),
        count(load.deliveries),
        count(per_end),
        count(letters),
        count(per_letter)
    );
    let metrics_bytes =
        METRICS_LINE_BYTES * if deployment.metrics_per_subscription { 3.0 } else { 2.0 };
    // A fresh record counts its match, a letter itself; a hop counts nothing.
    let with_telemetry =
        load.events.invocations + load.retries.attempting + load.letters.invocations;
    let own = invocations * PLATFORM_BYTES + with_telemetry * metrics_bytes;
    let own_how = format!(
        "{} invocations × {} B of Lambda + {} with metrics × {} B of them",
        count(invocations),
        count(PLATFORM_BYTES),
        count(with_telemetry),
        count(metrics_bytes)
    );
    let kept = (told + own) / GB * LOGS_KEPT_DAYS / f64::from(MONTH_DAYS);
    let metrics = if attempts > 0.0 { deployment.metrics() } else { 0.0 };
    let metrics_how = format!("{} combinations ÷ {MONTH_DAYS} days", count(metrics));
    vec![
        Line::exact("CloudWatch", "logs of attempts and ends", told / GB, &LOGS, told_how),
        Line::exact("CloudWatch", "logs of invocations", own / GB, &LOGS, own_how),
        Line::exact(
            "CloudWatch",
            "logs kept",
            kept,
            &LOGS_KEPT,
            "the same for 30 days, not compressed".to_owned(),
        ),
        Line::exact("CloudWatch", "metrics", metrics / f64::from(MONTH_DAYS), &METRIC, metrics_how),
    ]
}

fn storage(plan: &Plan, average: &Average, load: &Load) -> Vec<Line> {
    let (traffic, deployment) = (&plan.traffic, &plan.deployment);
    let letters = load.deliveries * average.dead_letters;
    let letter_bytes = traffic.event_bytes + BESIDE_EVENT_BYTES;
    let months = as_f64(deployment.letters_kept_ms) / as_f64(DAY_MS) / f64::from(MONTH_DAYS);
    let stored_how = format!(
        "{} letters × {} B, {} months",
        count(letters),
        count(letter_bytes),
        decimals(months)
    );
    let attempts = load.deliveries * average.attempts;
    let sent_bytes = traffic.event_bytes + REQUEST_BYTES;
    let out_how =
        format!("{} attempts × {} B, to the internet", count(attempts), count(sent_bytes));
    let puts = format!("{} letters", count(letters));
    vec![
        Line::whole("S3", "dead letters written", load.blobs, &PUT, puts),
        Line::exact(
            "S3",
            "dead letters kept",
            letters * letter_bytes / GB * months,
            &STORED,
            stored_how,
        ),
        Line::exact(
            "network",
            "requests to destinations",
            attempts * sent_bytes / GB,
            &DATA_OUT,
            out_how,
        ),
    ]
}

/// What else would ask for the same: by list prices alone, without the network, which all of them
/// pay.
pub(crate) fn others(plan: &Plan, average: &Average, waits: &[Wait]) -> Vec<Line> {
    let traffic = &plan.traffic;
    let (events, deliveries) = (traffic.events, traffic.events * traffic.fan_out);
    let attempts = deliveries * average.attempts;
    let long = deliveries * average.long_waits;
    let hops: f64 = waits
        .iter()
        .filter(|wait| wait.messages > 1)
        .map(|wait| wait.reached * f64::from(wait.messages))
        .sum();
    let events_how = || format!("{} events", count(events));
    let attempts_how =
        || format!("{} deliveries × {} attempts", count(deliveries), precise(average.attempts));
    let hops_how = format!(
        "{} deliveries × {} such waits; here they are {} messages",
        count(deliveries),
        precise(average.long_waits),
        count(deliveries * hops)
    );
    let chunked = chunks(traffic.event_bytes);
    let mut lines = vec![
        Line::whole("EventBridge", "events on a bus", events * chunked, &EVENT_BUS, events_how()),
        Line::whole(
            "EventBridge",
            "API destinations",
            attempts * chunked,
            &API_DESTINATION,
            attempts_how(),
        ),
        Line::whole("SNS", "publications", events * chunked, &SNS_PUBLISH, events_how()),
        Line::whole("SNS", "HTTP deliveries", attempts * chunked, &SNS_HTTP, attempts_how()),
        Line::whole(
            "Event Grid",
            "publications and attempts",
            (events + attempts) * chunked,
            &EVENT_GRID,
            format!("{} events + {} attempts", count(events), count(attempts)),
        ),
        Line::whole("Scheduler", "one schedule per wait over 15 min", long, &SCHEDULE, hops_how),
    ];
    lines.retain(|line| line.thousandths > 0);
    lines
}
