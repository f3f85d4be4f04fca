//! `lastmile deadletters dismiss` and `undismiss`: mark dead letters as needing no action, or
//! remove the mark.

use std::collections::HashSet;
use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::cause::{CauseId, cause_id};
use deadletters::dismissed::Dismissal;
use deadletters::filter::Filter;
use deadletters::state::LetterState;
use delivery::ports::Clock as _;
use delivery::time::moment::{self, rfc3339};
use uuid::Uuid;

use super::search::Search;
use super::selection::{SelectionArgs, take_each};
use crate::operations::this_machine::user;
use crate::terminal::help::examples;
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::terminal::usage::usage_error;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters dismiss 4f1c02aa --note refunded",
        "lastmile deadletters dismiss --cause 3f9a12c4 --note \"test orders\"",
    )
)]
pub(super) struct Arguments {
    /// Reason for the dismissal, such as refunded
    #[arg(long, value_name = "TEXT")]
    note: String,
    #[command(flatten)]
    selected: Selected,
}

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters undismiss 4f1c02aa --stack orders-prod",
    )
)]
pub(super) struct Selected {
    /// Dead letters, by id, prefix of the id, key of the blob or event id. Without ID, all that match
    /// the filters; at least one filter is then required. Filters, including the default of --state,
    /// apply to ids too
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// The dead letters that a search has found, and the filter that selected them.
struct Found {
    search: Search,
    filter: Filter,
    letters: Vec<Uuid>,
    causes: HashSet<CauseId>,
}

impl Selected {
    async fn find(self, state: LetterState) -> anyhow::Result<Found> {
        if self.ids.is_empty() && self.selection.is_of_all() {
            return Err(usage_error(
                "no id and no filter is given: specify ids, or a filter such as --cause",
            ));
        }
        let (letters, filter) = self.selection.open_in(state).await?;
        let search = Search::start(letters);
        let (mut found, mut causes) = (Vec::new(), HashSet::new());
        let is_undone = state == LetterState::Dismissed;
        let left_out = take_each(&search.letters, &self.ids, &filter, |letter| {
            if !is_undone || filter.states.dismissal_of(letter.id).is_some() {
                found.push(letter.id);
                causes.insert(cause_id(letter));
            }
        });
        let left_out = left_out.await?;
        search.clear();
        left_out.iter().for_each(note);
        Ok(Found { search, filter, letters: found, causes })
    }
}

impl Found {
    /// Stores a dismissal or its withdrawal, if the search has found dead letters.
    async fn record(self, dismissal: Dismissal, outcome: &str) -> anyhow::Result<ExitCode> {
        let count = self.letters.len();
        if count > 0 {
            self.search.letters.dismiss(&dismissal).await?;
            out(&format!("{} {outcome}\n", text::dead_letters(count as u64)))?;
        }
        self.search.finish_filtered(self.filter, count).await
    }
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let found = arguments.selected.find(LetterState::Open).await?;
    let (letters, causes) = (found.letters.clone(), found.causes.iter().copied());
    let at = rfc3339(Machine.now_ms());
    let dismissal = Dismissal::new(letters, causes, at, user(), &arguments.note);
    found.record(dismissal.map_err(usage_error)?, "dismissed").await
}

pub(super) async fn undo(selected: Selected) -> anyhow::Result<ExitCode> {
    let found = selected.find(LetterState::Dismissed).await?;
    // The clock of another machine may be ahead, so use a time after the newest dismissal.
    let dismissals = found.letters.iter().filter_map(|id| found.filter.states.dismissal_of(*id));
    let newest_ms =
        dismissals.filter_map(|dismissal| moment::parse(&dismissal.at)).max().unwrap_or_default();
    let at = rfc3339(Machine.now_ms().max(newest_ms + 1));
    let dismissal = Dismissal::taken_back(found.letters.clone(), at, user());
    found.record(dismissal, "no longer dismissed").await
}
