//! `lastmile deadletters purge`: removes dead letters, after counting them and asking.
//!
//! A blob is removed when every dead letter in it matches. Ledgers and dismissals are kept. A versioned bucket
//! keeps the versions until its lifecycle rules remove them.

use std::collections::HashSet;
use std::process::ExitCode;

use adapters::storage::PAGE_MAX;
use futures::stream::TryStreamExt as _;

use super::selection::SelectionArgs;
use crate::terminal::confirm::may_proceed;
use crate::terminal::output::{note, out};
use crate::terminal::progress;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Remove all dead letters of the container, in whatever state: without a filter this is required
    #[arg(long = "all")]
    all_letters: bool,
    /// Count them, and remove nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match (arguments.selection.is_of_all(), arguments.all_letters) {
        (true, false) => {
            return Err(usage_error(
                "no filter is given: --all removes all dead letters of the container, and a filter such as \
                 --subscription, --reason or --until some of them",
            ));
        }
        (false, true) => return Err(usage_error("--all contradicts the filters")),
        (true, true) | (false, false) => {}
    }
    let (search, filter) = arguments.selection.search().await?;
    let filter = if arguments.all_letters { filter.of_any_state() } else { filter };
    let (mut keys, mut found, mut kept) = (Vec::new(), HashSet::new(), 0_u64);
    let mut blobs = search.letters.whole_blobs(&filter);
    while let Some((key, letters)) = blobs.try_next().await? {
        let matching = letters.iter().filter(|letter| filter.matches(letter));
        let matching: Vec<_> = matching.map(|letter| letter.id).collect();
        // A blob is removed whole or not at all, because dead letters are never rewritten.
        if matching.len() < letters.len() {
            kept += matching.len() as u64;
        } else if !matching.is_empty() {
            // A set: a dead letter in two blobs counts once.
            found.extend(matching);
            keys.push(key);
        }
    }
    search.clear();
    if kept > 0 {
        note(format_args!(
            "{} are kept: there are others in the same blobs that do not match",
            text::dead_letters(kept)
        ));
    }
    if keys.is_empty() {
        drop(blobs);
        return search.finish_filtered(filter, 0).await;
    }
    let (count, blobs) =
        (text::dead_letters(found.len() as u64), text::counted(keys.len() as u64, "blob"));
    let space = "a bucket that keeps versions frees the space later; the bucket of a stack does after 7 days";
    if !arguments.yes {
        out(&format!("{count} in {blobs} would be removed; {space}\n"))?;
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
    out(&format!("{count} in {blobs} removed; {space}\n"))?;
    Ok(ExitCode::SUCCESS)
}
