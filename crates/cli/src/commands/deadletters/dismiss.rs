//! `lastmile deadletters dismiss` and `undismiss`: nothing is to be done about these dead letters.

use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::dismissed::Dismissal;
use deadletters::filter::Filter;
use delivery::ports::Clock as _;
use delivery::time::moment::rfc3339;
use uuid::Uuid;

use super::search::Search;
use super::selection::ContainerArgs;
use crate::files::usage_error;
use crate::output::out;
use crate::text;
use crate::this_machine::user;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    selected: Selected,
    /// Why nothing is to be done
    #[arg(long, value_name = "TEXT")]
    note: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Selected {
    #[command(flatten)]
    container: ContainerArgs,
    /// Ids, beginnings of ids, keys, or ids of events
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

impl Selected {
    async fn find(self) -> anyhow::Result<(Search, Vec<Uuid>)> {
        let search = Search::start(self.container.open().await?);
        let found = search.letters.find(&self.ids).await?;
        search.clear();
        Ok((search, found.iter().map(|letter| letter.id).collect()))
    }
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (search, found) = arguments.selected.find().await?;
    let at = rfc3339(Machine.now_ms());
    for letter in &found {
        let dismissal = Dismissal::new(*letter, at.clone(), user(), &arguments.note);
        search.letters.dismiss(&dismissal.map_err(usage_error)?).await?;
    }
    say(&found, "dismissed")?;
    search.finish_filtered(Filter::default(), found.len()).await
}

pub(super) async fn undo(selected: Selected) -> anyhow::Result<ExitCode> {
    let (search, found) = selected.find().await?;
    search.letters.undismiss(&found).await?;
    say(&found, "no longer dismissed")?;
    search.finish_filtered(Filter::default(), found.len()).await
}

fn say(found: &[Uuid], what: &str) -> anyhow::Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    out(&format!("{} {what}\n", text::dead_letters(found.len() as u64)))
}
