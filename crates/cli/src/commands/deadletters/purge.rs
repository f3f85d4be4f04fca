//! `lastmile deadletters purge`: removes letters, when told twice.
//!
//! A blob goes when every letter in it is meant. Ledgers stay. In a versioned bucket the versions
//! stay as well.

use std::collections::HashSet;
use std::process::ExitCode;

use futures::stream::TryStreamExt as _;

use super::meant::Which;
use super::out;
use crate::letters::text;
use crate::progress;

/// Blobs that are removed at a time: what S3 takes in one request.
const AT_ONCE: usize = 1_000;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Remove them; without it they are only counted
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (letters, filter, look) = arguments.which.look().await?;
    let (mut keys, mut found, mut shared) = (Vec::new(), HashSet::new(), 0_u64);
    let mut blobs = letters.whole_blobs(&filter);
    while let Some((key, letters)) = blobs.try_next().await? {
        let meant = letters.iter().filter(|letter| filter.takes(letter));
        let meant: Vec<_> = meant.map(|letter| letter.id).collect();
        if meant.len() < letters.len() {
            shared += meant.len() as u64;
        } else if !meant.is_empty() {
            found.extend(meant);
            keys.push(key);
        }
    }
    look.clear();
    if shared > 0 {
        eprintln!(
            "{} stay: they share their blobs with others that are not meant",
            text::letters(shared)
        );
    }
    if keys.is_empty() {
        return Ok(look.end(0));
    }
    let (count, blobs) = (text::letters(found.len() as u64), text::grouped(keys.len() as u64));
    let remain = "versions that the bucket keeps remain";
    if !arguments.yes {
        out(&format!(
            "{count} in {blobs} blobs would be removed; --yes removes them, and {remain}\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let bar = progress::bar(keys.len() as u64, "blobs");
    for keys in keys.chunks(AT_ONCE) {
        letters.place().delete(keys).await?;
        bar.inc(keys.len() as u64);
    }
    bar.finish_and_clear();
    out(&format!("{count} in {blobs} blobs removed; {remain}\n"))?;
    Ok(ExitCode::SUCCESS)
}
