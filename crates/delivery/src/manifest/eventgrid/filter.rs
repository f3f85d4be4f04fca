//! `filter` and `filtersConfiguration`: which events a subscription delivers.
//!
//! Separate because the operators' values have types and limits of their own. All parts have to
//! hold: the type of the event, how its subject begins and ends, and every advanced filter.

use super::super::conditions::Compare;
use super::super::findings::Message;
use super::super::reader::{Cursor, Fields, read_each};
use super::words;
use crate::subscription::filter::Filter;
use crate::subscription::filter::advanced::{Condition, NumberTest, Test, TextMatch, TextTest};
use crate::subscription::filter::key::Key;
use crate::subscription::filter::number::Number;

/// "Event filtering", limitations: advanced filters of one subscription.
const FILTERS_MAX: usize = 25;
/// Values of all of them together; a range is one value.
const VALUES_MAX: usize = 25;
/// Characters of a value.
const TEXT_MAX_CHARS: usize = 512;
/// The value for every type.
const ALL: &str = "All";

/// Reads the filter among the fields of `properties`; it matches everything where there is none.
pub(super) fn read(fields: &Fields<'_>) -> Option<Filter> {
    let mut parts = Vec::new();
    fields.section("filter", |filter| {
        parts.push(types(filter));
        parts.push(subject(filter));
        parts.push(conditions(filter, "advancedFilters"));
    });
    // Subscriptions to namespace topics have this field instead.
    fields.section("filtersConfiguration", |filter| {
        parts.push(types(filter));
        parts.push(conditions(filter, "filters"));
    });
    let parts = parts.into_iter().collect::<Option<Vec<Vec<Filter>>>>()?;
    Some(Filter::All(parts.into_iter().flatten().collect()))
}

/// `includedEventTypes`: the type is one of the list; `All`, `null` and an empty list match every
/// type.
fn types(fields: &Fields<'_>) -> Option<Vec<Filter>> {
    let Some(cursor) = fields.given("includedEventTypes") else { return Some(Vec::new()) };
    let elements = cursor.list()?;
    let texts = elements.iter().map(Cursor::text).collect::<Option<Vec<&str>>>()?;
    if texts.is_empty() || texts.iter().any(|text| text.eq_ignore_ascii_case(ALL)) {
        return Some(Vec::new());
    }
    // The same attribute under its name in either schema.
    let exact = |text: &str| {
        ["type", "eventType"]
            .map(|name| Filter::Exact { name: name.to_owned(), value: text.to_owned() })
    };
    Some(vec![Filter::Any(texts.into_iter().flat_map(exact).collect())])
}

/// How the subject begins and ends; compared with case only where the filter says so.
fn subject(fields: &Fields<'_>) -> Option<Vec<Filter>> {
    let sensitive = fields.is_true("isSubjectCaseSensitive");
    let mut filters = Vec::new();
    let begins: Compare = |name, value| Filter::Prefix { name, value };
    let ends: Compare = |name, value| Filter::Suffix { name, value };
    for (field, with_case, how) in [
        ("subjectBeginsWith", begins, TextMatch::BeginsWith),
        ("subjectEndsWith", ends, TextMatch::EndsWith),
    ] {
        let Some(cursor) = fields.given(field) else { continue };
        let value = cursor.text()?.to_owned();
        if value.is_empty() {
            continue;
        }
        let name = "subject".to_owned();
        filters.push(if sensitive {
            with_case(name, value)
        } else {
            let test = Test::Text(TextTest::new(how, &[value]));
            Filter::Advanced(Condition { key: Key::parse(&name)?, test, arrays: false })
        });
    }
    Some(filters)
}

/// The advanced filters of a list, and whether they look into arrays.
fn conditions(fields: &Fields<'_>, name: &'static str) -> Option<Vec<Filter>> {
    let arrays = fields.is_true("enableAdvancedFilteringOnArrays");
    let Some(cursor) = fields.given(name) else { return Some(Vec::new()) };
    let elements = cursor.list()?;
    if elements.len() > FILTERS_MAX {
        cursor
            .error(format!("at most {FILTERS_MAX} filters are allowed, found {}", elements.len()));
    }
    let values: usize = elements.iter().map(values_of).sum();
    if values > VALUES_MAX {
        cursor.error(format!(
            "at most {VALUES_MAX} values are allowed in all filters together, found {values}"
        ));
    }
    read_each(&elements, |element| element.mapping(|fields| condition(fields, arrays)).flatten())
}

