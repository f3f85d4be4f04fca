//! Conditions of Event Grid's `advancedFilters`: one key, one operator, its values.
//!
//! Separate because their rules are their own ("Event filtering", operators): a condition with
//! several values holds when one of them does, a negated one when none does; strings are compared
//! without regard to case; numbers exactly, digit by digit; values of another type than the
//! operator's are ignored.
//!
//! A missing value, or null, fails every operator but `IsNullOrUndefined`, `NumberNotIn`,
//! `NumberNotInRange` and `StringNotIn`: the page lists `StringNotContains`, `StringNotBeginsWith`
//! and `StringNotEndsWith` among those that do not match. It is silent about `NumberNotInRange`,
//! which follows `NumberNotIn` here.
//!
//! The elements of an array are compared where the filter says so; otherwise an array is a value of
//! another type.

mod shown;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::key::Key;
use super::number::Number;
use crate::event::Members;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The path to the value.
    pub key: Key,
    /// The test it has to pass.
    pub test: Test,
    /// The elements of an array are compared (`enableAdvancedFilteringOnArrays`).
    pub arrays: bool,
}

/// The test for the value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Test {
    /// A number that passes: `NumberIn`, `NumberLessThan`, `NumberInRange` and their like.
    Number(NumberTest),
    /// No number that passes: `NumberNotIn`, `NumberNotInRange`.
    NotNumber(NumberTest),
    /// This boolean: `BoolEquals`.
    Bool(bool),
    /// A string that passes: `StringContains` and its like.
    Text(TextTest),
    /// No string that passes: `StringNotContains` and its like.
    NotText(TextTest),
    /// Missing, or null.
    IsNullOrUndefined,
    /// Neither missing nor null.
    IsNotNull,
}

/// How a number is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// One of these.
    In(Vec<Number>),
    /// Below this.
    LessThan(Number),
    /// This or below.
    LessThanOrEquals(Number),
    /// Above this.
    GreaterThan(Number),
    /// This or above.
    GreaterThanOrEquals(Number),
    /// Within one of these, both ends included.
    InRange(Vec<(Number, Number)>),
}

/// How a string is compared, without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextTest {
    how: TextMatch,
    lower: Vec<String>,
}

/// The relation of a string to one of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextMatch {
    /// Equals it.
    In,
    /// Contains it.
    Contains,
    /// Begins with it.
    BeginsWith,
    /// Ends with it.
    EndsWith,
}

impl TextTest {
    /// A comparison with each of these values.
    #[must_use]
    pub fn new(how: TextMatch, values: &[String]) -> Self {
        Self { how, lower: values.iter().map(|value| value.to_lowercase()).collect() }
    }

    /// How a string is compared with each of the values.
    #[must_use]
    pub fn how(&self) -> TextMatch {
        self.how
    }

    /// The values, in lower case.
    #[must_use]
    pub fn lower(&self) -> &[String] {
        &self.lower
    }

    /// Whether a string in lower case passes.
    fn passes(&self, text: &str) -> bool {
        self.lower.iter().any(|value| match self.how {
            TextMatch::In => text == *value,
            TextMatch::Contains => text.contains(value),
            TextMatch::BeginsWith => text.starts_with(value),
            TextMatch::EndsWith => text.ends_with(value),
        })
    }
}

impl NumberTest {
    fn passes(&self, number: &Number) -> bool {
        match self {
            Self::In(values) => values.contains(number),
            Self::LessThan(value) => number < value,
            Self::LessThanOrEquals(value) => number <= value,
            Self::GreaterThan(value) => number > value,
            Self::GreaterThanOrEquals(value) => number >= value,
            Self::InRange(ranges) => {
                ranges.iter().any(|(least, most)| least <= number && number <= most)
            }
        }
    }
}

impl Condition {
    /// Whether the condition holds for an event with these members.
    #[must_use]
    pub fn holds(&self, members: &Members<'_>) -> bool {
        match value_of(&self.key, members) {
            Some(value) => self.holds_for(value),
            None => self.holds_without_value(),
        }
    }

    fn holds_without_value(&self) -> bool {
        match &self.test {
            Test::IsNullOrUndefined | Test::NotNumber(_) => true,
            Test::NotText(test) => test.how == TextMatch::In,
            Test::IsNotNull | Test::Number(_) | Test::Bool(_) | Test::Text(_) => false,
        }
    }

    fn holds_for(&self, value: &str) -> bool {
        let any =
            |passes: &dyn Fn(&str) -> bool| candidates(value, self.arrays).into_iter().any(passes);
        let number = |test: &NumberTest| {
            any(&|value| Number::parse(value).is_some_and(|number| test.passes(&number)))
        };
        let text = |test: &TextTest| {
            any(&|value| lower_text(&self.key, value).is_some_and(|text| test.passes(&text)))
        };
        match &self.test {
            Test::Number(test) => number(test),
            Test::NotNumber(test) => !number(test),
            Test::Bool(expected) => any(&|value| value == if *expected { "true" } else { "false" }),
            Test::Text(test) => text(test),
            Test::NotText(test) => !text(test),
            Test::IsNullOrUndefined => false,
            Test::IsNotNull => true,
        }
    }
}

/// The strings that a condition with this key compares, in lower case.
#[must_use]
pub fn lower_texts(key: &Key, arrays: bool, members: &Members<'_>) -> Vec<String> {
    let values = value_of(key, members).map(|value| candidates(value, arrays));
    values.into_iter().flatten().filter_map(|value| lower_text(key, value)).collect()
}

/// The value of a key; null counts as missing.
fn value_of<'a>(key: &Key, members: &Members<'a>) -> Option<&'a str> {
    key.find(members).filter(|value| *value != "null")
}

/// The values to compare: the value itself, or the elements of the array.
fn candidates(value: &str, arrays: bool) -> Vec<&str> {
    if !arrays || !value.starts_with('[') {
        return vec![value];
    }
    let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

/// A string's content in lower case; for a number or boolean among the event's own members its
/// spelling, since attributes of CloudEvents are compared as strings.
fn lower_text(key: &Key, value: &str) -> Option<String> {
    let text: Cow<'_, str> = match value.as_bytes().first()? {
        b'"' => Cow::Owned(serde_json::from_str(value).ok()?),
        b'{' | b'[' | b'n' => return None,
        _ => key.is_attribute().then_some(Cow::Borrowed(value))?,
    };
    Some(text.to_lowercase())
}

#[cfg(test)]
mod tests;
