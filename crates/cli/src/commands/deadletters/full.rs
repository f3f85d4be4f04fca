//! `lastmile deadletters list --full`: prints complete dead letters, one JSON object per line.

use std::process::ExitCode;

use futures::stream::TryStreamExt as _;

use super::json::{DeadLetterJson, Links};
use super::selection::SelectionArgs;
use crate::terminal::output::out_json;

pub(super) async fn run(selection: SelectionArgs) -> anyhow::Result<ExitCode> {
    let (search, filter) = selection.search().await?;
    search.clear();
    let mut all = search.letters.all(&filter);
    let mut found = 0;
    while let Some(letter) = all.try_next().await? {
        let json = DeadLetterJson::new(&letter, &Links::with_states(&filter.states));
        out_json(&serde_json::to_string(&json)?)?;
        found += 1;
    }
    drop(all);
    search.finish_filtered(filter, found).await
}
