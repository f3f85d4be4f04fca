//! Runs a search for dead letters: shows the progress, prints the cost, and returns the exit code.
//!
//! Separate because all subcommands that search report in the same way. A search without a result
//! prints alternatives, such as other containers or existing names.

use std::process::ExitCode;
use std::sync::Arc;

use adapters::machine::Machine;
use deadletters::cause::{Cause, CauseId};
use deadletters::filter::Filter;
use deadletters::state::LetterState;
use deadletters::{DeadLetters, MissingName, ReadProgress};
use delivery::ports::Clock as _;
use indicatif::ProgressBar;

use super::selection::in_state;
use crate::operations::shell;
use crate::terminal::output::note;
use crate::terminal::progress;
use crate::terminal::text;

/// The maximum number of existing causes that are printed if the requested cause does not exist.
const CAUSES_MAX: usize = 20;
/// The threshold above which the number of blobs is printed before they are read, because reading
/// them takes some seconds.
const UNCOUNTED_READS_MAX: u64 = 1_000;

/// The maximum number of existing names that are printed if a requested name does not exist.
const NAMES_MAX: usize = 20;

pub(super) struct Search {
    pub(super) letters: DeadLetters,
    began_ms: u64,
    bar: ProgressBar,
}

impl Search {
    pub(super) fn start(letters: DeadLetters) -> Self {
        let container = letters.container.clone();
        let bar = progress::asking("storage requests", move || container.requests());
        let shown = bar.clone();
        let observer = move |progress| show_progress(&shown, progress);
        let letters = letters.with_observer(Arc::new(observer));
        Self { letters, began_ms: Machine.now_ms(), bar }
    }

    /// Removes the progress bar before data is written to the same terminal.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Calls [`Self::finish`]; prints alternatives first if nothing was found.
    pub(super) async fn finish_filtered(
        &self,
        filter: Filter,
        found: usize,
    ) -> anyhow::Result<ExitCode> {
        if found == 0 {
            self.clear();
            note_other_states(&filter);
            self.note_alternatives(filter).await?;
        } else {
            note_replaying(&filter);
        }
        Ok(self.finish(found))
    }

    /// Prints other containers if this container has no dead letters. Otherwise prints the existing
    /// names or causes if the filter contains a missing name or cause.
    async fn note_alternatives(&self, filter: Filter) -> anyhow::Result<()> {
        let nearby = self.letters.nearby().await?;
        if !nearby.is_empty() {
            note(other_containers(&self.letters.container.name, &nearby));
            return Ok(());
        }
        if let Some(missing) = self.letters.missing_name(&filter).await? {
            note(other_names(&missing));
            return Ok(());
        }
        if !filter.causes.is_empty() {
            self.note_causes(filter).await?;
        }
        Ok(())
    }

    /// Prints the existing causes if the filter names a cause that does not exist.
    async fn note_causes(&self, filter: Filter) -> anyhow::Result<()> {
        let wanted = filter.causes.clone();
        let any_cause = Filter { causes: Vec::new(), ..filter };
        let causes = self.letters.causes(&any_cause).await?;
        // Replayed dead letters are excluded. The cause may therefore exist although none of its
        // dead letters were found.
        let exists = |cause: &Cause| wanted.iter().any(|prefix| prefix.is_of(cause.id));
        if !causes.iter().any(exists) {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            note(other_causes(&wanted.join(", "), &causes));
        }
        Ok(())
    }

    /// Reports the number of results on standard error. Returns exit code 1 if there are none.
    pub(super) fn finish(&self, found: usize) -> ExitCode {
        if found == 0 {
            self.report("nothing found");
            return ExitCode::FAILURE;
        }
        self.finish_with(&text::dead_letters(found as u64))
    }

    /// Reports this text on standard error. Returns exit code 0.
    pub(super) fn finish_with(&self, summary: &str) -> ExitCode {
        self.report(summary);
        ExitCode::SUCCESS
    }

