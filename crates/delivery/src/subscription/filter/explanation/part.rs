//! The types of an explanation: the condition, the values that it found, and problems of comparing
//! them.
//!
//! This module is separate because both filters and expressions use these types.

/// The explanation of a condition for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The condition as readable text.
    pub condition: String,
    /// The result of the condition for this event.
    pub matches: bool,
    /// The values that the condition reads.
    pub found: Vec<Found>,
    /// The problem of comparing or computing, if there is one.
    pub problem: Option<Problem>,
    /// The nested conditions, without those that were not evaluated because the result was certain.
    pub parts: Vec<Explanation>,
}

/// A value of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name of the member, or the path to the value.
    pub name: String,
    /// The value as JSON text, as the publisher wrote it, shortened if it is long; `None` if it is
    /// missing.
    pub value: Option<String>,
}

/// The reason why a condition has no proper result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A sentence about the problem.
    pub message: String,
    /// The position in the condition to which the problem refers, in characters from 1.
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
