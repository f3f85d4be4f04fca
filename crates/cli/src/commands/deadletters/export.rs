//! `lastmile deadletters export`: whole letters, one JSON object per line.

use std::process::ExitCode;

use futures::stream::TryStreamExt as _;

use super::meant::Which;
use super::out;
use super::shape::Whole;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (letters, filter, look) = arguments.which.look().await?;
    look.clear();
    let replayed = letters.all_replayed().await?;
    let mut all = letters.all(&filter);
    let mut found = 0;
    while let Some(letter) = all.try_next().await? {
        out(&format!(
            "{}\n",
            serde_json::to_string(&Whole::new(&letter, replayed.get(&letter.id)))?
        ))?;
        found += 1;
    }
    Ok(look.end(found))
}
