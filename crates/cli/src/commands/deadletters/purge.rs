//! `lastmile deadletters purge`: counts dead letters, asks for confirmation, and deletes them.
//!
//! Ledgers and dismissals are kept. A versioned bucket keeps the deleted versions until its
//! lifecycle rules remove them.

use std::collections::HashSet;
use std::process::ExitCode;

use adapters::storage::PAGE_MAX;
use futures::stream::TryStreamExt as _;

use super::selection::SelectionArgs;
use crate::terminal::confirm::may_proceed;
use crate::terminal::help::{CONFIRMATION, examples};
use crate::terminal::output::out;
use crate::terminal::usage::usage_error;
use crate::terminal::{progress, text};

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters purge --stack orders-prod --until 2026-10-01 --dry-run",
        "lastmile deadletters purge --stack orders-prod --state delivered --yes",
        "lastmile deadletters purge --container .lastmile/s3/dead-letters --all",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Remove all dead letters of the container, in any state. Required if there is no filter
    #[arg(long = "all", help_heading = CONFIRMATION)]
    all_letters: bool,
    /// Count the dead letters, and remove nothing
    #[arg(long, conflicts_with = "yes", help_heading = CONFIRMATION)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, help_heading = CONFIRMATION)]
    yes: bool,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match (arguments.selection.is_of_all(), arguments.all_letters) {
        (true, false) => {
            return Err(usage_error(
                "no filter is given: use a filter such as --subscription, --reason or --until, or \
                 --all to remove all dead letters of the container",
            ));
        }
        (false, true) => return Err(usage_error("--all cannot be combined with filters")),
        (true, true) | (false, false) => {}
    }
    let (search, filter) = arguments.selection.search().await?;
    let filter = if arguments.all_letters { filter.of_any_state() } else { filter };
    // Use a set, because a dead letter that is stored in two blobs counts once.
    let (mut keys, mut found) = (Vec::new(), HashSet::new());
    let mut blobs = search.letters.of_every_blob(&filter);
    while let Some(letter) = blobs.try_next().await? {
        if let Some(letter) = letter.filter(|letter| filter.matches(letter)) {
            found.insert((letter.subscription, letter.id));
            keys.push(letter.key);
        }
    }
    search.clear();
    if keys.is_empty() {
        drop(blobs);
        return search.finish_filtered(filter, 0).await;
    }
    // Unreadable blobs are kept, because the filter cannot be evaluated for them.
    let leaves_some = search.note_unreadable();
    let count = text::dead_letters(found.len() as u64);
    let space =
        "a bucket with versioning frees the space later, the bucket of a stack after 7 days";
    if !arguments.yes {
        out(&format!("{count} will be removed; {space}\n"))?;
    }
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !may_proceed(arguments.yes, "remove them?")? {
        return Ok(ExitCode::FAILURE);
    }
    let bar = progress::bar(keys.len() as u64, "blobs");
    for keys in keys.chunks(PAGE_MAX) {
        search.letters.container.delete(keys).await?;
        bar.inc(keys.len() as u64);
    }
    bar.finish_and_clear();
    search.letters.forget_cached(&keys);
    out(&format!("{count} removed; {space}\n"))?;
    Ok(if leaves_some && arguments.all_letters { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
