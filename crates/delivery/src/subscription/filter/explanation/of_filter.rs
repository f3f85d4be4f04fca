//! Explains the result of a [`Filter`].
//!
//! This module is separate from `part` because a filter can contain an expression of CloudEvents
//! SQL. The expression creates its own explanation with the same types.

use std::borrow::Cow;

use super::part::{Explanation, Found, Problem};
use crate::event::Members;
use crate::event::path::scalar;
use crate::subscription::filter::Filter;
use crate::subscription::filter::advanced::{Arrays, Condition, Test, text_of};

impl Filter {
    /// Explains why an event with these members matches or does not match.
    #[must_use]
    pub fn explain(&self, members: &Members<'_>) -> Explanation {
        let of_parts = |condition: &str, filters: &[Self]| Explanation {
            condition: condition.to_owned(),
            matches: self.takes(members),
            found: Vec::new(),
            problem: None,
            parts: filters.iter().map(|filter| filter.explain(members)).collect(),
        };
        match self {
            Self::All(filters) if !filters.is_empty() => of_parts("all of these", filters),
            Self::Any(filters) if !filters.is_empty() => of_parts("one of these", filters),
            Self::Not(filter) => of_parts("not", std::slice::from_ref(filter)),
            Self::Exact { name, .. }
            | Self::ExactText { name, .. }
            | Self::Prefix { name, .. }
            | Self::Suffix { name, .. } => {
                let value = members.get(name);
                let incomparable = value.filter(|value| scalar(value).is_none());
                Explanation {
                    found: vec![Found::new(name, value)],
                    problem: incomparable.map(|_| Problem {
                        message: "only strings, numbers and booleans are compared".to_owned(),
                        column: None,
                    }),
                    ..of_parts(&self.to_string(), &[])
                }
            }
            Self::Advanced(condition) => {
                let value = value_of(condition, members);
                let value = value.as_deref();
                Explanation {
                    found: vec![Found::new(condition.key.to_string(), value)],
                    problem: value.and_then(|value| problem_of(condition, value)),
                    ..of_parts(&self.to_string(), &[])
                }
            }
            Self::Cesql(cesql) => cesql.explain(members),
            Self::All(_) | Self::Any(_) => of_parts(&self.to_string(), &[]),
        }
    }
}

/// Returns the value that a condition compares. Several values are returned as a list.
fn value_of<'a>(condition: &Condition, members: &Members<'a>) -> Option<Cow<'a, str>> {
    if condition.arrays != Arrays::Leaves {
        return condition.key.find(members).map(Cow::Borrowed);
    }
    match condition.key.leaves(members)[..] {
        [] => None,
        [value] => Some(Cow::Borrowed(value)),
        ref values => Some(Cow::Owned(format!("[{}]", values.join(",")))),
    }
}

