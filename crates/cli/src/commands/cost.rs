//! `lastmile cost`: what a load costs and needs, with the formula of every number.
//!
//! Separate from [`crate::cost`], which estimates: this file reads options and subscription files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgGroup, ValueEnum};
use delivery::ports::MESSAGE_MAX_BYTES;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::profile::Dialect;

use crate::cost::estimate::estimate;
use crate::cost::plan::{Deployment, Plan, Traffic, number};
use crate::cost::report;
use crate::files::{Files, print_findings, usage_error};
use crate::output::{Output, out, out_json};
use crate::stack::Stack;
use crate::store;
use crate::topics::{self, Wanted};

/// The most events of a day: quantities are exact up to here.
const EVENTS_MAX: f64 = 1e13;

/// The dialects whose defaults can be the policy.
const DIALECTS: [Dialect; 5] = [
    Dialect::Knative,
    Dialect::EventGrid,
    Dialect::EventGridNamespace,
    Dialect::EventGridKubernetes,
    Dialect::Native,
];

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("place").args(["files", "to", "stack"])))]
pub(crate) struct Arguments {
    /// Events published, evenly: 1000000, 1_000_000 or 1e6
    #[arg(long, value_name = "NUMBER", value_parser = events)]
    events: f64,
    /// The period of --events
    #[arg(long, value_enum, default_value_t = Per::Day)]
    per: Per,
    #[command(flatten)]
    traffic: Traffic,
    /// Files of subscriptions, read together; the policy and the limits are those of one of them
    #[arg(short = 'f', long = "file", num_args = 1.., value_name = "FILE", conflicts_with = "dialect")]
    files: Vec<PathBuf>,
    /// The deployment whose subscription is used: s3://bucket/prefix/ or file:///folder/
    #[arg(long, value_name = "URI", requires = "subscription", conflicts_with = "dialect")]
    to: Option<String>,
    /// The same as a deployed CloudFormation stack
    #[arg(long, value_name = "NAME", requires = "subscription", conflicts_with = "dialect")]
    stack: Option<String>,
    /// The subscription whose policy is used, if there are several
    #[arg(long, value_name = "NS/TOPIC/NAME", requires = "place")]
    subscription: Option<SubscriptionName>,
    /// Without a subscription, the default policy of this dialect
    #[arg(long, default_value = "native", value_parser = PossibleValuesParser::new(DIALECTS.map(Dialect::as_str)).try_map(dialect))]
    dialect: Dialect,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    deployment: Deployment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    Second,
    Hour,
    Day,
    /// Of 30 days
    Month,
}

impl Per {
    /// How many of them a day has.
    fn in_a_day(self) -> f64 {
        match self {
            Self::Second => 86_400.0,
            Self::Hour => 24.0,
            Self::Day => 1.0,
            Self::Month => 1.0 / 30.0,
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Some(subscription) = policy(&arguments).await? else { return Ok(ExitCode::FAILURE) };
    let events = arguments.events * arguments.per.in_a_day();
    let traffic = Traffic { events, ..arguments.traffic };
    let plan = Plan { traffic, deployment: arguments.deployment };
    if !(plan.traffic.events <= EVENTS_MAX
        && plan.traffic.events * plan.traffic.fan_out <= EVENTS_MAX)
    {
        return Err(usage_error("--events: more than 1e13 deliveries a day are not estimated"));
    }
    let Traffic { publish_batch, events_per_message, event_bytes, .. } = plan.traffic;
    let request_bytes = publish_batch * events_per_message * event_bytes;
    if request_bytes > f64::from(u32::try_from(MESSAGE_MAX_BYTES)?) {
        return Err(usage_error(
            "--publish-batch: so many messages of --events-per-message events of --event-bytes exceed the 1 MiB of one request",
        ));
    }
    let estimate = estimate(&plan, &subscription);
    match arguments.output {
        Output::Table => out(&report::text(&plan, &subscription, &estimate))?,
        Output::Json => {
            out_json(&serde_json::to_string(&report::json(&plan, &subscription, &estimate))?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The subscription whose policy is used; `None` when the files have errors.
async fn policy(arguments: &Arguments) -> anyhow::Result<Option<Arc<Subscription>>> {
    let Arguments { to, stack, subscription, .. } = arguments;
    if let (Some(name), true) = (subscription, to.is_some() || stack.is_some()) {
        let stack = Stack::optional(stack.as_deref()).await?;
        let location = store::location(to.as_deref(), stack.as_ref())?;
        let deployed = topics::read(&location, Wanted::topics_of([name])).await?;
        print_findings(&deployed.reading.findings);
        return Ok(Some(Arc::clone(deployed.subscription(name)?)));
    }
    if arguments.files.is_empty() {
        let name = "cost/cost/cost".parse().expect("three names");
        let url = "https://example.com/".parse().expect("a URL");
        return Ok(Some(Arc::new(Subscription::new(name, arguments.dialect, url))));
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
        if all.is_empty() {
            return usage_error("the files have no subscription");
        }
        let names: Vec<String> = all.iter().map(|of| format!("  {}", of.name)).collect();
        usage_error(format!("choose one with --subscription:\n{}", names.join("\n")))
    })
}

fn events(text: &str) -> Result<f64, String> {
    let events = number(text)?;
    let whole = events.fract() == 0.0 && events <= EVENTS_MAX;
    if whole { Ok(events) } else { Err(format!("{text:?} is not a whole number up to 1e13")) }
}

fn dialect(name: String) -> Result<Dialect, String> {
    let found = DIALECTS.into_iter().find(|dialect| dialect.as_str() == name);
    found.ok_or_else(|| format!("there is no dialect {name}"))
}
