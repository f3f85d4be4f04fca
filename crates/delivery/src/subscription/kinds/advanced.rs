//! Reads and writes conditions of Event Grid's advanced filters, as documents state them.
//!
//! This module is separate because two formats have these conditions: Event Grid resources, and the
//! native documents into which they are translated.

use serde_json::{Value as Json, json};

use crate::document::findings::Message;
use crate::document::reader::{Cursor, Fields, read_each};
use crate::subscription::filter::Filter;
use crate::subscription::filter::advanced::{
    Arrays, Condition, NumberTest, Test, TextMatch, TextTest,
};
use crate::subscription::filter::key::Key;
use crate::subscription::filter::number::Number;

/// Maximum length in characters of a string in `values`.
const TEXT_MAX_CHARS: usize = 512;

/// The names of the rules for comparing arrays in native documents.
const ARRAYS: [(&str, Arrays); 4] = [
    ("otherType", Arrays::OtherType),
    ("elements", Arrays::Elements),
    ("fail", Arrays::Fail),
    ("leaves", Arrays::Leaves),
];

/// Name of the field that makes comparisons of strings case-sensitive.
const CASE_SENSITIVE: &str = "caseSensitive";

/// Reads a condition of a native document.
pub fn native(at: &Cursor<'_>) -> Option<Filter> {
    at.mapping(|fields| {
        let arrays = fields.get("arrays").map_or(Some(Arrays::OtherType), |at| at.choice(&ARRAYS));
        let with_case = fields.is_true(CASE_SENSITIVE);
        let exactly = |at: &Cursor<'_>, words: &[(&'static str, ReadTest)]| at.choice(words);
        let condition = condition(fields, arrays?, exactly)?;
        if with_case { case_sensitive(fields, condition) } else { Some(condition) }
    })?
}

/// Reads the values again in their original case. Reports a condition that does not compare texts,
/// because only texts can be case-sensitive.
fn case_sensitive(fields: &Fields<'_>, filter: Filter) -> Option<Filter> {
    let Filter::Advanced(Condition { key, test, arrays }) = filter else { return Some(filter) };
    let with_case = |test: &TextTest| Some(TextTest::with_case(test.how(), several(fields, text)?));
    let test = match &test {
        Test::Text(test) => Test::Text(with_case(test)?),
        Test::NotText(test) => Test::NotText(with_case(test)?),
        Test::Number(_)
        | Test::NotNumber(_)
        | Test::Bool(_)
        | Test::IsNullOrUndefined
        | Test::IsNotNull => {
            let message =
                format!("{CASE_SENSITIVE} applies only to operators that compare strings");
            return fields.parent().refuse(message);
        }
    };
    Some(Filter::Advanced(Condition { key, test, arrays }))
}

/// Returns a condition as a native document states it.
pub fn written(Condition { key, test, arrays }: &Condition) -> Json {
    let (operator, values) = match test {
        Test::Number(test) => number_test(test, false),
        Test::NotNumber(test) => number_test(test, true),
        Test::Bool(expected) => ("BoolEquals", Some(("value", json!(expected)))),
        Test::Text(test) => text_test(test, false),
        Test::NotText(test) => text_test(test, true),
        Test::IsNullOrUndefined => ("IsNullOrUndefined", None),
        Test::IsNotNull => ("IsNotNull", None),
    };
    let mut written = json!({ "operatorType": operator, "key": key.to_string() });
    if let Some((field, values)) = values {
        written[field] = values;
    }
    if let Test::Text(test) | Test::NotText(test) = test
        && test.is_case_sensitive()
    {
        written[CASE_SENSITIVE] = json!(true);
    }
    let word = ARRAYS.iter().find(|(_, choice)| choice == arrays && *choice != Arrays::OtherType);
    if let Some((word, _)) = word {
        written["arrays"] = json!(word);
    }
    written
}

/// The name of an operator, the name of the field with its values, and the values.
type Operator = (&'static str, Option<(&'static str, Json)>);

fn number_test(test: &NumberTest, is_negated: bool) -> Operator {
    let list = |all: &[Number]| Some(("values", all.iter().map(number_json).collect()));
    let single = |number: &Number| Some(("value", number_json(number)));
    match test {
        NumberTest::In(all) if is_negated => ("NumberNotIn", list(all)),
        NumberTest::In(all) => ("NumberIn", list(all)),
        NumberTest::LessThan(than) => ("NumberLessThan", single(than)),
        NumberTest::LessThanOrEquals(than) => ("NumberLessThanOrEquals", single(than)),
        NumberTest::GreaterThan(than) => ("NumberGreaterThan", single(than)),
        NumberTest::GreaterThanOrEquals(than) => ("NumberGreaterThanOrEquals", single(than)),
        NumberTest::InRange(ranges) => {
            let pair =
                |(least, most): &(Number, Number)| json!([number_json(least), number_json(most)]);
            let ranges = Some(("values", ranges.iter().map(pair).collect()));
            (if is_negated { "NumberNotInRange" } else { "NumberInRange" }, ranges)
        }
    }
}

fn text_test(test: &TextTest, is_negated: bool) -> Operator {
    let operator = match (test.how(), is_negated) {
        (TextMatch::In, false) => "StringIn",
        (TextMatch::In, true) => "StringNotIn",
        (TextMatch::Contains, false) => "StringContains",
        (TextMatch::Contains, true) => "StringNotContains",
        (TextMatch::BeginsWith, false) => "StringBeginsWith",
        (TextMatch::BeginsWith, true) => "StringNotBeginsWith",
        (TextMatch::EndsWith, false) => "StringEndsWith",
        (TextMatch::EndsWith, true) => "StringNotEndsWith",
    };
    (operator, Some(("values", json!(test.values()))))
}