/// Returns the reason why a condition ignores a value that the event has.
fn problem_of(condition: &Condition, value: &str) -> Option<Problem> {
    if condition.arrays == Arrays::Leaves {
        return None;
    }
    let asks_for_null = matches!(condition.test, Test::IsNullOrUndefined | Test::IsNotNull);
    let message = match value.as_bytes().first()? {
        b'n' if !asks_for_null => "null counts as a missing key",
        b'[' if condition.arrays != Arrays::Elements => {
            "arrays are compared only with enableAdvancedFilteringOnArrays"
        }
        b'"' if matches!(condition.test, Test::Number(_)) => "the value is text, not a number",
        b'"' if matches!(condition.test, Test::Bool(_)) => "the value is text, not a boolean",
        b'[' => return None,
        _ if matches!(condition.test, Test::Text(_))
            && text_of(&condition.key, value).is_none() =>
        {
            "the value is not text"
        }
        _ => return None,
    };
    Some(Problem { message: message.to_owned(), column: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"type":"order.created","subject":"us/1","priority":"high","n":3,"tags":["a"],"o":{},"z":null}"#;

    /// Adds one line for each part of an explanation: verdict, condition, found values and problem.
    fn shown(explanation: &Explanation, depth: usize, lines: &mut Vec<String>) {
        let found = explanation.found.iter().map(|member| {
            format!("; {} {}", member.name, member.value.as_deref().unwrap_or("is missing"))
        });
        let problem = explanation.problem.iter().map(|problem| match problem.column {
            Some(column) => format!("; at character {column}: {}", problem.message),
            None => format!("; {}", problem.message),
        });
        let verdict = if explanation.matches { "yes" } else { "no" };
        let more: String = found.chain(problem).collect();
        lines.push(format!("{}{verdict} {}{more}", "  ".repeat(depth), explanation.condition));
        explanation.parts.iter().for_each(|part| shown(part, depth + 1, lines));
    }

    fn explained(filter: &Filter) -> Vec<String> {
        let mut lines = Vec::new();
        shown(&filter.explain(&Members::parse(EVENT).unwrap()), 0, &mut lines);
        lines
    }

    fn cesql(text: &str) -> Vec<String> {
        explained(&Filter::Cesql(text.parse().unwrap()))
    }

    fn exact(name: &str, value: &str) -> Filter {
        Filter::Exact { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn each_part_says_what_was_asked_and_what_was_found() {
        let eu = Filter::Prefix { name: "subject".to_owned(), value: "eu/".to_owned() };
        let not = Filter::Not(Box::new(exact("missing", "x")));
        let filter = Filter::All(vec![exact("type", "order.created"), eu, not]);
        assert_eq!(
            explained(&filter),
            [
                "no all of these",
                "  yes type is \"order.created\"; type \"order.created\"",
                "  no subject begins with \"eu/\"; subject \"us/1\"",
                "  yes not",
                "    no missing is \"x\"; missing is missing",
            ]
        );
        assert_eq!(explained(&Filter::EVERYTHING), ["yes every event"]);
        assert_eq!(explained(&Filter::Any(Vec::new())), ["no no event"]);
        assert_eq!(
            explained(&exact("o", "{}")),
            ["no o is \"{}\"; o {}; only strings, numbers and booleans are compared"]
        );
    }

    #[test]
    fn conditions_of_event_grid_are_shown_with_their_operators() {
        use crate::subscription::filter::advanced::{NumberTest, TextMatch, TextTest};
        use crate::subscription::filter::key::Key;
        use crate::subscription::filter::number::Number;

        let condition = |key: &str, test| {
            let key = Key::parse(key).unwrap();
            Filter::Advanced(Condition { key, test, arrays: Arrays::OtherType })
        };
        let of_elements = |key: &str, test| {
            let key = Key::parse(key).unwrap();
            Filter::Advanced(Condition { key, test, arrays: Arrays::Elements })
        };
        let number = || Number::parse("1").unwrap();
        let text = |how| TextTest::new(how, &["A".to_owned(), "b".to_owned()]);
        for (filter, line) in [
            (
                condition("Type", Test::Text(text(TextMatch::In))),
                "no Type StringIn \"a\", \"b\"; Type \"order.created\"",
            ),
            (
                condition("data.x", Test::NotText(text(TextMatch::Contains))),
                "no data.x StringNotContains \"a\", \"b\"; data.x is missing",
            ),
            (
                condition("tags", Test::Text(text(TextMatch::BeginsWith))),
                "no tags StringBeginsWith \"a\", \"b\"; tags [\"a\"]; arrays are compared only \
                 with enableAdvancedFilteringOnArrays",
            ),
            (
                condition("n", Test::Number(NumberTest::GreaterThanOrEquals(number()))),
                "yes n NumberGreaterThanOrEquals 1; n 3",
            ),
            (
                condition("n", Test::NotNumber(NumberTest::InRange(vec![(number(), number())]))),
                "yes n NumberNotInRange 1 to 1; n 3",
            ),
            (condition("n", Test::Bool(true)), "no n BoolEquals true; n 3"),
            (
                condition("priority", Test::Number(NumberTest::LessThan(number()))),
                "no priority NumberLessThan 1; priority \"high\"; the value is text, not a number",
            ),
            (
                condition("priority", Test::Bool(true)),
                "no priority BoolEquals true; priority \"high\"; the value is text, not a boolean",
            ),
            // A top-level number is compared as text.
            (condition("n", Test::Text(text(TextMatch::In))), "no n StringIn \"a\", \"b\"; n 3"),
            (
                condition("o", Test::Text(text(TextMatch::In))),
                "no o StringIn \"a\", \"b\"; o {}; the value is not text",
            ),
            (
                of_elements("tags", Test::Text(text(TextMatch::In))),
                "yes tags StringIn \"a\", \"b\" (including elements of arrays); tags [\"a\"]",
            ),
            (condition("m", Test::IsNullOrUndefined), "yes m IsNullOrUndefined; m is missing"),
            (condition("z", Test::IsNotNull), "no z IsNotNull; z null"),
            (
                condition("z", Test::Bool(false)),
                "no z BoolEquals false; z null; null counts as a missing key",
            ),
        ] {
            assert_eq!(explained(&filter), [line]);
        }
    }

    #[test]
    fn an_error_of_an_expression_has_the_column_of_what_failed() {
        for (text, line) in [
            (
                "INT(priority) > 3",
                "no INT(priority) > 3; priority \"high\"; at character 1: a value cannot be \
                 converted to the required type: INT(priority)",
            ),
            (
                "n / (n - 3) = 1",
                "no n / (n - 3) = 1; n 3; at character 1: a number is too large, or is divided by \
                 zero: n / (n - 3)",
            ),
            (
                "n = 3 AND region = 'eu'",
                "no n = 3 AND region = 'eu'; n 3; region is missing; at character 11: the event does not have the \
                 attribute region",
            ),
            (
                "n = 3 AND subject",
                "no n = 3 AND subject; n 3; subject \"us/1\"; at character 11: a value cannot be \
                 converted to the required type: subject",
            ),
            ("n + 1", "no n + 1; n 3; the value of the expression is 4, not true"),
        ] {
            assert_eq!(cesql(text), [line], "{text}");
        }
    }

    #[test]
    fn of_joined_conditions_those_are_shown_that_decide() {
        assert_eq!(
            cesql("n = 3 AND type LIKE '%.deleted' AND region = 'eu'"),
            [
                "no n = 3 AND type LIKE '%.deleted' AND region = 'eu'; n 3; type \"order.created\"; region is missing",
                "  yes n = 3; n 3",
                "  no type LIKE '%.deleted'; type \"order.created\"",
            ]
        );
    }
}
