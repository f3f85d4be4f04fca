//! `lastmile cost`: prints the monthly cost of a load, the capacity that it needs, and the limit
//! that it reaches first.
//!
//! Separate from [`crate::operations::cost`], which estimates: this file parses options and prints.
//! The members of the JSON are a public interface.

use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::TypedValueParser as _;
use delivery::ports::{EVENT_MAX_BYTES, MESSAGE_MAX_BYTES};
use delivery::subscription::profile::RESPONSE_TIMEOUT_MAX_MS;
use delivery::time::brief::parse_ms;
use delivery::time::duration::MINUTE_MS;
use serde_json::{Value, json};

use crate::operations::cost::beside::Beside;
use crate::operations::cost::{
    Estimate, Line, MONTH_DAYS, Need, PRICES_FROM, Plan, estimate, sum, tightest,
};
use crate::operations::queues::{SHARES, Shares, shares_of};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::numbers::{count, decimals, percent, precise};
use crate::terminal::output::{Output, out, out_json};
use crate::terminal::text::Table;
use crate::terminal::usage::usage_error;

/// The maximum number of deliveries per month. Numbers are exact up to this value.
const DELIVERIES_MAX: f64 = 1e14;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/scale.md",
        "lastmile cost --events 1e6",
        "lastmile cost --events 1e9 --per month --success 0.99 --fan-out 3",
        "lastmile cost --events 300 --per second --answer 1s --output json",
    )
)]
pub(crate) struct Arguments {
    /// Number of published events, such as 1000000, 1_000_000 or 1e6. The estimate assumes that
    /// they are evenly spread over the period
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    events: f64,
    /// Period of --events
    #[arg(long, value_enum, value_name = "PERIOD", default_value_t = Per::Day)]
    per: Per,
    /// Probability from 0 to 1 that an attempt succeeds, independent of earlier attempts
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = probability)]
    success: f64,
    /// Average number of matching subscriptions per event
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = up_to_a_million)]
    fan_out: f64,
    /// Size of an event in bytes
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=EVENT_MAX_BYTES as i64).map(f64::from))]
    event_bytes: f64,
    /// Events per message, from 1 to 1000; several events form an array
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000).map(f64::from))]
    events_per_message: f64,
    /// Messages per publish request, from 1 to 10
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10).map(f64::from))]
    publish_batch: f64,
    /// Response time of the destinations, such as 1s
    #[arg(long = "answer", value_name = "DURATION", default_value = "100ms", value_parser = answer_ms)]
    answer_ms: f64,
    /// Template parameter DispatchBatchWindow, in seconds. Above 0, a batch has up to 100 messages
    #[arg(long = "batch-window", value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=240))]
    batch_window_s: u32,
    /// Template parameter Concurrency, such as 50
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = concurrency)]
    concurrency: Shares,
    /// Template parameter LogLevel. With the value failures, a delivery that succeeds at its first
    /// attempt writes no log line
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Info)]
    log_level: LogLevel,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    Second,
    Hour,
    Day,
    /// 30 days
    Month,
}