    /// Prints the number of blobs that are not dead letters. Returns true if there are any.
    pub(super) fn note_unreadable(&self) -> bool {
        let unreadable = self.letters.unreadable_blobs();
        if unreadable.count > 0 {
            note(format_args!(
                "{} cannot be read as dead letters, for example {}",
                text::counted(unreadable.count, "blob"),
                text::line(&unreadable.example)
            ));
        }
        unreadable.count > 0
    }

    fn report(&self, summary: &str) {
        self.clear();
        let took_ms = Machine.now_ms().saturating_sub(self.began_ms);
        let container = &self.letters.container;
        if let Some(problem) = self.letters.cache_problem() {
            note(format_args!(
                "the cache of dead letters cannot be used: {}",
                text::line(&problem)
            ));
        }
        self.note_unreadable();
        note(format_args!(
            "{summary} in {}; {} in {}.{:03} s",
            container.name,
            text::counted(container.requests(), "storage request"),
            took_ms / 1_000,
            took_ms % 1_000
        ));
    }
}

/// Updates the progress. For a large read, prints the number of blobs first, and turns the counter
/// of requests into a bar.
fn show_progress(bar: &ProgressBar, progress: ReadProgress) {
    match progress {
        ReadProgress::Listed { to_read, is_all } if to_read > UNCOUNTED_READS_MAX => {
            let more = if is_all { "" } else { "more than " };
            let count = text::counted(to_read, "blob");
            bar.suspend(|| note(format_args!("{more}{count} to read")));
            progress::measure(bar, to_read, "blobs");
        }
        ReadProgress::Listed { .. } => {}
        ReadProgress::Read => bar.inc(1),
    }
}

/// Prints the number of dead letters that are being replayed, because a search for open dead
/// letters omits them.
fn note_replaying(filter: &Filter) {
    let counts = filter.states.known_counts();
    let count = counts.iter().find(|(state, _)| *state == LetterState::Replaying);
    if let (Some((_, count)), false) = (count, filter.wants(LetterState::Replaying)) {
        let letters = text::dead_letters(*count);
        note(format_args!(
            "not shown: {letters} in a replay job; use --state {} to show them",
            LetterState::Replaying
        ));
    }
}

/// Prints the number of dead letters in other states in the container. The rest of the filter is
/// ignored.
fn note_other_states(filter: &Filter) {
    let others: Vec<String> = filter.states.known_counts().iter().map(in_state).collect();
    if !others.is_empty() && !filter.is_of_any_state() {
        note(format_args!(
            "in other states: {}; use --state all to include them",
            others.join(", ")
        ));
    }
}

/// Describes other containers that have dead letters, after a search in an empty container.
fn other_containers(name: &str, nearby: &[String]) -> String {
    let options: Vec<String> =
        nearby.iter().map(|name| format!("--container {}", shell::typed(name))).collect();
    format!("{name} contains no dead letters; try {}", options.join(" and "))
}

/// Describes the existing names, after a search for a missing name.
fn other_names(missing: &MissingName) -> String {
    let MissingName { level, wanted, existing } = missing;
    let shown: Vec<String> = existing.iter().take(NAMES_MAX).map(|name| text::line(name)).collect();
    let more = match existing.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(
        "no dead letter has the {level} {wanted:?}. Existing {level}s: {}{more}",
        shown.join(", ")
    )
}

/// Describes the existing causes, after a search for a missing cause.
fn other_causes(wanted: &str, causes: &[Cause]) -> String {
    if causes.is_empty() {
        return format!(
            "no dead letter has the cause {wanted}, and none matches the other filters"
        );
    }
    let ids: Vec<CauseId> = causes.iter().map(|cause| cause.id).collect();
    let short = CauseId::shortened(&ids);
    let listed = short.iter().zip(causes).take(CAUSES_MAX);
    let listed = listed.map(|(id, cause)| format!("\n  {id}  {}", text::line(&cause.title)));
    let rest = causes.len().saturating_sub(CAUSES_MAX);
    let more = if rest > 0 {
        format!("\n  and {rest} more; see lastmile deadletters why")
    } else {
        String::new()
    };
    format!(
        "no dead letter has the cause {wanted}. Existing causes:{}{more}",
        listed.collect::<String>()
    )
}
