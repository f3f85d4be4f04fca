//! Conditions of Event Grid's `advancedFilters`: one key, one operator, its values.
//!
//! Separate because their rules are their own ("Event filtering", operators): a condition with
//! several values holds when one of them does, a negated one when none does; strings are compared
//! without regard to case; numbers exactly, digit by digit; values of another type than the
//! operator's are ignored.
//!
//! Null counts as a missing value. That fails every operator but `IsNullOrUndefined`, `NumberNotIn`,
//! `NumberNotInRange` and `StringNotIn`: the page lists `StringNotContains`, `StringNotBeginsWith` and
//! `StringNotEndsWith` among those that do not match. It is silent about `NumberNotInRange`, which the Azure Event Grid
//! Simulator treats as `NumberNotIn`. `docs/reference/conformance.md` has each case with its source.

mod shown;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::fold::folded;
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
    /// What becomes of an array.
    pub arrays: Arrays,
}

/// How an array is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arrays {
    /// As a value of another type than the operator's.
    OtherType,
    /// By its elements (`enableAdvancedFilteringOnArrays`).
    Elements,
    /// Not at all: every comparison fails, also a negated one (Event Grid on Kubernetes, "Filtering
    /// on array values").
    Fail,
    /// By its values that are no list and no object, as event patterns of Amazon EventBridge compare them. A comparison
    /// holds if it holds for one of them, also a negated one. Null is a value. The names of the key are compared exactly,
    /// and may lead through lists of objects.
    Leaves,
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

/// A comparison of a string with values, without regard to case unless `written` has them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextTest {
    how: TextMatch,
    folded: Vec<String>,
    written: Option<Vec<String>>,
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

impl Test {
    /// The number of values that it compares with.
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
    /// A comparison with each of these values.
    #[must_use]
    pub fn new(how: TextMatch, values: &[String]) -> Self {
        Self { how, folded: values.iter().map(|value| folded(value)).collect(), written: None }
    }

    /// A comparison with each of these values that regards case. Event Grid has none.
    #[must_use]
    pub fn with_case(how: TextMatch, values: Vec<String>) -> Self {
        Self { written: Some(values.clone()), ..Self::new(how, &values) }
    }

    /// How a string is compared with each of the values.
    #[must_use]
    pub fn how(&self) -> TextMatch {
        self.how
    }

    /// The values, with their case folded: a string that passes also passes with them, if its case is folded.
    #[must_use]
    pub fn folded(&self) -> &[String] {
        &self.folded
    }

    /// True if case is regarded.
    #[must_use]
    pub fn is_case_sensitive(&self) -> bool {
        self.written.is_some()
    }

    /// The values that a string is compared with.
    #[must_use]
    pub fn values(&self) -> &[String] {
        self.written.as_deref().unwrap_or(&self.folded)
    }

    /// Compares a string with each value.
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
    /// Whether the condition holds for an event with these members.
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

/// The strings that a condition with this key compares, with their case folded.
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

/// The values to compare: the value itself, or the elements of the array.
fn candidates(value: &str, arrays: Arrays) -> Vec<&str> {
    if arrays != Arrays::Elements || !value.starts_with('[') {
        return vec![value];
    }
    let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

/// A string's content; for a number or boolean among the event's own members its spelling, since attributes of CloudEvents
/// are compared as strings.
fn text_of<'v>(key: &Key, value: &'v str) -> Option<Cow<'v, str>> {
    match value.as_bytes().first()? {
        b'"' => serde_json::from_str(value).ok().map(Cow::Owned),
        b'{' | b'[' | b'n' => None,
        _ => key.is_attribute().then_some(Cow::Borrowed(value)),
    }
}

#[cfg(test)]
mod tests;
