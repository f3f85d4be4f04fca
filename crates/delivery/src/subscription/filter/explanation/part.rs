//! Declares the types of an explanation: a condition, the values that it reads, and the reason why
//! it ignored a value, failed or resulted in no boolean.
//!
//! This module is separate because both filters and expressions use these types.

/// The explanation of one condition, for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The condition as text for people.
    pub condition: String,
    /// True if the condition is true for this event.
    pub matches: bool,
    /// The values in the event that the condition reads.
    pub found: Vec<Found>,
    /// The reason why the condition ignored a value, failed or resulted in no boolean; `None` if it
    /// did none of these.
    pub problem: Option<Problem>,
    /// The explanations of nested conditions. Conditions that were not evaluated, because the
    /// result was already certain, are omitted.
    pub parts: Vec<Explanation>,
}

/// A value that a condition reads in the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name of the member, or the path to the value.
    pub name: String,
    /// The raw JSON of the value, as the publisher wrote it; `None` if the event has no such value.
    /// A long value is shortened.
    pub value: Option<String>,
}

/// The reason why a condition ignored a value, failed or resulted in no boolean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The problem as text for people, without its position.
    pub message: String,
    /// The position of the problem in the condition, in characters, counted from 1.
    pub column: Option<usize>,
}

/// Maximum length of a value that is shown completely, in characters.
const VALUE_MAX: usize = 200;

impl Found {
    pub(crate) fn new(name: impl Into<String>, value: Option<&str>) -> Self {
        let shown = |value: &str| {
            let end = value.char_indices().nth(VALUE_MAX).map(|(end, _)| end);
            match end.and_then(|end| value.get(..end)) {
                Some(beginning) => format!("{beginning}…"),
                None => value.to_owned(),
            }
        };
        Self { name: name.into(), value: value.map(shown) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut() {
        let found = Found::new("data", Some(&"ö".repeat(VALUE_MAX + 1)));
        assert_eq!(found.value, Some(format!("{}…", "ö".repeat(VALUE_MAX))));
    }
}
