//! Conditions of Event Grid's `advancedFilters`: a key, an operator and its values.
//!
//! This module is separate because these conditions have rules of their own ("Event filtering",
//! operators):
//! - A condition with several values is true if it is true for one of them. A negated condition is
//!   true if the unnegated comparison is false for every value.
//! - The comparison of strings ignores case.
//! - Numbers are compared exactly, digit by digit.
//! - Values whose type is not that of the operator are ignored.
//! - Null counts as a missing value. A missing value satisfies only `IsNullOrUndefined`,
//!   `NumberNotIn`, `NumberNotInRange` and `StringNotIn`.
//!
//! The page "Event filtering" lists `StringNotContains`, `StringNotBeginsWith` and
//! `StringNotEndsWith` among the operators that do not match a missing value. It does not mention
//! `NumberNotInRange`, which the Azure Event Grid Simulator treats like `NumberNotIn`.
//! `docs/reference/conformance.md` has each case with its source.

mod shown;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::fold::folded;
use super::key::Key;
use super::number::Number;
use crate::event::Members;

/// A condition of `advancedFilters`: a key, and an operator with its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The path to the value in the event that is compared.
    pub key: Key,
    /// The operator, with the values to compare with.
    pub test: Test,
    /// The rule for comparing a value that is an array.
    pub arrays: Arrays,
}

/// The rule for comparing a value that is an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arrays {
    /// An array is ignored, like any other value whose type is not that of the operator.
    OtherType,
    /// Each element of the array is compared (`enableAdvancedFilteringOnArrays`).
    Elements,
    /// A comparison with an array is false, even a negated one (Event Grid on Kubernetes,
    /// "Filtering on array values").
    Fail,
    /// Each value that is neither a list nor an object is compared, as in event patterns of Amazon
    /// EventBridge. A comparison, even a negated one, is true if it is true for one of these
    /// values. Null is a value. Names in the key are compared exactly, and the path may pass
    /// through lists of objects.
    Leaves,
}

/// The test of the value at a key: an operator with its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Test {
    /// The value is a number that passes the comparison: `NumberIn`, `NumberLessThan`,
    /// `NumberInRange` and similar operators.
    Number(NumberTest),
    /// The value is not a number, or is a number that fails the comparison: `NumberNotIn`,
    /// `NumberNotInRange`.
    NotNumber(NumberTest),
    /// The value is this boolean: `BoolEquals`.
    Bool(bool),
    /// The value is a string that passes the comparison: `StringContains` and similar operators.
    Text(TextTest),
    /// The value is not a string, or is a string that fails the comparison: `StringNotContains` and
    /// similar operators.
    NotText(TextTest),
    /// The value is missing or null.
    IsNullOrUndefined,
    /// The value is neither missing nor null.
    IsNotNull,
}

/// The comparison of a number in the event with fixed numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// The number equals one of these numbers.
    In(Vec<Number>),
    /// The number is less than this one.
    LessThan(Number),
    /// The number is less than or equal to this one.
    LessThanOrEquals(Number),
    /// The number is greater than this one.
    GreaterThan(Number),
    /// The number is greater than or equal to this one.
    GreaterThanOrEquals(Number),
    /// The number is within one of these ranges. Both ends are inclusive.
    InRange(Vec<(Number, Number)>),
}

/// The comparison of a string with values. If `written` is set, it contains the values in their
/// original case, and the comparison is case-sensitive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextTest {
    how: TextMatch,
    folded: Vec<String>,
    written: Option<Vec<String>>,
}

/// The relation between a string and a value that makes a comparison true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextMatch {
    /// The string equals the value.
    In,
    /// The string contains the value.
    Contains,
    /// The string begins with the value.
    BeginsWith,
    /// The string ends with the value.
    EndsWith,
}

impl Test {
    /// Returns the number of values in the test. A range counts as one value.
    #[must_use]
    pub fn values(&self) -> usize {
        match self {
            Self::Number(test) | Self::NotNumber(test) => match test {
                NumberTest::In(values) => values.len(),
                NumberTest::InRange(ranges) => ranges.len(),
                NumberTest::LessThan(_)
                | NumberTest::LessThanOrEquals(_)
                | NumberTest::GreaterThan(_)
                | NumberTest::GreaterThanOrEquals(_) => 1,
            },
            Self::Text(test) | Self::NotText(test) => test.folded.len(),
            Self::Bool(_) => 1,
            Self::IsNullOrUndefined | Self::IsNotNull => 0,
        }
    }
}

impl TextTest {
    /// Returns a case-insensitive comparison with each of these values.
    #[must_use]
    pub fn new(how: TextMatch, values: &[String]) -> Self {
        Self { how, folded: values.iter().map(|value| folded(value)).collect(), written: None }
    }

