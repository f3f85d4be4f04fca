//! The input of an estimate: a load, and the deployment that carries it. Both are options of the
//! command line.

use adapters::metrics::Splits;
use clap::ValueEnum;
use clap::builder::TypedValueParser as _;
use delivery::explain::Always;
use delivery::ports::EVENT_MAX_BYTES;
use delivery::subscription::Subscription;
use delivery::subscription::profile::{LIFETIME_MAX_MS, RESPONSE_TIMEOUT_MAX_MS};
use delivery::time::brief::parse_ms;
use delivery::time::duration::{DAY_MS, MINUTE_MS};

use crate::queues::{SHARES, Shares, shares_of};
use crate::stack::POLLER_INVOCATIONS;

/// The published events, and how destinations behave.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Traffic {
    /// Events published in a day, evenly.
    #[arg(skip)]
    pub(crate) events: f64,
    /// The probability that an attempt succeeds while its destination is up, independent of earlier
    /// attempts
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = probability)]
    pub(crate) success: f64,
    /// The outcome of a failed attempt: a status, timeout, refused, reset, dns, tls, blocked, or a
    /// word of dead letters such as Busy
    #[arg(long = "outcome", value_name = "OUTCOME", default_value = "503")]
    pub(crate) failure: Always,
    /// How long destinations are down, from the beginning of the day
    #[arg(long = "down", value_name = "DURATION", default_value = "0s", value_parser = outage_ms)]
    pub(crate) down_ms: u64,
    /// The share of the deliveries whose destinations are down during that time
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = probability)]
    pub(crate) down_share: f64,
    /// Matching subscriptions per event, on average
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = up_to_a_million)]
    pub(crate) fan_out: f64,
    /// The size of an event
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=EVENT_MAX_BYTES as i64).map(f64::from))]
    pub(crate) event_bytes: f64,
    /// Events that a publisher puts into one message, as an array
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000).map(f64::from))]
    pub(crate) events_per_message: f64,
    /// Messages that a publisher sends in one request
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10).map(f64::from))]
    pub(crate) publish_batch: f64,
    /// The response time of destinations
    #[arg(long = "answer", value_name = "DURATION", default_value = "100ms", value_parser = answer_ms)]
    pub(crate) answer_ms: f64,
    /// The share of the deliveries that move to the slow lane, because their destination is slow
    #[arg(long = "slow", value_name = "0..1", default_value = "0", value_parser = probability)]
    pub(crate) slow_share: f64,
    /// Destinations that fail all day, on probation: adds what processes tell each other about them, but no
    /// attempts (--success, --down)
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = destinations())]
    pub(crate) failing: f64,
    /// Destinations with maxPerSecond, to which all deliveries go; one if the subscription has it
    #[arg(long, value_name = "NUMBER", value_parser = destinations())]
    pub(crate) rate_limited: Option<f64>,
    /// Destinations with maxConcurrency, to which all deliveries go; one if the subscription has it
    #[arg(long, value_name = "NUMBER", value_parser = destinations())]
    pub(crate) concurrency_limited: Option<f64>,
}

/// The template parameters that matter here, with the defaults of the template, and what is logged
/// and stored.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Deployment, with the template's defaults")]
pub(crate) struct Deployment {
    /// DispatchBatchWindow: with one, batches have up to 100 messages
    #[arg(long = "batch-window", value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=240))]
    pub(crate) batch_window_s: u32,
    /// Concurrency
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = concurrency)]
    pub(crate) concurrency: Shares,
    /// EventsPollers: event pollers that always stand by, and the most, take the place of the events' share of --concurrency
    #[arg(long, value_name = "MINIMUM-MAXIMUM", value_parser = Pollers::parse)]
    pub(crate) events_pollers: Option<Pollers>,
    /// DispatchMemory
    #[arg(long = "memory", value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(128..=10_240))]
    pub(crate) memory_mb: u32,
    /// Lambda's quota of concurrent executions; that of a new account is 10, until you ask for more
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) account_concurrency: u32,
    /// The processors that the functions are built for
    #[arg(long, value_enum, default_value_t = Architecture::Arm64)]
    pub(crate) architecture: Architecture,
    /// LogLevel; failures leaves out the line of a delivery that succeeds at its first attempt, warn those of all
    /// attempts and ends
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Topics with traffic
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).map(f64::from))]
    pub(crate) topics: f64,
    /// Subscriptions with traffic
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).map(f64::from))]
    pub(crate) subscriptions: f64,
    /// MetricsPer: topic, outcome, subscription
    #[arg(long, value_name = "LIST", value_parser = adapters::settings::splits, default_value = "", hide_default_value = true)]
    pub(crate) metrics_per: Splits,
    /// How many topics are changed a day
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = up_to_a_million)]
    pub(crate) subscription_changes: f64,
    /// NAT gateways behind which dispatch runs (SubnetIds): one for each zone
    #[arg(long = "nat", value_name = "NUMBER", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=100).map(f64::from))]
    pub(crate) nat_gateways: f64,
    /// How long dead letters are kept
    #[arg(long = "keep-letters", value_name = "DURATION", default_value = "30d", value_parser = parse_ms)]
    pub(crate) dead_letters_kept_ms: u64,
}

