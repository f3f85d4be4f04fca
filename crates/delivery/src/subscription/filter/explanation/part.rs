//! The parts of an explanation: what was asked for, what was found, and why it could not be compared.
//!
//! Separate because filters and expressions are both explained by them.

/// A part of a filter, and what it makes of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What is asked for.
    pub condition: String,
    /// Whether the event has it.
    pub matches: bool,
    /// What of the event was looked at.
    pub found: Vec<Found>,
    /// What cannot be compared or computed.
    pub problem: Option<Problem>,
    /// The parts that it consists of; of those whose result cannot change anything none.
    pub parts: Vec<Explanation>,
}

/// A value of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name, or the path to it.
    pub name: String,
    /// As the publisher wrote it, in JSON; of a long one the beginning. `None` where there is none.
    pub value: Option<String>,
}

/// Why a part has no proper result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// The character of the condition that it is about, from 1, where it is about one.
    pub column: Option<usize>,
}

/// The longest value that is shown whole, in characters.
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
