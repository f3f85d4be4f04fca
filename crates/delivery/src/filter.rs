//! Which events a subscription wants.
//!
//! Filters look at the untouched event: its top-level members as the publisher wrote them. A member that is missing,
//! or is no string, number or boolean, fails every comparison. The vocabulary is that of the CloudEvents
//! Subscriptions API: exact, prefix, suffix, all, any, not; and the conditions of Event Grid ([`advanced`]), which
//! look into the data too and have rules of their own.

pub mod advanced;
pub mod key;
pub mod number;

use std::borrow::Cow;

use crate::event::Members;
use advanced::Condition;

/// A condition over an event's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Every condition holds; with none, every event is taken.
    All(Vec<Filter>),
    /// At least one condition holds.
    Any(Vec<Filter>),
    /// The condition does not hold.
    Not(Box<Filter>),
    /// The member is exactly this.
    Exact {
        /// The member's name.
        name: String,
        /// What it has to be.
        value: String,
    },
    /// The member begins with this.
    Prefix {
        /// The member's name.
        name: String,
        /// How it has to begin.
        value: String,
    },
    /// The member ends with this.
    Suffix {
        /// The member's name.
        name: String,
        /// How it has to end.
        value: String,
    },
    /// A condition of Event Grid's advanced filters holds.
    Advanced(Condition),
}

impl Filter {
    /// The filter that takes every event.
    pub const EVERYTHING: Self = Self::All(Vec::new());

    /// Whether the filter takes an event with these members.
    #[must_use]
    pub fn takes(&self, members: &Members<'_>) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.takes(members)),
            Self::Any(filters) => filters.iter().any(|filter| filter.takes(members)),
            Self::Not(filter) => !filter.takes(members),
            Self::Exact { name, value } => scalar(members, name).is_some_and(|of| of == value.as_str()),
            Self::Prefix { name, value } => scalar(members, name).is_some_and(|of| of.starts_with(value)),
            Self::Suffix { name, value } => scalar(members, name).is_some_and(|of| of.ends_with(value)),
            Self::Advanced(condition) => condition.holds(members),
        }
    }
}

/// A member as text: a string's content, a number's or boolean's own spelling.
fn scalar<'a>(members: &Members<'a>, name: &str) -> Option<Cow<'a, str>> {
    let raw = members.get(name)?;
    match raw.as_bytes().first()? {
        b'"' => members.text(name),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(name: &str, value: &str) -> Filter {
        Filter::Exact { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn each_condition_has_its_truth_table() {
        let members = Members::parse(r#"{"type":"order.created","n":5,"b":true,"none":null,"o":{},"e":""}"#).unwrap();
        let prefix = |value: &str| Filter::Prefix { name: "type".to_owned(), value: value.to_owned() };
        let suffix = |value: &str| Filter::Suffix { name: "type".to_owned(), value: value.to_owned() };
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
