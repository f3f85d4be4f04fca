//! `lastmile deadletters tail`: letters as they are stored, until Ctrl-C.
//!
//! A letter is stored under the hour its last attempt was due, so the last hours are looked at
//! again and again. One that storage refused for longer than that is found by `list`.

use std::collections::HashSet;
use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::time::duration;
use delivery::time::duration::HOUR_MS;

use super::list::SHORT_ID;
use super::meant::Which;
use super::out;
use crate::letters::filter::{Filter, decided_ms};
use crate::letters::{Letters, text};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// How many older ones to show first
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    limit: usize,
    /// How often to look
    #[arg(long, default_value = "PT2S", value_parser = duration::parse_ms, value_name = "DURATION")]
    every: u64,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (letters, filter) = arguments.which.open().await?;
    let older = letters.newest(&filter, Some(arguments.limit.max(1))).await?;
    older.iter().take(arguments.limit).rev().try_for_each(show)?;
    let mut seen = HashSet::new();
    letters.unseen(&recent(&filter), &mut seen, false).await?;
    eprintln!(
        "looking at {} every {}, until Ctrl-C",
        letters.place().name,
        duration::format_ms(arguments.every)
    );
    tokio::select! {
        looked = look(&letters, &filter, &mut seen, arguments.every) => looked?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn look(
    letters: &Letters,
    filter: &Filter,
    seen: &mut HashSet<String>,
    every_ms: u64,
) -> anyhow::Result<()> {
    loop {
        Machine.sleep(every_ms).await;
        let new = letters.unseen(&recent(filter), seen, true).await?;
        new.iter().filter(|letter| filter.takes(letter)).try_for_each(show)?;
    }
}

/// The folders of the last hours alone; what is in them is judged by the filter itself.
fn recent(filter: &Filter) -> Filter {
    let since_ms = Machine.now_ms().saturating_sub(HOUR_MS);
    Filter { since_ms: filter.since_ms.max(Some(since_ms)), ..filter.clone() }
}

fn show(letter: &StoredDeadLetter) -> anyhow::Result<()> {
    let last = text::outcome(letter.outcome.as_deref(), letter.status);
    out(&format!(
        "{}  {}  {}  event {}  {}  {last} after {} attempts\n",
        text::at(decided_ms(letter)),
        &letter.id.to_string()[..SHORT_ID],
        text::line(&letter.subscription.to_string()),
        text::line(letter.event_id.as_deref().unwrap_or("-")),
        text::line(&letter.reason),
        letter.attempts
    ))
}
