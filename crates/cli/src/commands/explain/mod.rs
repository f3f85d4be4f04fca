//! `lastmile explain`: the life of a delivery whose endpoint always responds the same way.
//!
//! Runs the production state machine (`delivery::explain`) and shows the result as a table for
//! people, as JSON for tools, or as an SVG for documents. No wait is computed here. With `--stack` or
//! `--config`, text and JSON have the state of the destination now.

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
use delivery::explain::{Always, Endpoint, Life, ProbationTerms, explain, probation};
use delivery::manifest::Reading;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::policy::{Setting, settings};
use delivery::time::duration::format_ms;
use dispatch::RESPONSE_MARGIN_MS;

use super::destinations::{Now, NowArgs};
use crate::files::{Files, usage_error};
use crate::lints::DISPATCH_TIMEOUT_MS;
use crate::output::{note, out, out_json};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions, read together
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this subscription
    #[arg(long, value_name = "NS/TOPIC/NAME")]
    subscription: Option<SubscriptionName>,
    /// The outcome of every attempt: a status, timeout, refused, reset, dns, tls or blocked
    #[arg(long, value_name = "OUTCOME", default_value = "500")]
    outcome: Always,
    /// The Retry-After header of every response: seconds or an HTTP date
    #[arg(long, value_name = "VALUE")]
    retry_after: Option<String>,
    #[command(flatten)]
    now: NowArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For tools
    Json,
    /// An SVG picture
    Svg,
}

/// What every output format shows: a subscription and the life of a delivery under it.
struct Explained {
    subscription: Arc<Subscription>,
    /// Each setting, and the origin of its value.
    policy: Vec<(Setting, String)>,
    life: Life,
    /// When its destination is put on probation, unless that is off.
    probation: Option<ProbationTerms>,
    /// What is known of its destination, where somebody asked.
    now: Option<Now>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    let Some(reading) = files.valid_reading() else { return Ok(ExitCode::FAILURE) };
    let selected = selected(&reading, arguments.subscription.as_ref())?;
    let now_ms = Machine.now_ms();
    if let Some(text) =
        arguments.retry_after.as_deref().filter(|text| retry_after_ms(text, now_ms).is_none())
    {
        return Err(usage_error(format!(
            "--retry-after {text:?} is neither a number of seconds nor an HTTP date"
        )));
    }
    let endpoint = Endpoint { always: arguments.outcome, retry_after: arguments.retry_after };
    let now = arguments.now.of(&selected).await?;
    let explained: Vec<Explained> = selected
        .into_iter()
        .zip(now)
        .map(|(subscription, now)| Explained {
            life: explain(&subscription, &endpoint, now_ms),
            policy: policy(&subscription, &reading),
            probation: probation(&subscription, &endpoint),
            subscription,
            now,
        })
        .collect();
    warn(&explained);
    match arguments.output {
        Output::Table => out(&table::write(&explained, &endpoint))?,
        Output::Json => out_json(&json::write(&explained)?)?,
        Output::Svg => out(&svg::draw(&explained, &endpoint))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The subscriptions to explain: the named one, or all.
fn selected(
    reading: &Reading,
    named: Option<&SubscriptionName>,
) -> anyhow::Result<Vec<Arc<Subscription>>> {
    let Some(name) = named else { return Ok(reading.catalogue.subscriptions().cloned().collect()) };
    let found =
        reading.catalogue.subscription(name).cloned().map(|subscription| vec![subscription]);
    found.ok_or_else(|| {
        let names: Vec<String> =
            reading.catalogue.subscriptions().map(|of| format!("  {}", of.name)).collect();
        usage_error(format!("there is no subscription {name}; there are\n{}", names.join("\n")))
    })
}

/// Every setting with its origin: the location of the field, or the profile of the default.
fn policy(subscription: &Subscription, reading: &Reading) -> Vec<(Setting, String)> {
    let origins = reading.origins.get(&subscription.name);
    let from = |setting: &Setting| {
        let stated = origins.and_then(|origins| origins.get(setting.field)).cloned();
        stated
            .unwrap_or_else(|| format!("default of the {} profile", subscription.dialect.as_str()))
    };
    settings(subscription).into_iter().map(|setting| (setting.clone(), from(&setting))).collect()
}

/// Warns about settings that a deployment with the template's defaults would override.
fn warn(explained: &[Explained]) {
    let longest_ms = DISPATCH_TIMEOUT_MS - RESPONSE_MARGIN_MS;
    for Explained { subscription, .. } in explained {
        let timeout_ms = subscription.destination.response_timeout_ms;
        if timeout_ms > longest_ms {
            note(format_args!(
                "warning: {}: a response timeout of {} is shortened to {} unless DispatchTimeout is raised",
                subscription.name,
                format_ms(timeout_ms),
                format_ms(longest_ms)
            ));
        }
    }
}