    /// Returns a case-sensitive comparison with each of these values. Event Grid has no such
    /// comparison.
    #[must_use]
    pub fn with_case(how: TextMatch, values: Vec<String>) -> Self {
        Self { written: Some(values.clone()), ..Self::new(how, &values) }
    }

    /// Returns the relation. The comparison is true if the relation holds between a string of the
    /// event and one of the values.
    #[must_use]
    pub fn how(&self) -> TextMatch {
        self.how
    }

    /// Returns the case-folded values. If a string passes the test, its folded form passes with
    /// these values, so the index can use them.
    #[must_use]
    pub fn folded(&self) -> &[String] {
        &self.folded
    }

    /// Returns true if the comparison distinguishes upper and lower case.
    #[must_use]
    pub fn is_case_sensitive(&self) -> bool {
        self.written.is_some()
    }

    /// Returns the values with which a string is compared.
    #[must_use]
    pub fn values(&self) -> &[String] {
        self.written.as_deref().unwrap_or(&self.folded)
    }

    /// Returns true if the relation holds between the string and one of the values.
    fn passes(&self, text: &str) -> bool {
        let text = if self.is_case_sensitive() { Cow::Borrowed(text) } else { folded(text).into() };
        self.values().iter().any(|value| match self.how {
            TextMatch::In => *text == **value,
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
    /// Returns true if the condition is true for an event with these members.
    #[must_use]
    pub fn holds(&self, members: &Members<'_>) -> bool {
        if self.arrays == Arrays::Leaves {
            return self.holds_for_leaves(&self.key.leaves(members));
        }
        match self.key.value(members) {
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

    fn holds_for_leaves(&self, leaves: &[&str]) -> bool {
        leaves.iter().any(|leaf| match &self.test {
            Test::Number(test) => number_passes(test, leaf),
            Test::NotNumber(test) => !number_passes(test, leaf),
            Test::Bool(expected) => is_bool(leaf, *expected),
            Test::Text(test) => self.text_passes(test, leaf),
            Test::NotText(test) => !self.text_passes(test, leaf),
            Test::IsNotNull => true,
            Test::IsNullOrUndefined => false,
        }) || self.test == Test::IsNullOrUndefined && leaves.is_empty()
    }

    fn text_passes(&self, test: &TextTest, value: &str) -> bool {
        text_of(&self.key, value).is_some_and(|text| test.passes(&text))
    }

    fn holds_for(&self, value: &str) -> bool {
        let any =
            |passes: &dyn Fn(&str) -> bool| candidates(value, self.arrays).into_iter().any(passes);
        let number = |test: &NumberTest| any(&|value| number_passes(test, value));
        let text = |test: &TextTest| any(&|value| self.text_passes(test, value));
        let is_comparable = self.arrays != Arrays::Fail || !value.starts_with('[');
        match &self.test {
            Test::Number(test) => number(test),
            Test::NotNumber(test) => is_comparable && !number(test),
            Test::Bool(expected) => any(&|value| is_bool(value, *expected)),
            Test::Text(test) => text(test),
            Test::NotText(test) => is_comparable && !text(test),
            Test::IsNullOrUndefined => false,
            Test::IsNotNull => true,
        }
    }
}

fn number_passes(test: &NumberTest, value: &str) -> bool {
    Number::parse(value).is_some_and(|number| test.passes(&number))
}

fn is_bool(value: &str, expected: bool) -> bool {
    value == if expected { "true" } else { "false" }
}

/// Returns the strings that a condition with this key compares, case-folded.
#[must_use]
pub fn folded_texts(key: &Key, arrays: Arrays, members: &Members<'_>) -> Vec<String> {
    let values = match arrays {
        Arrays::Leaves => key.leaves(members),
        Arrays::OtherType | Arrays::Elements | Arrays::Fail => {
            key.value(members).map(|value| candidates(value, arrays)).unwrap_or_default()
        }
    };
    let texts = values.into_iter().filter_map(|value| text_of(key, value));
    texts.map(|text| folded(&text)).collect()
}

/// Returns the values that are compared: the value itself, or the elements of the array.
fn candidates(value: &str, arrays: Arrays) -> Vec<&str> {
    if arrays != Arrays::Elements || !value.starts_with('[') {
        return vec![value];
    }
    let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

/// Returns the content of a string; `None` for most other values. A top-level number or boolean is
/// a string too, because CloudEvents attributes are compared as strings.
pub(super) fn text_of<'v>(key: &Key, value: &'v str) -> Option<Cow<'v, str>> {
    match value.as_bytes().first()? {
        b'"' => serde_json::from_str(value).ok().map(Cow::Owned),
        b'{' | b'[' | b'n' => None,
        _ => key.is_attribute().then_some(Cow::Borrowed(value)),
    }
}

#[cfg(test)]
mod tests;
