//! [`Filter`]: the condition that events must satisfy to be delivered, its evaluation, and its
//! text.
//!
//! This module is separate because the index and the explanation are derived from filters.

use std::fmt;

use super::advanced::Condition;
use super::cesql::Cesql;
use crate::event::Members;
use crate::event::path::scalar;

/// A condition on the members of an event, or a combination of conditions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Filter {
    /// True if every one of these conditions is true. Without conditions, every event matches.
    All(Vec<Filter>),
    /// True if at least one of these conditions is true.
    Any(Vec<Filter>),
    /// True if this condition is false.
    Not(Box<Filter>),
    /// True if a member equals a value.
    Exact {
        /// The name of the compared member.
        name: String,
        /// The value that the member must have.
        value: String,
    },
    /// True if a member is a string that equals a text. A number or boolean with the same spelling
    /// is not equal.
    ExactText {
        /// The name of the compared member.
        name: String,
        /// The text that the member must have.
        value: String,
    },
    /// True if a member begins with a value.
    Prefix {
        /// The name of the compared member.
        name: String,
        /// The value with which the member must begin.
        value: String,
    },
    /// True if a member ends with a value.
    Suffix {
        /// The name of the compared member.
        name: String,
        /// The value with which the member must end.
        value: String,
    },
    /// A condition of Event Grid's advanced filters.
    Advanced(Condition),
    /// An expression in CloudEvents SQL.
    Cesql(Cesql),
}

/// Prints the filter as an expression for people.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |filters: &[Self], word: &str| {
            let texts: Vec<String> = filters.iter().map(ToString::to_string).collect();
            if texts.len() == 1 { texts.concat() } else { format!("({})", texts.join(word)) }
        };
        match self {
            Self::All(filters) if filters.is_empty() => f.write_str("every event"),
            Self::Any(filters) if filters.is_empty() => f.write_str("no event"),
            Self::All(filters) => f.write_str(&list(filters, " and ")),
            Self::Any(filters) => f.write_str(&list(filters, " or ")),
            Self::Not(filter) => write!(f, "not {filter}"),
            Self::Exact { name, value } => write!(f, "{name} is {value:?}"),
            Self::ExactText { name, value } => write!(f, "{name} is the string {value:?}"),
            Self::Prefix { name, value } => write!(f, "{name} begins with {value:?}"),
            Self::Suffix { name, value } => write!(f, "{name} ends with {value:?}"),
            Self::Advanced(condition) => write!(f, "{condition}"),
            Self::Cesql(cesql) => write!(f, "cesql({cesql})"),
        }
    }
}

impl Filter {
    /// A filter that every event matches.
    pub const EVERYTHING: Self = Self::All(Vec::new());

    /// Returns the number of conditions and of the values in them. The memory of the filter is
    /// proportional to this number.
    #[must_use]
    pub fn size(&self) -> usize {
        let sum = |filters: &[Self]| filters.iter().map(Self::size).sum::<usize>();
        match self {
            Self::All(filters) | Self::Any(filters) => 1 + sum(filters),
            Self::Not(filter) => 1 + filter.size(),
            Self::Exact { .. } | Self::ExactText { .. } => 1,
            Self::Prefix { .. } | Self::Suffix { .. } => 1,
            Self::Advanced(condition) => 1 + condition.test.values(),
            Self::Cesql(cesql) => cesql.size(),
        }
    }

    /// Returns true if an event with these members matches.
    #[must_use]
    pub fn takes(&self, members: &Members<'_>) -> bool {
        let text = |name: &str| members.get(name).and_then(scalar);
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.takes(members)),
            Self::Any(filters) => filters.iter().any(|filter| filter.takes(members)),
            Self::Not(filter) => !filter.takes(members),
            Self::Exact { name, value } => {
                text(name).is_some_and(|member| member == value.as_str())
            }
            Self::ExactText { name, value } => {
                members.text(name).is_some_and(|member| member == value.as_str())
            }
            Self::Prefix { name, value } => {
                text(name).is_some_and(|member| member.starts_with(value))
            }
            Self::Suffix { name, value } => {
                text(name).is_some_and(|member| member.ends_with(value))
            }
            Self::Advanced(condition) => condition.holds(members),
            Self::Cesql(cesql) => cesql.takes(members),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::filter::advanced::{Arrays, Test, TextMatch, TextTest};
    use crate::subscription::filter::key::Key;

