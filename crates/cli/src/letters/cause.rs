//! Why letters failed, as groups: destination × outcome × status × the first line of the response.
//! Pure.

use std::collections::HashMap;

use delivery::deadletter::stored::StoredDeadLetter;
use uuid::Uuid;

use super::filter::decided_ms;

/// A longer first line is cut: it is to be recognized, not read.
const LINE_MAX_CHARS: usize = 160;

/// What letters of one group share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) destination: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) status: Option<u16>,
    /// The first line of the last response; without one what else the letter says: its detail, or
    /// its reason.
    pub(crate) line: String,
}

/// Letters that failed alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) key: Key,
    pub(crate) letters: u64,
    pub(crate) first_ms: Option<u64>,
    pub(crate) last_ms: Option<u64>,
    /// The newest of them.
    pub(crate) example: Uuid,
}

/// Causes while letters come.
#[derive(Debug, Default)]
pub(crate) struct Causes(HashMap<Key, Cause>);

impl Causes {
    /// One letter more.
    pub(crate) fn add(&mut self, letter: &StoredDeadLetter) {
        let key = Key {
            destination: letter.destination.clone(),
            outcome: letter.outcome.clone(),
            status: letter.status,
            line: line(letter),
        };
        let at_ms = decided_ms(letter);
        let new = || Cause {
            key: key.clone(),
            letters: 0,
            first_ms: at_ms,
            last_ms: at_ms,
            example: letter.id,
        };
        let cause = self.0.entry(key.clone()).or_insert_with(new);
        cause.letters += 1;
        cause.first_ms = [cause.first_ms, at_ms].into_iter().flatten().min();
        if (at_ms, letter.id) > (cause.last_ms, cause.example) {
            (cause.last_ms, cause.example) = (at_ms, letter.id);
        }
    }

    /// The most frequent first.
    pub(crate) fn sorted(self) -> Vec<Cause> {
        let mut causes: Vec<Cause> = self.0.into_values().collect();
        causes.sort_by(|a, b| b.letters.cmp(&a.letters).then_with(|| a.key.cmp(&b.key)));
        causes
    }
}

fn line(letter: &StoredDeadLetter) -> String {
    let first = |text: &str| {
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(ToOwned::to_owned)
    };
    let said = letter
        .last_response
        .as_deref()
        .and_then(first)
        .or_else(|| letter.detail.as_deref().and_then(first));
    said.unwrap_or_else(|| letter.reason.clone()).chars().take(LINE_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::letter;
    use super::*;

    #[test]
    fn letters_that_failed_alike_are_one_cause_with_first_and_last_time_and_the_newest_as_example()
    {
        let mut causes = Causes::default();
        for number in [3, 1, 2] {
            causes.add(&letter(number));
        }
        causes
            .add(&StoredDeadLetter { last_response: Some("\n \nother\n".to_owned()), ..letter(9) });
        causes.add(&StoredDeadLetter {
            last_response: None,
            detail: Some("no trust".to_owned()),
            ..letter(8)
        });
        causes.add(&StoredDeadLetter { last_response: Some(String::new()), ..letter(7) });
        let causes = causes.sorted();
        let lines: Vec<(&str, u64)> =
            causes.iter().map(|cause| (cause.key.line.as_str(), cause.letters)).collect();
        assert_eq!(
            lines,
            [("overloaded", 3), ("MaxDeliveryAttemptsExceeded", 1), ("no trust", 1), ("other", 1)]
        );
        let (first, last) = (decided_ms(&letter(1)), decided_ms(&letter(3)));
        assert_eq!(
            (causes[0].first_ms, causes[0].last_ms, causes[0].example),
            (first, last, letter(3).id)
        );
    }
}
