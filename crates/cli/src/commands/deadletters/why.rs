//! `lastmile deadletters why`: letters by their cause.

use std::process::ExitCode;

use comfy_table::{ContentArrangement, Table, presets};
use delivery::time::moment::rfc3339;
use serde_json::json;

use super::list::SHORT_ID;
use super::meant::Summing;
use super::out;
use super::shape::Output;
use crate::letters::cause::Cause;
use crate::letters::text;

/// The width of the table, in characters.
const WIDTH: u16 = 150;

pub(super) async fn run(arguments: Summing) -> anyhow::Result<ExitCode> {
    let (letters, filter, look) = arguments.which.look().await?;
    let causes = letters.causes(&filter).await?;
    look.clear();
    match arguments.output {
        Output::Json => out(&format!("{}\n", json(&causes)))?,
        Output::Table if causes.is_empty() => {}
        Output::Table => out(&format!("{}\n", table(&causes)))?,
    }
    let found: u64 = causes.iter().map(|cause| cause.letters).sum();
    Ok(look.end(usize::try_from(found).unwrap_or(usize::MAX)))
}

fn json(causes: &[Cause]) -> serde_json::Value {
    let cause = |cause: &Cause| {
        json!({
            "letters": cause.letters,
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
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH).set_header([
        "letters",
        "destination",
        "outcome",
        "response, or why",
        "first",
        "newest",
        "example",
    ]);
    for cause in causes {
        table.add_row([
            text::grouped(cause.letters),
            text::line(cause.key.destination.as_deref().unwrap_or("-")),
            text::outcome(cause.key.outcome.as_deref(), cause.key.status),
            text::line(&cause.key.line),
            text::at(cause.first_ms),
            text::at(cause.last_ms),
            cause.example.to_string()[..SHORT_ID].to_owned(),
        ]);
    }
    table
}
