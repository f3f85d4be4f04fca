//! `lastmile cost`: what a load costs and needs, with the formula of every number.
//!
//! Separate from [`crate::cost`], which estimates: this file reads options and subscription files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use delivery::explain::Always;
use delivery::ports::MESSAGE_MAX_BYTES;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::profile::{Dialect, LIFETIME_MAX_MS};
use delivery::time::duration::{DAY_MS, parse_ms};

use crate::cost::estimate::estimate;
use crate::cost::plan::{Deployment, Plan, Traffic};
use crate::cost::report;
use crate::files::{Files, usage_error};
use crate::output::Output;

/// The most events of a day: quantities are exact up to here.
const EVENTS_MAX: f64 = 1e13;

/// The largest event: its message also holds the state of its delivery.
const EVENT_MAX_BYTES: i64 = MESSAGE_MAX_BYTES as i64 - 1_024;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Events published, evenly: 1000000, 1_000_000 or 1e6
    #[arg(long, value_name = "NUMBER", value_parser = events)]
    events: f64,
    /// The period of --events
    #[arg(long, value_enum, default_value_t = Per::Day)]
    per: Per,
    /// The probability that an attempt succeeds while its destination is up, independent of earlier
    /// attempts
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = probability)]
    success: f64,
    /// The outcome of a failed attempt: a status, timeout, refused, reset, dns, tls or blocked
    #[arg(long, value_name = "OUTCOME", default_value = "503")]
    outcome: Always,
    /// How long destinations are down, from the beginning of the day
    #[arg(long, value_name = "DURATION", default_value = "PT0S", value_parser = outage_duration)]
    down: u64,
    /// The share of the deliveries whose destinations are down during that time
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = probability)]
    down_share: f64,
    /// Matching subscriptions per event, on average
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = up_to_a_million)]
    fan_out: f64,
    /// The size of an event
    #[arg(long, value_name = "BYTES", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=EVENT_MAX_BYTES))]
    event_bytes: u32,
    /// Events that a publisher sends in one request
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    publish_batch: u32,
    /// The response time of destinations
    #[arg(long, value_name = "DURATION", default_value = "PT0.1S", value_parser = duration)]
    answer: u64,
    /// Files of subscriptions, read together; the policy is that of one of them
    #[arg(short = 'f', long = "file", num_args = 1.., value_name = "FILE", conflicts_with = "dialect")]
    files: Vec<PathBuf>,
    /// The subscription whose policy is used, if the files have several
    #[arg(long, value_name = "NS/TOPIC/NAME", requires = "files")]
    subscription: Option<SubscriptionName>,
    /// Without --file, the default policy of this dialect
    #[arg(long, value_enum, default_value_t = DialectDefaults::Native)]
    dialect: DialectDefaults,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    template: Template,
}

/// Template parameters, with the defaults of the template.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Deployment, with the template's defaults")]
struct Template {
    /// DispatchBatchSize
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch_size: u32,
    /// DispatchBatchWindow
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=300))]
    batch_window: u32,
    /// EventsConcurrency
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    events_concurrency: u32,
    /// RetryConcurrency
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    retry_concurrency: u32,
    /// MemorySize of dispatch
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(128..=10_240))]
    memory: u32,
    /// Architecture
    #[arg(long, value_enum, default_value_t = Architecture::Arm64)]
    architecture: Architecture,
    /// FairQueues
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    fair_queues: bool,
    /// LogLevel; warn leaves out the log lines of attempts and ends
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    log_level: LogLevel,
    /// Topics with traffic
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    topics: u32,
    /// Subscriptions with traffic
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    subscriptions: u32,
    /// MetricsPerSubscription
    #[arg(long)]
    metrics_per_subscription: bool,
    /// How long dead letters are kept
    #[arg(long, value_name = "DURATION", default_value = "P30D", value_parser = duration)]
    keep_letters: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    Second,
    Hour,
    Day,
    /// Of 30 days
    Month,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Architecture {
    Arm64,
    #[value(name = "x86_64")]
    X86_64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Info,
    Warn,
}

