//! `lastmile deadletters why`: groups dead letters by cause, or by the field of `--by` ([`sums`]).

use std::process::ExitCode;

use deadletters::cause::Cause;
use delivery::time::moment::rfc3339;
use serde_json::json;

use super::causes_text::report;
use super::selection::SelectionArgs;
use super::sums::{self, By};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::Output;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters why --stack orders-prod --since 1d",
        "lastmile deadletters why --destination 'https://billing.example.com/*'",
        "lastmile deadletters why --topic shop/orders --by subscription,hour",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Count by these properties instead of by cause, and print bars
    #[arg(long, value_name = "PROPERTY,…", value_delimiter = ',', help_heading = OUTPUT)]
    by: Vec<By>,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = arguments.selection.place_options();
    let (search, filter) = arguments.selection.search().await?;
    if !arguments.by.is_empty() {
        return sums::run(&search, filter, &arguments.by, arguments.output).await;
    }
    let causes = search.letters.causes(&filter).await?;
    search.clear();
    let table = || report(&causes, crate::terminal::text::width(), &place);
    arguments.output.write(causes.is_empty(), || json(&causes), table)?;
    let found: u64 = causes.iter().map(|cause| cause.count).sum();
    search.finish_filtered(filter, usize::try_from(found).unwrap_or(usize::MAX)).await
}

fn json(causes: &[Cause]) -> serde_json::Value {
    let cause = |cause: &Cause| {
        json!({
            "id": cause.id,
            "title": cause.title,
            "outcome": cause.outcome,
            "status": cause.status,
            "failed": cause.at,
            "count": cause.count,
            "share": cause.share,
            "subscriptions": cause.subscriptions,
            "first_at": cause.first_ms.map(rfc3339),
            "last_at": cause.last_ms.map(rfc3339),
            "oldest_event_at": cause.oldest_event_ms.map(rfc3339),
            "trend": cause.trend,
            "reopened": cause.is_reopened,
            "example": cause.example,
        })
    };
    causes.iter().map(cause).collect()
}
