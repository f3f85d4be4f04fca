//! Defines the options that the subcommands share: the container, and the filter.

use deadletters::DeadLetters;
use deadletters::filter::Filter;
use deadletters::state::LetterState;
use delivery::deadletter::stored::StoredDeadLetter;
use futures::stream::TryStreamExt as _;

use super::search::Search;
use crate::operations::filter_args::FilterArgs;
use crate::operations::place::{DeadLettersPlace, Place};
use crate::terminal::output::note;
use crate::terminal::text;
use crate::views::unreadable_ledger::{dismissals_not_read, not_shown};

/// The options that select dead letters of a container.
#[derive(Debug, clap::Args)]
pub(super) struct SelectionArgs {
    #[command(flatten)]
    place: DeadLettersPlace,
    #[command(flatten)]
    filter: FilterArgs,
}

impl SelectionArgs {
    /// Opens the dead letters, and creates the filter. By default, the filter matches open dead
    /// letters.
    pub(super) async fn open(self) -> anyhow::Result<(DeadLetters, Filter)> {
        self.open_in(LetterState::Open).await
    }

    /// Opens the dead letters, and creates the filter. By default, the filter matches dead letters
    /// in this state.
    pub(super) async fn open_in(self, state: LetterState) -> anyhow::Result<(DeadLetters, Filter)> {
        // Parse the filter first, so that an invalid one is reported even if the container cannot
        // be read.
        let filter = self.filter.filter_in(state)?;
        let letters = Place::from(self.place).dead_letters().await?;
        let filter = letters.with_states(filter).await?;
        not_shown(filter.states.unreadable()).iter().for_each(note);
        dismissals_not_read(filter.states.unreadable_dismissals()).iter().for_each(note);
        Ok((letters, filter))
    }

    /// Formats the options that name the container, for a printed command.
    pub(super) fn place_options(&self) -> String {
        Place::from(self.place.clone()).dead_letter_options()
    }

    /// Returns true if no filter is given.
    pub(super) fn is_of_all(&self) -> bool {
        self.filter.is_empty()
    }

    /// Opens the dead letters for a subcommand that searches once. The returned search reports its
    /// progress and its cost.
    pub(super) async fn search(self) -> anyhow::Result<(Search, Filter)> {
        let (letters, filter) = self.open().await?;
        Ok((Search::start(letters), filter))
    }
}

/// Calls `take` for each dead letter with one of these ids; without ids, for each that matches the
/// filter. Returns a note about dead letters with these ids whose state does not match the filter.
pub(super) async fn take_each(
    letters: &DeadLetters,
    ids: &[String],
    filter: &Filter,
    mut take: impl FnMut(&StoredDeadLetter),
) -> anyhow::Result<Option<String>> {
    if ids.is_empty() {
        let mut all = letters.summaries(filter);
        while let Some(letter) = all.try_next().await? {
            take(&letter);
        }
        return Ok(None);
    }
    let in_any_state = filter.clone().of_any_state();
    let named = letters.find(ids).await?;
    let (matching, others): (Vec<_>, Vec<_>) = named
        .iter()
        .filter(|letter| in_any_state.matches(letter))
        .partition(|letter| filter.matches(letter));
    matching.into_iter().for_each(take);
    let counts = filter.states.counts(others.iter().map(|letter| letter.id));
    let counts: Vec<String> = counts.iter().map(in_state).collect();
    let line = format!("omitted: {}; use --state all to include them", counts.join(", "));
    Ok(Some(line).filter(|_| !counts.is_empty()))
}

/// Formats a number of dead letters in a state: `3 delivered`.
pub(super) fn in_state((state, count): &(LetterState, u64)) -> String {
    format!("{} {state}", text::grouped(*count))
}