/// How many values a filter has, in `values` and `value` together; reports nothing.
fn values_of(filter: &Cursor<'_>) -> usize {
    let several = filter.peek("values").filter(Cursor::is_list).and_then(|values| values.list());
    let single = filter.peek("value").filter(|value| !value.is_null());
    several.map_or(0, |values| values.len()) + usize::from(single.is_some())
}

fn condition(fields: &Fields<'_>, arrays: bool) -> Option<Filter> {
    let key = fields.required("key").and_then(|cursor| {
        Key::parse(cursor.text()?).or_else(|| {
            cursor.refuse(Message::new("not a key").help("such as subject or data.key1.key2"))
        })
    });
    let operator =
        fields.required("operatorType").and_then(|cursor| words::read(&cursor, &OPERATORS));
    let test = operator.and_then(|operator| test(operator, fields));
    if operator.is_none() {
        fields.accept(&["value", "values"]);
    }
    Some(Filter::Advanced(Condition { key: key?, test: test?, arrays }))
}

/// Every operator.
const OPERATORS: [&str; 19] = [
    "NumberIn",
    "NumberNotIn",
    "NumberLessThan",
    "NumberLessThanOrEquals",
    "NumberGreaterThan",
    "NumberGreaterThanOrEquals",
    "NumberInRange",
    "NumberNotInRange",
    "BoolEquals",
    "StringContains",
    "StringNotContains",
    "StringBeginsWith",
    "StringNotBeginsWith",
    "StringEndsWith",
    "StringNotEndsWith",
    "StringIn",
    "StringNotIn",
    "IsNullOrUndefined",
    "IsNotNull",
];

/// The test of an operator with its values.
fn test(operator: &str, fields: &Fields<'_>) -> Option<Test> {
    let value = |make: fn(Number) -> NumberTest| {
        Some(Test::Number(make(fields.required("value")?.number()?)))
    };
    let text = |how| Some(TextTest::new(how, &several(fields, text)?));
    match operator {
        "NumberIn" => Some(Test::Number(NumberTest::In(several(fields, Cursor::number)?))),
        "NumberNotIn" => Some(Test::NotNumber(NumberTest::In(several(fields, Cursor::number)?))),
        "NumberLessThan" => value(NumberTest::LessThan),
        "NumberLessThanOrEquals" => value(NumberTest::LessThanOrEquals),
        "NumberGreaterThan" => value(NumberTest::GreaterThan),
        "NumberGreaterThanOrEquals" => value(NumberTest::GreaterThanOrEquals),
        "NumberInRange" => Some(Test::Number(NumberTest::InRange(several(fields, range)?))),
        "NumberNotInRange" => Some(Test::NotNumber(NumberTest::InRange(several(fields, range)?))),
        "BoolEquals" => Some(Test::Bool(fields.required("value")?.boolean()?)),
        "StringContains" => Some(Test::Text(text(TextMatch::Contains)?)),
        "StringNotContains" => Some(Test::NotText(text(TextMatch::Contains)?)),
        "StringBeginsWith" => Some(Test::Text(text(TextMatch::BeginsWith)?)),
        "StringNotBeginsWith" => Some(Test::NotText(text(TextMatch::BeginsWith)?)),
        "StringEndsWith" => Some(Test::Text(text(TextMatch::EndsWith)?)),
        "StringNotEndsWith" => Some(Test::NotText(text(TextMatch::EndsWith)?)),
        "StringIn" => Some(Test::Text(text(TextMatch::In)?)),
        "StringNotIn" => Some(Test::NotText(text(TextMatch::In)?)),
        "IsNullOrUndefined" => Some(Test::IsNullOrUndefined),
        "IsNotNull" => Some(Test::IsNotNull),
        _ => None,
    }
}

/// `values`, at least one, each as `read` reads it.
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
        return cursor
            .refuse(format!("a value is at most {TEXT_MAX_CHARS} characters, this has {chars}"));
    }
    Some(text.to_owned())
}

/// Two numbers, the first not above the second; both belong to the range.
fn range(cursor: &Cursor<'_>) -> Option<(Number, Number)> {
    let ends: Vec<Option<Number>> = cursor.list()?.iter().map(Cursor::number).collect();
    match ends.as_slice() {
        [Some(least), Some(most)] if least <= most => Some((least.clone(), most.clone())),
        [None, _] | [_, None] => None,
        _ => cursor.refuse(
            Message::new("a range is two numbers, the smaller one first")
                .help("such as [3000, 4000]"),
        ),
    }
}
