//! A filter: conditions within conditions.
//!
//! Each condition is an object with one member, named as in files. Numbers are texts, since their digits count and not
//! a float.

use serde::{Deserialize, Serialize};

use super::field::of_field;
use crate::subscription::filter::Filter;
use crate::subscription::filter::advanced::{
    Arrays, Condition, NumberTest, Test, TextMatch, TextTest,
};
use crate::subscription::filter::key::Key;
use crate::subscription::filter::number::Number;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum FilterV1 {
    All(Vec<FilterV1>),
    Any(Vec<FilterV1>),
    Not(Box<FilterV1>),
    /// The member's name and the value it is compared with, as in the next three.
    Exact(String, String),
    ExactText(String, String),
    Prefix(String, String),
    Suffix(String, String),
    Advanced {
        key: String,
        test: TestV1,
        /// The elements of an array are compared.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        arrays: bool,
        /// An array fails every comparison.
        #[serde(rename = "noArrays", default, skip_serializing_if = "std::ops::Not::not")]
        no_arrays: bool,
    },
    /// The canonical text of the expression.
    Cesql(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum TestV1 {
    Number(NumberTestV1),
    NotNumber(NumberTestV1),
    Bool(bool),
    Text(TextTestV1),
    NotText(TextTestV1),
    IsNullOrUndefined,
    IsNotNull,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum NumberTestV1 {
    In(Vec<String>),
    LessThan(String),
    LessThanOrEquals(String),
    GreaterThan(String),
    GreaterThanOrEquals(String),
    InRange(Vec<(String, String)>),
}

/// The values are compared without regard to case.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum TextTestV1 {
    In(Vec<String>),
    Contains(Vec<String>),
    BeginsWith(Vec<String>),
    EndsWith(Vec<String>),
}

impl From<&Filter> for FilterV1 {
    fn from(filter: &Filter) -> Self {
        match filter {
            Filter::All(filters) => Self::All(filters.iter().map(Self::from).collect()),
            Filter::Any(filters) => Self::Any(filters.iter().map(Self::from).collect()),
            Filter::Not(filter) => Self::Not(Box::new(Self::from(&**filter))),
            Filter::Exact { name, value } => Self::Exact(name.clone(), value.clone()),
            Filter::ExactText { name, value } => Self::ExactText(name.clone(), value.clone()),
            Filter::Prefix { name, value } => Self::Prefix(name.clone(), value.clone()),
            Filter::Suffix { name, value } => Self::Suffix(name.clone(), value.clone()),
            Filter::Advanced(Condition { key, test, arrays }) => {
                let (arrays, no_arrays) = (*arrays == Arrays::Elements, *arrays == Arrays::Fail);
                Self::Advanced { key: key.to_string(), test: test.into(), arrays, no_arrays }
            }
            Filter::Cesql(cesql) => Self::Cesql(cesql.to_string()),
        }
    }
}

impl FilterV1 {
    pub(super) fn into_filter(self) -> Result<Filter, String> {
        let several = |filters: Vec<Self>| {
            filters.into_iter().map(Self::into_filter).collect::<Result<Vec<_>, _>>()
        };
        Ok(match self {
            Self::All(filters) => Filter::All(several(filters)?),
            Self::Any(filters) => Filter::Any(several(filters)?),
            Self::Not(filter) => Filter::Not(Box::new(filter.into_filter()?)),
            Self::Exact(name, value) => Filter::Exact { name, value },
            Self::ExactText(name, value) => Filter::ExactText { name, value },
            Self::Prefix(name, value) => Filter::Prefix { name, value },
            Self::Suffix(name, value) => Filter::Suffix { name, value },
            Self::Advanced { key, test, arrays, no_arrays } => {
                let invalid = || format!("{key:?} is not a key, such as data.order.total");
                let key = of_field("filter", Key::parse(&key).ok_or_else(invalid))?;
                let arrays = match (no_arrays, arrays) {
                    (true, _) => Arrays::Fail,
                    (false, true) => Arrays::Elements,
                    (false, false) => Arrays::OtherType,
                };
                Filter::Advanced(Condition { key, test: test.into_test()?, arrays })
            }
            Self::Cesql(text) => Filter::Cesql(of_field("filter", text.parse())?),
        })
    }
}

impl From<&Test> for TestV1 {
    fn from(test: &Test) -> Self {
        match test {
            Test::Number(test) => Self::Number(test.into()),
            Test::NotNumber(test) => Self::NotNumber(test.into()),
            Test::Bool(expected) => Self::Bool(*expected),
            Test::Text(test) => Self::Text(test.into()),
            Test::NotText(test) => Self::NotText(test.into()),
            Test::IsNullOrUndefined => Self::IsNullOrUndefined,
            Test::IsNotNull => Self::IsNotNull,
        }
    }
}

impl TestV1 {
    fn into_test(self) -> Result<Test, String> {
        Ok(match self {
            Self::Number(test) => Test::Number(test.into_test()?),
            Self::NotNumber(test) => Test::NotNumber(test.into_test()?),
            Self::Bool(expected) => Test::Bool(expected),
            Self::Text(test) => Test::Text(test.into()),
            Self::NotText(test) => Test::NotText(test.into()),
            Self::IsNullOrUndefined => Test::IsNullOrUndefined,
            Self::IsNotNull => Test::IsNotNull,
        })
    }
}

impl From<&NumberTest> for NumberTestV1 {
    fn from(test: &NumberTest) -> Self {
        let range = |(least, most): &(Number, Number)| (least.to_string(), most.to_string());
        match test {
            NumberTest::In(numbers) => Self::In(numbers.iter().map(ToString::to_string).collect()),
            NumberTest::LessThan(number) => Self::LessThan(number.to_string()),
            NumberTest::LessThanOrEquals(number) => Self::LessThanOrEquals(number.to_string()),
            NumberTest::GreaterThan(number) => Self::GreaterThan(number.to_string()),
            NumberTest::GreaterThanOrEquals(number) => {
                Self::GreaterThanOrEquals(number.to_string())
            }
            NumberTest::InRange(ranges) => Self::InRange(ranges.iter().map(range).collect()),
        }
    }
}

impl NumberTestV1 {
    fn into_test(self) -> Result<NumberTest, String> {
        let range = |(least, most): (String, String)| Ok((number(&least)?, number(&most)?));
        Ok(match self {
            Self::In(numbers) => {
                NumberTest::In(numbers.iter().map(|text| number(text)).collect::<Result<_, _>>()?)
            }
            Self::LessThan(text) => NumberTest::LessThan(number(&text)?),
            Self::LessThanOrEquals(text) => NumberTest::LessThanOrEquals(number(&text)?),
            Self::GreaterThan(text) => NumberTest::GreaterThan(number(&text)?),
            Self::GreaterThanOrEquals(text) => NumberTest::GreaterThanOrEquals(number(&text)?),
            Self::InRange(ranges) => {
                NumberTest::InRange(ranges.into_iter().map(range).collect::<Result<_, String>>()?)
            }
        })
    }
}

fn number(text: &str) -> Result<Number, String> {
    let invalid = || format!("{text:?} is not a number, such as -12.5e3");
    of_field("filter", Number::parse(text).ok_or_else(invalid))
}

impl From<&TextTest> for TextTestV1 {
    fn from(test: &TextTest) -> Self {
        let values = test.folded().to_vec();
        match test.how() {
            TextMatch::In => Self::In(values),
            TextMatch::Contains => Self::Contains(values),
            TextMatch::BeginsWith => Self::BeginsWith(values),
            TextMatch::EndsWith => Self::EndsWith(values),
        }
    }
}

impl From<TextTestV1> for TextTest {
    fn from(test: TextTestV1) -> Self {
        let (how, values) = match test {
            TextTestV1::In(values) => (TextMatch::In, values),
            TextTestV1::Contains(values) => (TextMatch::Contains, values),
            TextTestV1::BeginsWith(values) => (TextMatch::BeginsWith, values),
            TextTestV1::EndsWith(values) => (TextMatch::EndsWith, values),
        };
        Self::new(how, &values)
    }
}
