//! `lastmile deadletters list`: the newest letters.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{Table, presets};
use delivery::deadletter::stored::StoredDeadLetter;
use uuid::Uuid;

use super::meant::Which;
use super::out;
use super::shape::Listed;
use crate::letters::filter::decided_ms;
use crate::letters::ledger::{Replayed, State};
use crate::letters::text;

/// As much of an id as names a letter, mostly; every verb takes it.
pub(super) const SHORT_ID: usize = 8;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// At most so many; 0 means all
    #[arg(long, default_value_t = 50, value_name = "NUMBER")]
    limit: usize,
    /// How to show them
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// One array, for tools
    Json,
    /// One object per line, for tools
    Ndjson,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (letters, filter, look) = arguments.which.look().await?;
    let limit = Some(arguments.limit).filter(|limit| *limit > 0);
    let found = letters.newest(&filter, limit).await?;
    let ids: Vec<Uuid> = found.iter().map(|letter| letter.id).collect();
    let replayed = letters.replayed(&ids).await?;
    let listed = found.iter().map(|letter| Listed::new(letter, replayed.get(&letter.id)));
    look.clear();
    match arguments.output {
        Output::Table if found.is_empty() => {}
        Output::Table => out(&format!("{}\n", table(&found, &replayed)))?,
        Output::Json => {
            out(&format!("{}\n", serde_json::to_string_pretty(&listed.collect::<Vec<_>>())?))?
        }
        Output::Ndjson => {
            for listed in listed {
                out(&format!("{}\n", serde_json::to_string(&listed)?))?;
            }
        }
    }
    Ok(look.end(found.len()))
}

pub(super) fn table(letters: &[StoredDeadLetter], replayed: &HashMap<Uuid, Replayed>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header([
        "letter",
        "ended",
        "subscription",
        "event",
        "reason",
        "last",
        "attempts",
        "replayed",
    ]);
    for letter in letters {
        table.add_row(row(letter, replayed.get(&letter.id)));
    }
    table
}

fn row(letter: &StoredDeadLetter, replayed: Option<&Replayed>) -> [String; 8] {
    let replayed = replayed.map(|of| match of.line.state {
        State::Intent => format!("{} ?", of.job),
        State::Sent | State::Refused | State::Skipped | State::Gone | State::Unfit => {
            of.job.clone()
        }
    });
    [
        letter.id.to_string()[..SHORT_ID].to_owned(),
        text::at(decided_ms(letter)),
        text::line(&letter.subscription.to_string()),
        text::line(letter.event_id.as_deref().unwrap_or("-")),
        text::line(&letter.reason),
        text::outcome(letter.outcome.as_deref(), letter.status),
        letter.attempts.to_string(),
        replayed.unwrap_or_else(|| "-".to_owned()),
    ]
}
