//! Dismissals: a person notes why dead letters need no action. Pure.
//!
//! Separate from [`crate::dismissed`], which stores them. Withdrawing a dismissal adds a record, so
//! that both records remain. The newest record that names a dead letter counts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::cause::CauseId;
use crate::recorded::recorded_ms;

/// The version of the format that is written.
const VERSION: u32 = 1;
/// Maximum length of a note, in characters.
pub const NOTE_MAX_CHARS: usize = 2_000;

/// A record that dismisses dead letters, or withdraws earlier dismissals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissal {
    v: u32,
    /// The time of the record, in RFC 3339.
    pub at: String,
    /// The name of the person, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for dismissing; empty for a withdrawal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// True if the record withdraws earlier dismissals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_taken_back: bool,
    /// The ids of the causes of the dead letters.
    #[serde(default, skip_serializing_if = "HashSet::is_empty")]
    pub causes: HashSet<String>,
    /// The ids of the dead letters.
    pub letters: Vec<Uuid>,
}

impl Dismissal {
    /// Creates a dismissal.
    ///
    /// # Errors
    /// Fails if the note is empty or too long.
    pub fn new(
        letters: Vec<Uuid>,
        causes: impl IntoIterator<Item = CauseId>,
        at: String,
        by: Option<String>,
        note: &str,
    ) -> Result<Self, String> {
        let causes = causes.into_iter().map(|cause| cause.to_string()).collect();
        let note = note.trim().to_owned();
        match note.chars().count() {
            0 => Err("a note is required: state why these dead letters need no action".to_owned()),
            chars if chars > NOTE_MAX_CHARS => {
                Err(format!("the note has {chars} characters; the limit is {NOTE_MAX_CHARS}"))
            }
            _ => Ok(Self { v: VERSION, at, by, note, is_taken_back: false, causes, letters }),
        }
    }

    /// Creates a withdrawal of earlier dismissals of these dead letters.
    #[must_use]
    pub fn taken_back(letters: Vec<Uuid>, at: String, by: Option<String>) -> Self {
        let (note, causes) = (String::new(), HashSet::new());
        Self { v: VERSION, at, by, note, is_taken_back: true, causes, letters }
    }
}

/// The newest dismissal or withdrawal of each dead letter.
#[derive(Debug, Clone, Default)]
pub struct Dismissals {
    newest: HashMap<Uuid, Arc<Dismissal>>,
    /// The keys of records that cannot be read. They have no effect.
    pub unreadable: Vec<String>,
}

impl Dismissals {
    /// Creates the collection from all records, and keeps only the newest record of each dead
    /// letter.
    #[must_use]
    pub fn new(all: impl IntoIterator<Item = Dismissal>) -> Self {
        let mut newest: HashMap<Uuid, Arc<Dismissal>> = HashMap::new();
        for dismissal in all.into_iter().map(Arc::new) {
            let at_ms = recorded_ms(&dismissal.at);
            for letter in &dismissal.letters {
                let known = newest.get(letter);
                if known.is_none_or(|known| recorded_ms(&known.at) <= at_ms) {
                    newest.insert(*letter, Arc::clone(&dismissal));
                }
            }
        }
        Self { newest, unreadable: Vec::new() }
    }

    /// Returns the newest record of a dead letter, which may be a withdrawal.
    #[must_use]
    pub fn get(&self, letter: Uuid) -> Option<&Dismissal> {
        self.newest.get(&letter).map(|dismissal| &**dismissal)
    }

    /// Returns the dead letters that any record names.
    pub(crate) fn letters(&self) -> impl Iterator<Item = Uuid> {
        self.newest.keys().copied()
    }

    /// Returns the time of the newest dismissal of a dead letter with this cause.
    #[must_use]
    pub fn cause_ms(&self, cause: CauseId) -> Option<u64> {
        let cause = cause.to_string();
        let of_cause = self
            .newest
            .values()
            .filter(|dismissal| !dismissal.is_taken_back && dismissal.causes.contains(&cause));
        of_cause.map(|dismissal| recorded_ms(&dismissal.at)).max()
    }
}

/// Reads a record; returns `None` if the bytes are not a record of this version.
pub(crate) fn read_dismissal(bytes: &[u8]) -> Option<Dismissal> {
    serde_json::from_slice::<Dismissal>(bytes).ok().filter(|dismissal| dismissal.v == VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_record_of_a_dead_letter_counts_in_whatever_order_they_are_read() {
        let [first, second] = [1, 2].map(Uuid::from_u128);
        let at = |second: u8| format!("2026-11-20T07:00:0{second}.0000000Z");
        let dismissed =
            |letters, second, note| Dismissal::new(letters, [], at(second), None, note).unwrap();
        let both = dismissed(vec![first, second], 1, "known");
        let back = Dismissal::taken_back(vec![first], at(2), None);
        for order in [[both.clone(), back.clone()], [back.clone(), both.clone()]] {
            let all = Dismissals::new(order);
            assert_eq!(all.get(first), Some(&back));
            assert_eq!(all.get(second), Some(&both));
            assert_eq!(all.get(Uuid::from_u128(3)), None);
        }
        let again = Dismissals::new([both, back, dismissed(vec![first], 3, "again")]);
        assert_eq!(again.get(first).unwrap().note, "again");
    }

    #[test]
    fn a_note_is_needed_and_has_a_limit() {
        let noted = |note: &str| Dismissal::new(Vec::new(), [], String::new(), None, note);
        assert!(noted(" \n").unwrap_err().contains("a note is required"));
        assert!(noted(&"x".repeat(NOTE_MAX_CHARS)).is_ok());
        assert!(noted(&"x".repeat(NOTE_MAX_CHARS + 1)).unwrap_err().contains("2001 characters"));
    }
}
