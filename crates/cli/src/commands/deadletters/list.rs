//! `lastmile deadletters list`: prints the newest dead letters. With `--follow`, also prints new
//! ones ([`follow`]). With `--full`, prints complete dead letters ([`full`]).

use std::process::ExitCode;

use clap::ValueEnum;
use deadletters::ListedTotal;
use deadletters::facts::decided_ms;
use deadletters::state::LetterStates;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::time::brief;

use super::json::ListedJson;
use super::selection::SelectionArgs;
use super::{follow, full};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{out, out_json};
use crate::terminal::text::{self, Table};

const COLUMNS: [&str; 8] =
    ["id", "decided", "subscription", "event", "reason", "last", "attempts", "state"];

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters list",
        "lastmile deadletters list --stack orders-prod --since 2h --status 5xx",
        "lastmile deadletters list --container s3://dead-letters --limit 0 \\\n      --output ndjson",
        "lastmile deadletters list --topic shop/orders --follow --every 10s",
        "lastmile deadletters list --stack orders-prod --full > letters.ndjson",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Maximum number of dead letters to list; 0 for all
    #[arg(long, default_value_t = 50, value_name = "NUMBER", help_heading = OUTPUT)]
    limit: usize,
    /// List dead letters oldest first, one per line, then print new ones until Ctrl-C
    #[arg(long, conflicts_with = "output", help_heading = OUTPUT)]
    follow: bool,
    /// With --follow, time between two reads of the container
    #[arg(long, requires = "follow", conflicts_with = "full", default_value = "2s", value_parser = brief::parse_ms, value_name = "DURATION", help_heading = OUTPUT)]
    every: u64,
    /// Print all matching dead letters with all their data, one JSON object per line
    #[arg(long, conflicts_with_all = ["limit", "follow", "output"], help_heading = OUTPUT)]
    full: bool,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Table for people
    Table,
    /// One JSON array for tools
    Json,
    /// JSON for tools, one object per line
    Ndjson,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let limit = Some(arguments.limit).filter(|limit| *limit > 0);
    if arguments.full {
        return full::run(arguments.selection).await;
    }
    if arguments.follow {
        return follow::run(arguments.selection, limit, arguments.every).await;
    }
    let (search, filter) = arguments.selection.search().await?;
    let found = search.letters.newest(&filter, limit).await?;
    let listed = found.iter().map(|letter| ListedJson::new(letter, &filter.states));
    let is_read_by_people = arguments.output == Output::Table;
    let are_more = is_read_by_people && limit.is_some_and(|limit| found.len() >= limit);
    let total = if are_more { search.letters.listed_total(&filter).await? } else { None };
    search.clear();
    match arguments.output {
        Output::Table if found.is_empty() => {}
        Output::Table => out(&format!("{}\n", table(&found, &filter.states)))?,
        Output::Json => {
            out_json(&serde_json::to_string_pretty(&listed.collect::<Vec<_>>())?)?;
        }
        Output::Ndjson => {
            for listed in listed {
                out_json(&serde_json::to_string(&listed)?)?;
            }
        }
    }
    match (are_more, total) {
        (false, _) => search.finish_filtered(filter, found.len()).await,
        (true, Some(total)) => Ok(search.finish_with(&of_all(found.len() as u64, total))),
        (true, None) => {
            let newest = text::counted(found.len() as u64, "matching dead letter");
            Ok(search.finish_with(&format!("the newest {newest} (use --limit 0 to list all)")))
        }
    }
}

/// Formats `50 of 5,004 dead letters`. If some were removed since they were listed, the total may
/// be smaller than the number shown.
fn of_all(shown: u64, total: ListedTotal) -> String {
    let count = text::dead_letters(total.count);
    match total.is_all {
        false => format!("{} of more than {count}", text::grouped(shown)),
        true if total.count > shown => format!("{} of {count}", text::grouped(shown)),
        true => text::dead_letters(shown),
    }
}

fn table(letters: &[StoredDeadLetter], states: &LetterStates) -> Table {
    let mut table = text::table(&COLUMNS);
    for letter in letters {
        table.add_row(row(letter, states));
    }
    table
}

fn row(letter: &StoredDeadLetter, states: &LetterStates) -> [String; 8] {
    [
        text::short_id(letter.id),
        text::at(decided_ms(letter)),
        text::line(&letter.subscription.to_string()),
        text::line(letter.event_id.as_deref().unwrap_or("-")),
        text::line(&letter.reason),
        text::outcome(letter.outcome.as_deref(), letter.status),
        letter.attempts.to_string(),
        states.state(letter.id).to_string(),
    ]
}
