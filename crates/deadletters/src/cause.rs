//! Why deliveries failed, as groups: destination × outcome × status × the first line of the
//! response. Pure.

use std::collections::HashMap;

use delivery::deadletter::stored::StoredDeadLetter;
use uuid::Uuid;

use crate::filter::decided_ms;

/// A longer first line is cut: it has to be recognizable, not complete.
const FIRST_LINE_MAX_CHARS: usize = 160;

/// What the dead letters of one group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CauseKey {
    /// The URL of the destination.
    pub destination: Option<String>,
    /// The last outcome.
    pub outcome: Option<String>,
    /// The last HTTP status.
    pub status: Option<u16>,
    /// The first line of the last response; without one the first line of the detail, else the
    /// reason.
    pub line: String,
}

/// Dead letters that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What they have in common.
    pub key: CauseKey,
    /// How many there are.
    pub count: u64,
    /// When the first of them ended.
    pub first_ms: Option<u64>,
    /// When the last of them ended.
    pub last_ms: Option<u64>,
    /// The newest of them.
    pub example: Uuid,
}

/// Groups dead letters one by one.
#[derive(Debug, Default)]
pub struct Causes(HashMap<CauseKey, Cause>);

impl Causes {
    /// Adds a dead letter to its group.
    pub fn add(&mut self, letter: &StoredDeadLetter) {
        let key = CauseKey {
            destination: letter.destination.clone(),
            outcome: letter.outcome.clone(),
            status: letter.status,
            line: first_line(letter),
        };
        let at_ms = decided_ms(letter);
        let new = || Cause {
            key: key.clone(),
            count: 0,
            first_ms: at_ms,
            last_ms: at_ms,
            example: letter.id,
        };
        let cause = self.0.entry(key.clone()).or_insert_with(new);
        cause.count += 1;
        cause.first_ms = [cause.first_ms, at_ms].into_iter().flatten().min();
        // The id breaks ties: the example must not depend on the order of reading.
        if (at_ms, letter.id) > (cause.last_ms, cause.example) {
            (cause.last_ms, cause.example) = (at_ms, letter.id);
        }
    }

    /// The causes, the most frequent first.
    #[must_use]
    pub fn sorted(self) -> Vec<Cause> {
        let mut causes: Vec<Cause> = self.0.into_values().collect();
        causes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        causes
    }
}

fn first_line(letter: &StoredDeadLetter) -> String {
    let first = |text: &str| {
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(ToOwned::to_owned)
    };
    let line = letter
        .last_response
        .as_deref()
        .and_then(first)
        .or_else(|| letter.detail.as_deref().and_then(first));
    line.unwrap_or_else(|| letter.reason.clone()).chars().take(FIRST_LINE_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::letter;

    #[test]
    fn equal_failures_are_one_cause_with_first_and_last_time_and_the_newest_as_example() {
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
            causes.iter().map(|cause| (cause.key.line.as_str(), cause.count)).collect();
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
