//! `lastmile explain`: the life of a delivery whose endpoint always answers the same.
//!
//! It asks the functions of production (`delivery::explain`) and shows what they say: as a table
//! for people, as JSON for tools, as a picture for documents. No wait is computed here.

mod json;
mod svg;
mod table;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::machine::Machine;
use clap::ValueEnum;
use delivery::delivery::outcome::retry_after_ms;
use delivery::explain::{Always, Endpoint, Life, explain};
use delivery::manifest::Reading;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::policy::{Setting, settings};
use delivery::time::duration::format_ms;

use crate::files::{Files, have_errors, tell, usage};
use crate::remarks::{DISPATCH_TIMEOUT_MS, TIMEOUT_MARGIN_MS};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions, read together
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this subscription
    #[arg(long, value_name = "NS/TOPIC/NAME")]
    subscription: Option<SubscriptionName>,
    /// What its endpoint always does: a status, timeout, refused, reset, dns, tls or blocked
    #[arg(long, value_name = "OUTCOME", default_value = "500")]
    outcome: Always,
    /// The Retry-After that its answers carry: seconds or an HTTP date
    #[arg(long, value_name = "VALUE")]
    retry_after: Option<String>,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For tools
    Json,
    /// A picture
    Svg,
}

/// A subscription and the life of a delivery under it.
struct Explained {
    subscription: Arc<Subscription>,
    /// Each setting, and where its value came from.
    policy: Vec<(Setting, String)>,
    life: Life,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = match Files::read(&arguments.files) {
        Ok(files) => files,
        Err(problem) => return Ok(usage(&problem)),
    };
    let reading = files.reading();
    tell(&reading.findings);
    if have_errors(&reading.findings) {
        return Ok(ExitCode::FAILURE);
    }
    let meant = match meant(&reading, arguments.subscription.as_ref()) {
        Ok(meant) => meant,
        Err(problem) => return Ok(usage(&problem)),
    };
    let now_ms = Machine.now_ms();
    if let Some(text) =
        arguments.retry_after.as_deref().filter(|text| retry_after_ms(text, now_ms).is_none())
    {
        return Ok(usage(&format!(
            "--retry-after {text:?} is neither a number of seconds nor an HTTP date"
        )));
    }
    let endpoint = Endpoint { always: arguments.outcome, retry_after: arguments.retry_after };
    let explained: Vec<Explained> = meant
        .into_iter()
        .map(|subscription| Explained {
            life: explain(&subscription, &endpoint, now_ms),
            policy: policy(&subscription, &reading),
            subscription,
        })
        .collect();
    warn(&explained);
    match arguments.output {
        Output::Table => print!("{}", table::write(&explained, &endpoint)),
        Output::Json => println!("{}", json::write(&explained)?),
        Output::Svg => print!("{}", svg::draw(&explained, &endpoint)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The subscriptions to explain: the one that was named, or all.
fn meant(
    reading: &Reading,
    named: Option<&SubscriptionName>,
) -> Result<Vec<Arc<Subscription>>, String> {
    let Some(name) = named else { return Ok(reading.catalogue.subscriptions().cloned().collect()) };
    let found =
        reading.catalogue.subscription(name).cloned().map(|subscription| vec![subscription]);
    found.ok_or_else(|| {
        let names: Vec<String> =
            reading.catalogue.subscriptions().map(|of| format!("  {}", of.name)).collect();
        format!("there is no subscription {name}; there are\n{}", names.join("\n"))
    })
}

/// Every setting with its origin: the place that states it, or the profile whose default it is.
fn policy(subscription: &Subscription, reading: &Reading) -> Vec<(Setting, String)> {
    let origins = reading.origins.get(&subscription.name);
    let from = |setting: &Setting| {
        let stated = origins.and_then(|origins| origins.get(setting.field)).cloned();
        stated
            .unwrap_or_else(|| format!("default of the {} profile", subscription.dialect.as_str()))
    };
    settings(subscription).into_iter().map(|setting| (setting.clone(), from(&setting))).collect()
}

/// Says what a deployment with the template's defaults would do otherwise.
fn warn(explained: &[Explained]) {
    let most_ms = DISPATCH_TIMEOUT_MS - TIMEOUT_MARGIN_MS;
    for Explained { subscription, .. } in explained {
        let timeout_ms = subscription.destination.response_timeout_ms;
        if timeout_ms > most_ms {
            eprintln!(
                "warning: {}: a response timeout of {} is cut to {} unless DispatchTimeout is raised",
                subscription.name,
                format_ms(timeout_ms),
                format_ms(most_ms)
            );
        }
    }
}
