//! `lastmile deadletters why`: dead letters by cause.

use std::process::ExitCode;

use deadletters::cause::Cause;
use delivery::deadletter::stored::FailedAt;
use delivery::time::moment::rfc3339;
use serde_json::json;

use super::selection::SummaryArgs;
use crate::text::{self, Table};

/// How many causes are shown, the most frequent ones.
const CAUSES_MAX: usize = 30;
/// The column of the destination, and the longest address that stays in one line.
const DESTINATION: usize = 1;
const ADDRESS_MAX: u16 = 50;
const COLUMNS: [&str; 7] =
    ["count", "destination", "outcome", "response, or reason", "first", "newest", "example"];

pub(super) async fn run(arguments: SummaryArgs) -> anyhow::Result<ExitCode> {
    let (search, filter) = arguments.selection.search_open(&arguments.dismissed).await?;
    let causes = search.letters.causes(&filter).await?;
    search.clear();
    let table = || format!("{}\n{}", table(&causes), rest(&causes));
    arguments.output.write(causes.is_empty(), || json(&causes), table)?;
    let found: u64 = causes.iter().map(|cause| cause.count).sum();
    Ok(search.finish(usize::try_from(found).unwrap_or(usize::MAX)))
}

fn json(causes: &[Cause]) -> serde_json::Value {
    let cause = |cause: &Cause| {
        json!({
            "key": cause.key.id(),
            "letters": cause.count,
            "failed": cause.key.at,
            "destination": cause.key.destination,
            "outcome": cause.key.outcome,
            "status": cause.key.status,
            "line": cause.key.line,
            "first_at": cause.first_ms.map(rfc3339),
            "last_at": cause.last_ms.map(rfc3339),
            "example": cause.example,
        })
    };
    causes.iter().map(cause).collect()
}

fn table(causes: &[Cause]) -> Table {
    let mut table = text::table(&COLUMNS);
    let shown = || causes.iter().take(CAUSES_MAX);
    let destination = |of: &Cause| {
        let address = text::line(of.key.destination.as_deref().unwrap_or("-"));
        match of.key.at {
            FailedAt::Destination => address,
            at @ (FailedAt::Reply | FailedAt::Sink) => format!("{address} ({})", at.as_str()),
        }
    };
    // An address in two lines cannot be searched for.
    let longest = shown().map(|cause| destination(cause).chars().count()).max().unwrap_or_default();
    let destinations = longest.try_into().unwrap_or(ADDRESS_MAX).min(ADDRESS_MAX);
    table.keep_width(DESTINATION, destinations);
    for cause in shown() {
        table.add_row([
            text::grouped(cause.count),
            destination(cause),
            text::outcome(cause.key.outcome.as_deref(), cause.key.status),
            text::line(&cause.key.line),
            text::at(cause.first_ms),
            text::at(cause.last_ms),
            text::short_id(cause.example),
        ]);
    }
    table
}

/// What the table does not show.
fn rest(causes: &[Cause]) -> String {
    let rest = causes.get(CAUSES_MAX..).unwrap_or_default();
    if rest.is_empty() {
        return String::new();
    }
    let letters = text::dead_letters(rest.iter().map(|cause| cause.count).sum());
    let causes = text::counted(rest.len() as u64, "more cause");
    format!("… and {causes} with {letters}: --output json\n")
}