    fn exact(name: &str, value: &str) -> Filter {
        Filter::Exact { name: name.to_owned(), value: value.to_owned() }
    }

    fn exact_text(name: &str, value: &str) -> Filter {
        Filter::ExactText { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn a_filter_is_shown_as_an_expression() {
        let not = Filter::Not(Box::new(exact("b", "2")));
        let filter = Filter::All(vec![exact("a", "1"), Filter::Any(vec![not, exact("c", "3")])]);
        assert_eq!(filter.to_string(), r#"(a is "1" and (not b is "2" or c is "3"))"#);
        assert_eq!(exact_text("a", "1").to_string(), r#"a is the string "1""#);
        assert_eq!(Filter::EVERYTHING.to_string(), "every event");
    }

    #[test]
    fn the_size_of_a_filter_counts_conditions_values_and_parts_of_expressions() {
        let values = ["a".to_owned(), "b".to_owned()];
        let condition = Condition {
            key: Key::parse("data.x").expect("a key"),
            test: Test::NotText(TextTest::new(TextMatch::In, &values)),
            arrays: Arrays::Fail,
        };
        let cesql = Cesql::read("type = 'a' AND EXISTS b").expect("an expression").cesql;
        let not = Filter::Not(Box::new(exact("b", "2")));
        for (filter, size) in [
            (Filter::EVERYTHING, 1),
            (exact("a", "1"), 1),
            (Filter::Any(vec![not, exact("c", "3")]), 4),
            (Filter::Advanced(condition), 3),
            (Filter::Cesql(cesql), 5),
        ] {
            assert_eq!(filter.size(), size, "{filter}");
        }
    }

    #[test]
    fn each_condition_has_its_truth_table() {
        let members =
            Members::parse(r#"{"type":"order.created","n":5,"b":true,"none":null,"o":{},"e":""}"#)
                .unwrap();
        let prefix =
            |value: &str| Filter::Prefix { name: "type".to_owned(), value: value.to_owned() };
        let suffix =
            |value: &str| Filter::Suffix { name: "type".to_owned(), value: value.to_owned() };
        let (yes, no) = (exact("type", "order.created"), exact("type", "order"));
        for (filter, taken) in [
            (yes.clone(), true),
            (no.clone(), false),
            (exact("type", "Order.created"), false),
            (exact("n", "5"), true),
            (exact("b", "true"), true),
            (exact("none", "null"), false),
            (exact("o", "{}"), false),
            (exact("e", ""), true),
            (exact("missing", ""), false),
            (exact_text("type", "order.created"), true),
            (exact_text("type", "order"), false),
            (exact_text("n", "5"), false),
            (exact_text("b", "true"), false),
            (exact_text("missing", "x"), false),
            (prefix("order."), true),
            (prefix("created"), false),
            (suffix(".created"), true),
            (suffix("order"), false),
            (Filter::All(vec![yes.clone(), no.clone()]), false),
            (Filter::All(vec![yes.clone(), yes.clone()]), true),
            (Filter::EVERYTHING, true),
            (Filter::Any(vec![yes.clone(), no.clone()]), true),
            (Filter::Any(vec![no.clone()]), false),
            (Filter::Any(vec![]), false),
            (Filter::Not(Box::new(no)), true),
            (Filter::Not(Box::new(yes)), false),
            (Filter::Not(Box::new(exact("missing", "x"))), true),
        ] {
            assert_eq!(filter.takes(&members), taken, "{filter:?}");
        }
    }
}