/// Returns the number as JSON. If a JSON number would lose digits, returns the digits as a string.
fn number_json(number: &Number) -> Json {
    let text = number.to_string();
    let whole = text.parse::<i64>().map(|whole| json!(whole)).ok();
    let fraction = || text.parse::<f64>().map(|fraction| json!(fraction)).ok();
    whole.or_else(fraction).filter(|json| format!("{json}") == text).unwrap_or_else(|| json!(text))
}

/// Reads a number. A string is accepted if its number would lose digits as a JSON number.
fn any_number(at: &Cursor<'_>) -> Option<Number> {
    let of_text = at.peek_text().and_then(Number::parse);
    match of_text.filter(|number| number_json(number).is_string()) {
        Some(number) => Some(number),
        None => at.number(),
    }
}

/// Finds the function that reads the test of an operator, by the name that the cursor contains.
type ReadOperator = fn(&Cursor<'_>, &[(&'static str, ReadTest)]) -> Option<ReadTest>;

/// Reads a condition with its key, its operator and its values. `operator` finds the reader of the
/// operator.
pub fn condition(fields: &Fields<'_>, arrays: Arrays, operator: ReadOperator) -> Option<Filter> {
    let key = fields.required("key").and_then(|cursor| {
        Key::parse(cursor.text()?).or_else(|| {
            cursor.refuse(Message::new("not a valid key").help("such as subject or data.key1.key2"))
        })
    });
    let operator = fields.required("operatorType").and_then(|at| operator(&at, &OPERATORS));
    let test = operator.and_then(|read| read(fields));
    if operator.is_none() {
        fields.accept(&["value", "values"]);
    }
    Some(Filter::Advanced(Condition { key: key?, test: test?, arrays }))
}

/// Reads the values of one operator, and returns the test.
pub type ReadTest = fn(&Fields<'_>) -> Option<Test>;

/// The operators of advanced filters, each with the function that reads its test.
const OPERATORS: [(&str, ReadTest); 19] = [
    ("NumberIn", |fields| numbers(fields).map(Test::Number)),
    ("NumberNotIn", |fields| numbers(fields).map(Test::NotNumber)),
    ("NumberLessThan", |fields| number(fields, NumberTest::LessThan)),
    ("NumberLessThanOrEquals", |fields| number(fields, NumberTest::LessThanOrEquals)),
    ("NumberGreaterThan", |fields| number(fields, NumberTest::GreaterThan)),
    ("NumberGreaterThanOrEquals", |fields| number(fields, NumberTest::GreaterThanOrEquals)),
    ("NumberInRange", |fields| ranges(fields).map(Test::Number)),
    ("NumberNotInRange", |fields| ranges(fields).map(Test::NotNumber)),
    ("BoolEquals", |fields| fields.required("value")?.boolean().map(Test::Bool)),
    ("StringContains", |fields| texts(fields, TextMatch::Contains).map(Test::Text)),
    ("StringNotContains", |fields| texts(fields, TextMatch::Contains).map(Test::NotText)),
    ("StringBeginsWith", |fields| texts(fields, TextMatch::BeginsWith).map(Test::Text)),
    ("StringNotBeginsWith", |fields| texts(fields, TextMatch::BeginsWith).map(Test::NotText)),
    ("StringEndsWith", |fields| texts(fields, TextMatch::EndsWith).map(Test::Text)),
    ("StringNotEndsWith", |fields| texts(fields, TextMatch::EndsWith).map(Test::NotText)),
    ("StringIn", |fields| texts(fields, TextMatch::In).map(Test::Text)),
    ("StringNotIn", |fields| texts(fields, TextMatch::In).map(Test::NotText)),
    ("IsNullOrUndefined", |_| Some(Test::IsNullOrUndefined)),
    ("IsNotNull", |_| Some(Test::IsNotNull)),
];

fn number(fields: &Fields<'_>, make: fn(Number) -> NumberTest) -> Option<Test> {
    any_number(&fields.required("value")?).map(make).map(Test::Number)
}

fn numbers(fields: &Fields<'_>) -> Option<NumberTest> {
    several(fields, any_number).map(NumberTest::In)
}

fn ranges(fields: &Fields<'_>) -> Option<NumberTest> {
    several(fields, range).map(NumberTest::InRange)
}

fn texts(fields: &Fields<'_>, how: TextMatch) -> Option<TextTest> {
    several(fields, text).map(|texts| TextTest::new(how, &texts))
}

/// Reads the field `values`, which must have at least one element.
fn several<'a, T>(fields: &Fields<'a>, read: impl Fn(&Cursor<'a>) -> Option<T>) -> Option<Vec<T>> {
    let cursor = fields.required("values")?;
    let elements = cursor.list()?;
    if elements.is_empty() {
        return cursor.refuse("at least one value is required");
    }
    read_each(&elements, read)
}

fn text(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    let chars = text.chars().count();
    if chars > TEXT_MAX_CHARS {
        return cursor.refuse(format!(
            "a value must have at most {TEXT_MAX_CHARS} characters, but has {chars}"
        ));
    }
    Some(text.to_owned())
}

/// Reads a range: a list of two numbers in ascending order. Both ends are inclusive.
fn range(cursor: &Cursor<'_>) -> Option<(Number, Number)> {
    let ends: Vec<Option<Number>> = cursor.list()?.iter().map(any_number).collect();
    match ends.as_slice() {
        [Some(least), Some(most)] if least <= most => Some((least.clone(), most.clone())),
        [None, _] | [_, None] => None,
        _ => cursor.refuse(
            Message::new("a range must be two numbers, the smaller one first")
                .help("such as [3000, 4000]"),
        ),
    }
}
