//! `lastmile deadletters why`: dead letters by cause.

use std::process::ExitCode;

use deadletters::cause::Cause;
use delivery::time::moment::rfc3339;
use serde_json::json;

use super::selection::SummaryArgs;
use crate::text::{self, Table};

/// The width of the table, in characters.
const WIDTH: u16 = 150;
const COLUMNS: [&str; 7] =
    ["count", "destination", "outcome", "response, or reason", "first", "newest", "example"];

pub(super) async fn run(arguments: SummaryArgs) -> anyhow::Result<ExitCode> {
    let (search, filter) = arguments.selection.search().await?;
    let causes = search.letters.causes(&filter).await?;
    search.clear();
    let table = || format!("{}\n", table(&causes));
    arguments.output.write(causes.is_empty(), || json(&causes), table)?;
    let found: u64 = causes.iter().map(|cause| cause.count).sum();
    Ok(search.finish(usize::try_from(found).unwrap_or(usize::MAX)))
}

fn json(causes: &[Cause]) -> serde_json::Value {
    let cause = |cause: &Cause| {
        json!({
            "letters": cause.count,
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
    let mut table = text::wrapped_table(&COLUMNS, WIDTH);
    for cause in causes {
        table.add_row([
            text::grouped(cause.count),
            text::line(cause.key.destination.as_deref().unwrap_or("-")),
            text::outcome(cause.key.outcome.as_deref(), cause.key.status),
            text::line(&cause.key.line),
            text::at(cause.first_ms),
            text::at(cause.last_ms),
            text::short_id(cause.example),
        ]);
    }
    table
}
