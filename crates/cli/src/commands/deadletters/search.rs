//! A search: its progress, its cost, and the exit code for what it found.

use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use delivery::ports::Clock as _;
use indicatif::ProgressBar;

use crate::output::note;
use crate::{progress, text};

/// A search under way.
pub(super) struct Search {
    pub(super) letters: DeadLetters,
    began_ms: u64,
    bar: ProgressBar,
}

impl Search {
    pub(super) fn start(letters: DeadLetters) -> Self {
        let container = letters.container.clone();
        let bar = progress::asking("storage requests", move || container.requests());
        Self { letters, began_ms: Machine.now_ms(), bar }
    }

    /// Removes the progress, before data is written to the same terminal.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Reports on standard error what was found; the exit code says whether anything was.
    pub(super) fn finish(&self, found: usize) -> ExitCode {
        self.clear();
        let took_ms = Machine.now_ms().saturating_sub(self.began_ms);
        let container = &self.letters.container;
        let unreadable = self.letters.unreadable_blobs();
        if unreadable.count > 0 {
            note(format_args!(
                "not dead letters: {}, for example {}",
                text::counted(unreadable.count, "blob"),
                text::line(&unreadable.example)
            ));
        }
        let what = match found {
            0 => "nothing found".to_owned(),
            found => text::dead_letters(found as u64),
        };
        note(format_args!(
            "{what} in {}; {} in {}.{:03} s",
            container.name,
            text::counted(container.requests(), "storage request"),
            took_ms / 1_000,
            took_ms % 1_000
        ));
        if found == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
