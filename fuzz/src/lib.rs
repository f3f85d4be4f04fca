//! Helpers for several targets: they split an input, and read the subscriptions of a document.

use delivery::subscription::catalogue::Catalogue;
use dialects::{Source, read};

/// The current time in all targets: 2026-11-20, in milliseconds.
pub const NOW_MS: u64 = 1_795_158_190_000;

/// Returns the first lines of an input, and the rest. Missing lines are empty.
#[must_use]
pub fn lines<const COUNT: usize>(text: &str) -> ([&str; COUNT], &str) {
    let mut rest = text;
    let lines = std::array::from_fn(|_| {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        line
    });
    (lines, rest)
}

/// Returns the topics and subscriptions of a file; `None` if it has an error.
#[must_use]
pub fn catalogue(file: &str) -> Option<Catalogue> {
    read(&[Source { name: "fuzz", text: file }]).into_result().ok()
}
