//! `lastmile deadletters tail`: dead letters as they are stored, until Ctrl-C.
//!
//! A dead letter is stored under the hour of its decision, so only the last hours are listed again and again. One that storage
//! refused for longer than that is found by `list`.

use std::collections::HashSet;
use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use deadletters::facts::decided_ms;
use deadletters::filter::Filter;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::time::brief;
use delivery::time::duration::{self, HOUR_MS};

use super::selection::SelectionArgs;
use crate::interrupt;
use crate::output::{note, out};
use crate::text;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: SelectionArgs,
    /// How many older ones to show first
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    limit: usize,
    /// How often to list the container
    #[arg(long, help_heading = "Output", default_value = "2s", value_parser = brief::parse_ms, value_name = "DURATION")]
    every: u64,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (letters, filter) = arguments.selection.open().await?;
    let older = letters.newest(&filter, Some(arguments.limit.max(1))).await?;
    older.iter().take(arguments.limit).rev().try_for_each(show)?;
    let mut seen = letters.keys(&recent(&filter)).await?;
    note(format_args!(
        "listing {} every {}, until Ctrl-C",
        letters.container.name,
        duration::format_ms(arguments.every)
    ));
    tokio::select! {
        polled = poll(&letters, &filter, &mut seen, arguments.every) => polled?,
        interrupted = interrupt::requested() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn poll(
    letters: &DeadLetters,
    filter: &Filter,
    seen: &mut HashSet<String>,
    every_ms: u64,
) -> anyhow::Result<()> {
    loop {
        Machine.sleep(every_ms).await;
        let new = letters.unseen(&recent(filter), seen).await?;
        new.iter().filter(|letter| filter.matches(letter)).try_for_each(show)?;
    }
}

/// Restricts the folders to the last hours; the filter itself decides what in them matches.
fn recent(filter: &Filter) -> Filter {
    let since_ms = Machine.now_ms().saturating_sub(HOUR_MS);
    // `None` is less than any time, so the later limit holds.
    Filter { since_ms: filter.since_ms.max(Some(since_ms)), ..filter.clone() }
}

fn show(letter: &StoredDeadLetter) -> anyhow::Result<()> {
    let last = text::outcome(letter.outcome.as_deref(), letter.status);
    out(&format!(
        "{}  {}  {}  event {}  {}  {last} after {}\n",
        text::at(decided_ms(letter)),
        text::short_id(letter.id),
        text::line(&letter.subscription.to_string()),
        text::line(letter.event_id.as_deref().unwrap_or("-")),
        text::line(&letter.reason),
        text::counted(letter.attempts.into(), "attempt")
    ))
}