/// The dialect whose defaults are the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DialectDefaults {
    Knative,
    #[value(name = "eventgrid")]
    EventGrid,
    #[value(name = "eventgrid-namespace")]
    EventGridNamespace,
    #[value(name = "eventgrid-kubernetes")]
    EventGridKubernetes,
    Native,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Some(subscription) = policy(arguments)? else { return Ok(ExitCode::FAILURE) };
    let plan = Plan { traffic: arguments.traffic(), deployment: arguments.template.deployment() };
    if !(plan.traffic.events <= EVENTS_MAX
        && plan.traffic.events * plan.traffic.fan_out <= EVENTS_MAX)
    {
        return Err(usage_error("--events: more than 1e13 deliveries a day are not estimated"));
    }
    if plan.traffic.publish_batch * plan.traffic.event_bytes
        > f64::from(u32::try_from(MESSAGE_MAX_BYTES)?)
    {
        return Err(usage_error(
            "--publish-batch: this many events of --event-bytes exceed the 1 MiB of one request",
        ));
    }
    let estimate = estimate(&plan, &subscription);
    match arguments.output {
        Output::Table => print!("{}", report::text(&plan, &subscription, &estimate)),
        Output::Json => {
            println!("{}", serde_json::to_string(&report::json(&plan, &subscription, &estimate))?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The subscription whose policy is used; `None` when the files have errors.
fn policy(arguments: &Arguments) -> anyhow::Result<Option<Arc<Subscription>>> {
    if arguments.files.is_empty() {
        return Ok(Some(Arc::new(arguments.dialect.subscription())));
    }
    let files = Files::read(&arguments.files)?;
    let Some(reading) = files.valid_reading() else { return Ok(None) };
    let all: Vec<&Arc<Subscription>> = reading.catalogue.subscriptions().collect();
    let found = match (&arguments.subscription, all.as_slice()) {
        (Some(name), _) => reading.catalogue.subscription(name),
        (None, [one]) => Some(*one),
        (None, _) => None,
    };
    found.cloned().map(Some).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|of| format!("  {}", of.name)).collect();
        usage_error(format!("choose one with --subscription:\n{}", names.join("\n")))
    })
}

impl Arguments {
    fn traffic(&self) -> Traffic {
        let per_day = match self.per {
            Per::Second => 86_400.0,
            Per::Hour => 24.0,
            Per::Day => 1.0,
            Per::Month => 1.0 / 30.0,
        };
        Traffic {
            events: self.events * per_day,
            fan_out: self.fan_out,
            success: self.success,
            failure: self.outcome,
            down_ms: self.down,
            down_share: self.down_share,
            event_bytes: f64::from(self.event_bytes),
            publish_batch: f64::from(self.publish_batch),
            answer_ms: f64::from(u32::try_from(self.answer).unwrap_or(u32::MAX)),
        }
    }
}

impl Template {
    fn deployment(&self) -> Deployment {
        Deployment {
            batch_size: self.batch_size,
            batch_window_s: self.batch_window,
            events_concurrency: self.events_concurrency,
            retry_concurrency: self.retry_concurrency,
            memory_mb: self.memory,
            arm64: self.architecture == Architecture::Arm64,
            fair_queues: self.fair_queues,
            logs_attempts: self.log_level == LogLevel::Info,
            topics: f64::from(self.topics),
            subscriptions: f64::from(self.subscriptions),
            metrics_per_subscription: self.metrics_per_subscription,
            dead_letters_kept_ms: self.keep_letters,
        }
    }
}

impl DialectDefaults {
    /// A subscription with the defaults of its dialect.
    fn subscription(self) -> Subscription {
        let dialect = match self {
            Self::Knative => Dialect::Knative,
            Self::EventGrid => Dialect::EventGrid,
            Self::EventGridNamespace => Dialect::EventGridNamespace,
            Self::EventGridKubernetes => Dialect::EventGridKubernetes,
            Self::Native => Dialect::Native,
        };
        let name = "cost/cost/cost".parse().expect("three names");
        Subscription::new(name, dialect, "https://example.com/".parse().expect("a URL"))
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.replace('_', "").parse().map_err(|_| format!("{text:?} is not a number"))?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(format!("{text:?} is not zero or more"))
    }
}

fn events(text: &str) -> Result<f64, String> {
    let events = number(text)?;
    let whole = events.fract() == 0.0 && events <= EVENTS_MAX;
    if whole { Ok(events) } else { Err(format!("{text:?} is not a whole number up to 1e13")) }
}

fn up_to_a_million(text: &str) -> Result<f64, String> {
    let amount = number(text)?;
    if amount <= 1e6 { Ok(amount) } else { Err(format!("{text:?} is more than a million")) }
}

fn probability(text: &str) -> Result<f64, String> {
    let probability = number(text)?;
    if probability <= 1.0 {
        Ok(probability)
    } else {
        Err(format!("{text:?} is not between 0 and 1, such as 0.99"))
    }
}

fn duration(text: &str) -> Result<u64, String> {
    parse_ms(text).map_err(|error| error.to_string())
}

fn outage_duration(text: &str) -> Result<u64, String> {
    let most_ms = LIFETIME_MAX_MS;
    let down_ms = duration(text)?;
    let days = most_ms / DAY_MS;
    if down_ms <= most_ms {
        Ok(down_ms)
    } else {
        Err(format!("{text:?} is more than the {days} days that a delivery can last"))
    }
}
