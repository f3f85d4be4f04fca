//! `lastmile deadletters purge`: removes dead letters, once `--yes` confirms it.
//!
//! A blob is removed when every dead letter in it matches. Ledgers are kept. In a versioned bucket
//! the versions are kept as well.

use std::collections::HashSet;
use std::process::ExitCode;

use adapters::storage::PAGE_MAX;
use futures::stream::TryStreamExt as _;

use super::selection::SelectionArgs;
use crate::output::{note, out};
use crate::{progress, text};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Remove them; without it they are only counted
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (search, filter) = arguments.selection.search().await?;
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
        return Ok(search.finish(0));
    }
    let (count, blobs) = (text::dead_letters(found.len() as u64), text::grouped(keys.len() as u64));
    let versions = "versions that the bucket keeps remain";
    if !arguments.yes {
        out(&format!(
            "{count} in {blobs} blobs would be removed; --yes removes them, and {versions}\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let bar = progress::bar(keys.len() as u64, "blobs");
    for keys in keys.chunks(PAGE_MAX) {
        search.letters.container.delete(keys).await?;
        bar.inc(keys.len() as u64);
    }
    bar.finish_and_clear();
    out(&format!("{count} in {blobs} blobs removed; {versions}\n"))?;
    Ok(ExitCode::SUCCESS)
}