impl Per {
    fn in_a_month(self) -> f64 {
        match self {
            Self::Second => MONTH_DAYS * 86_400.0,
            Self::Hour => MONTH_DAYS * 24.0,
            Self::Day => MONTH_DAYS,
            Self::Month => 1.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Info,
    Failures,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = Plan {
        events: arguments.events * arguments.per.in_a_month(),
        success: arguments.success,
        fan_out: arguments.fan_out,
        event_bytes: arguments.event_bytes,
        events_per_message: arguments.events_per_message,
        publish_batch: arguments.publish_batch,
        answer_ms: arguments.answer_ms,
        batch_window_s: arguments.batch_window_s,
        concurrency: arguments.concurrency,
        logs_all: arguments.log_level == LogLevel::Info,
    };
    if plan.events * plan.fan_out.max(1.0) > DELIVERIES_MAX {
        return Err(usage_error("--events: the limit is 1e14 deliveries per month"));
    }
    let request_bytes = plan.publish_batch * plan.events_per_message * plan.event_bytes;
    if request_bytes > f64::from(u32::try_from(MESSAGE_MAX_BYTES)?) {
        return Err(usage_error(
            "--publish-batch: the messages of one request exceed the limit of 1 MiB; lower \
             --publish-batch, --events-per-message or --event-bytes",
        ));
    }
    let (estimate, beside) = (estimate(&plan), Beside::new(&plan));
    match arguments.output {
        Output::Table => out(&text(&plan, &estimate, &beside))?,
        Output::Json => out_json(&json(&plan, &estimate, &beside).to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the estimate as text for people: the bill, the totals and the limits.
fn text(plan: &Plan, estimate: &Estimate, beside: &Beside) -> String {
    let average = &estimate.average;
    let (day, month, million) = totals(plan, estimate);
    format!(
        "{} events of {} bytes in {MONTH_DAYS} days, {} deliveries; probability that an attempt \
         succeeds: {}\naverage per delivery: {} attempts, {} messages for waits, {} dead \
         letters\n\n{}\n\n{MONTH_DAYS} days: ${}   per day: ${}   per million published events: \
         ${}\nprices: {PRICES_FROM}\n\n{}\n{}\na million deliveries that wait one day for a \
         destination that is down: ${}\na million dead letters, stored and kept for {MONTH_DAYS} \
         days: ${}; replayed: ${}\nup to {} deliveries can wait for destinations that are down; \
         if more wait, all are late\n",
        count(plan.events),
        count(plan.event_bytes),
        count(estimate.deliveries),
        precise(plan.success),
        precise(average.attempts),
        precise(average.messages),
        precise(average.dead_letters),
        bill(&estimate.lines),
        dollars(month),
        dollars(day),
        dollars(million),
        needed(&estimate.needs),
        first_limit(plan, &estimate.needs),
        dollars(beside.waiting_day),
        dollars(beside.letters),
        dollars(beside.replay),
        count(estimate.waiting_max),
    )
}

/// Returns the cost in dollars per day, per month and per million events.
fn totals(plan: &Plan, estimate: &Estimate) -> (f64, f64, f64) {
    let month = sum(&estimate.lines);
    let million = if plan.events > 0.0 { month / plan.events * 1e6 } else { 0.0 };
    (month / MONTH_DAYS, month, million)
}

fn bill(lines: &[Line]) -> String {
    let mut table = table(&["service", "item", "quantity", "unit price", "$", "how"], &[2, 4]);
    for line in lines {
        table.add_row([
            line.price.service.name.to_owned(),
            line.item.to_owned(),
            decimals(line.quantity),
            line.price.quoted(),
            dollars(line.usd()),
            line.how.clone(),
        ]);
    }
    table.to_string()
}

fn needed(needs: &[Need]) -> String {
    let head = ["need", "amount", "limit", "used, full batches", "how"];
    let mut table = table(&head, &[1, 2, 3]);
    for need in needs {
        table.add_row([
            need.name.to_owned(),
            decimals(need.amount),
            format!("{} ({})", count(need.limit), need.set_by),
            percent(need.share),
            need.how.clone(),
        ]);
    }
    table.to_string()
}

/// Describes the limit that is reached first, and the load at which it is reached.
fn first_limit(plan: &Plan, needs: &[Need]) -> String {
    let Some(need) = tightest(needs) else { return String::new() };
    let late = if need.share > 1.0 { ", so the queue grows" } else { "" };
    format!(
        "first limit: {}, {} of {} ({}){late}; reached at {} such events per day\n",
        need.name,
        percent(need.share),
        count(need.limit),
        need.set_by,
        count(plan.events / MONTH_DAYS / need.share)
    )
}

/// Creates a table. The columns whose indexes are in `right` are right-aligned, for numbers.
fn table(head: &[&str], right: &[usize]) -> Table {
    let mut table = crate::terminal::text::table(head);
    table.align_right(right);
    table
}

/// Formats the estimate as JSON.
fn json(plan: &Plan, estimate: &Estimate, beside: &Beside) -> Value {
    let average = &estimate.average;
    let (day, month, million) = totals(plan, estimate);
    json!({
        "events": plan.events,
        "deliveries": estimate.deliveries,
        "delivery": {
            "attempts": average.attempts,
            "messages": average.messages,
            "dead_letters": average.dead_letters,
        },
        "lines": estimate.lines.iter().map(line_json).collect::<Vec<_>>(),
        "usd": { "day": day, "month": month, "million_events": million },
        "needs": estimate.needs.iter().map(need_json).collect::<Vec<_>>(),
        "first_limit": tightest(&estimate.needs).map(|need| need.name),
        "waiting_max": estimate.waiting_max,
        "usd_of_a_million": {
            "waiting_day": beside.waiting_day,
            "dead_letters": beside.letters,
            "replay": beside.replay,
        },
        "prices": PRICES_FROM,
    })
}

fn line_json(line: &Line) -> Value {
    json!({
        "service": line.price.service.name,
        "what": line.item,
        "quantity": line.quantity,
        "unit": line.price.unit,
        "unit_price": line.price.quoted(),
        "usd": line.usd(),
        "how": line.how,
        "source": line.price.service.page,
    })
}

fn need_json(need: &Need) -> Value {
    json!({
        "what": need.name,
        "amount": need.amount,
        "limit": need.limit,
        "set_by": need.set_by,
        "share": need.share,
        "how": need.how,
    })
}

/// Formats an amount in dollars with two decimal places, or with four if it is below ten dollars.
fn dollars(usd: f64) -> String {
    let digits = if usd < 10.0 { 4 } else { 2 };
    let text = format!("{usd:.digits$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    format!("{}.{rest}", crate::terminal::text::grouped(whole))
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.replace('_', "").parse().map_err(|_| format!("{text:?} is not a number"))?;
    let valid = Some(number).filter(|number| number.is_finite() && *number >= 0.0);
    valid.ok_or_else(|| format!("{text:?} must be zero or more"))
}

fn concurrency(text: &str) -> Result<Shares, String> {
    let allowed = || SHARES.iter().map(|row| row.all.to_string()).collect::<Vec<_>>().join(", ");
    let shares = text.parse().ok().and_then(shares_of);
    shares.ok_or_else(|| format!("{text:?} is not valid: expected one of {}", allowed()))
}

fn up_to_a_million(text: &str) -> Result<f64, String> {
    let amount = number(text)?;
    if amount <= 1e6 { Ok(amount) } else { Err(format!("{text:?} is greater than one million")) }
}

fn probability(text: &str) -> Result<f64, String> {
    let probability = Some(number(text)?).filter(|probability| *probability <= 1.0);
    probability.ok_or_else(|| format!("{text:?} must be between 0 and 1, such as 0.99"))
}

fn answer_ms(text: &str) -> Result<f64, String> {
    let answer_ms = parse_ms(text).map_err(|error| error.to_string())?;
    let possible_ms = Some(answer_ms).filter(|answer_ms| *answer_ms <= RESPONSE_TIMEOUT_MAX_MS);
    let possible_ms = possible_ms.and_then(|answer_ms| u32::try_from(answer_ms).ok());
    possible_ms.map(f64::from).ok_or_else(|| {
        let minutes = RESPONSE_TIMEOUT_MAX_MS / MINUTE_MS;
        format!("{text:?} is longer than the maximum response timeout of {minutes} minutes")
    })
}