/// The limits of the event pollers of a queue, in Lambda's provisioned mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pollers {
    pub(crate) minimum: u32,
    pub(crate) maximum: u32,
}

impl Pollers {
    /// Reads the parameter `EventsPollers`, such as `2-10`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('-').map(|(least, most)| (least.parse(), most.parse()));
        match numbers {
            Some((Ok(minimum @ 2..=200), Ok(maximum @ 2..=2_000))) if minimum <= maximum => {
                Ok(Self { minimum, maximum })
            }
            _ => Err(format!(
                "{text:?} is not MINIMUM-MAXIMUM, such as 2-10, of 2 to 200 and up to 2000"
            )),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    Arm64,
    #[value(name = "x86_64")]
    X86_64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Info,
    Failures,
    Warn,
}

impl Traffic {
    /// Destinations with `maxPerSecond`: as many as the option has, else that of the subscription.
    pub(crate) fn rate_limited(&self, of: &Subscription) -> f64 {
        let own = f64::from(u8::from(of.destination.max_per_second.is_some()));
        self.rate_limited.unwrap_or(own)
    }

    /// Destinations with `maxConcurrency`: as many as the option has, else that of the subscription.
    pub(crate) fn concurrency_limited(&self, of: &Subscription) -> f64 {
        let own = f64::from(u8::from(of.destination.max_concurrency.is_shared));
        self.concurrency_limited.unwrap_or(own)
    }
}

impl Deployment {
    /// The most concurrent invocations for new events.
    pub(crate) fn events_at_once(&self) -> u32 {
        match self.events_pollers {
            Some(pollers) => pollers.maximum.saturating_mul(POLLER_INVOCATIONS),
            None => self.concurrency.events,
        }
    }

    /// The most messages of a batch of new events or of waits.
    pub(crate) fn batch_size(&self) -> u32 {
        if self.batch_window_s > 0 { 100 } else { 10 }
    }
}

/// This load, on this deployment.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) traffic: Traffic,
    pub(crate) deployment: Deployment,
}

/// A number of the command line.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.replace('_', "").parse().map_err(|_| format!("{text:?} is not a number"))?;
    let valid = Some(number).filter(|number| number.is_finite() && *number >= 0.0);
    valid.ok_or_else(|| format!("{text:?} is not zero or more"))
}

fn concurrency(text: &str) -> Result<Shares, String> {
    let allowed = || SHARES.iter().map(|row| row.all.to_string()).collect::<Vec<_>>().join(", ");
    let shares = text.parse().ok().and_then(shares_of);
    shares.ok_or_else(|| format!("{text:?} is none of {}", allowed()))
}

fn destinations() -> impl clap::builder::TypedValueParser<Value = f64> {
    clap::value_parser!(u32).range(0..=100_000).map(f64::from)
}

fn up_to_a_million(text: &str) -> Result<f64, String> {
    let amount = number(text)?;
    if amount <= 1e6 { Ok(amount) } else { Err(format!("{text:?} is more than a million")) }
}

fn probability(text: &str) -> Result<f64, String> {
    let probability = Some(number(text)?).filter(|probability| *probability <= 1.0);
    probability.ok_or_else(|| format!("{text:?} is not between 0 and 1, such as 0.99"))
}

fn answer_ms(text: &str) -> Result<f64, String> {
    let answer_ms = parse_ms(text).map_err(|error| error.to_string())?;
    let possible_ms = Some(answer_ms).filter(|answer_ms| *answer_ms <= RESPONSE_TIMEOUT_MAX_MS);
    let possible_ms = possible_ms.and_then(|answer_ms| u32::try_from(answer_ms).ok());
    possible_ms.map(f64::from).ok_or_else(|| {
        let minutes = RESPONSE_TIMEOUT_MAX_MS / MINUTE_MS;
        format!("{text:?} is more than the {minutes} minutes that a response can take")
    })
}

fn outage_ms(text: &str) -> Result<u64, String> {
    let down_ms = parse_ms(text).map_err(|error| error.to_string())?;
    let days = LIFETIME_MAX_MS / DAY_MS;
    let possible_ms = Some(down_ms).filter(|down_ms| *down_ms <= LIFETIME_MAX_MS);
    possible_ms
        .ok_or_else(|| format!("{text:?} is more than the {days} days that a delivery can last"))
}
