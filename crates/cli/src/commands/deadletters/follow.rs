//! `lastmile deadletters list --follow`: prints dead letters as they are stored, until Ctrl-C.
//!
//! A dead letter is stored under the hour in which its delivery ended, so only the last hours are
//! listed repeatedly. If storage refused a dead letter for longer than these hours, only `list`
//! without `--follow` finds it.

use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::facts::decided_ms;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::time::duration::{self, HOUR_MS};

use super::new_letters::NewLetters;
use super::selection::SelectionArgs;
use crate::terminal::interrupt;
use crate::terminal::output::{note, out};
use crate::terminal::text;

/// Prints the existing dead letters, up to the limit, and then each new one.
pub(super) async fn run(
    selection: SelectionArgs,
    limit: Option<usize>,
    every_ms: u64,
) -> anyhow::Result<ExitCode> {
    let (letters, filter) = selection.open().await?;
    // List the keys first, so that blobs stored during the read below count as new.
    let mut new = NewLetters::after_now(letters.clone(), filter.clone(), Some(HOUR_MS)).await?;
    let shown = letters.newest(&filter, limit).await?;
    shown.iter().rev().try_for_each(show)?;
    new.leave_out(&shown);
    note(format_args!(
        "listing {} every {}, until Ctrl-C",
        letters.container.name,
        duration::format_ms(every_ms)
    ));
    tokio::select! {
        polled = poll(new, every_ms) => polled?,
        interrupted = interrupt::requested() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn poll(mut new: NewLetters, every_ms: u64) -> anyhow::Result<()> {
    loop {
        Machine.sleep(every_ms).await;
        new.next().await?.iter().try_for_each(show)?;
    }
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
