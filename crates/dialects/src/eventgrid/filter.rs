//! Reads `filter` and `filtersConfiguration`, which select the events of a subscription.
//!
//! Separate because the operators' values have their own types and limits. All parts have to match:
//! the event type, the prefix and suffix of the subject, and every advanced filter.

use super::words;
use delivery::document::reader::{Cursor, Fields, read_each};
use delivery::subscription::filter::Filter;
use delivery::subscription::filter::advanced::{Arrays, Condition, Test, TextMatch, TextTest};
use delivery::subscription::filter::key::Key;
use delivery::subscription::kinds::advanced;
use delivery::subscription::kinds::conditions::Compare;
use delivery::subscription::profile::Dialect;

/// Maximum number of advanced filters per subscription, from the limitations in the Event Grid page
/// "Event filtering".
const FILTERS_MAX: usize = 25;
/// Maximum number of values in all filters together. A range counts as one value.
const VALUES_MAX: usize = 25;
/// Value of `includedEventTypes` that includes every type.
const ALL: &str = "All";

/// Reads the filter in `properties`. Without one, every event matches.
pub(super) fn read(fields: &Fields<'_>, dialect: Dialect) -> Option<Filter> {
    let mut parts = Vec::new();
    fields.section("filter", |filter| {
        parts.push(types(filter));
        parts.push(subject(filter));
        parts.push(conditions(filter, "advancedFilters", dialect));
    });
    // Subscriptions to namespace topics have `filtersConfiguration` instead of `filter`.
    fields.section("filtersConfiguration", |filter| {
        parts.push(types(filter));
        parts.push(conditions(filter, "filters", dialect));
    });
    let parts = parts.into_iter().collect::<Option<Vec<Vec<Filter>>>>()?;
    Some(Filter::All(parts.into_iter().flatten().collect()))
}

/// Reads `includedEventTypes`, which has to contain the event's type. `All`, `null` and an empty
/// list match every type.
fn types(fields: &Fields<'_>) -> Option<Vec<Filter>> {
    let Some(cursor) = fields.given("includedEventTypes") else { return Some(Vec::new()) };
    let elements = cursor.list()?;
    let texts = elements.iter().map(Cursor::text).collect::<Option<Vec<&str>>>()?;
    if texts.is_empty() || texts.iter().any(|text| text.eq_ignore_ascii_case(ALL)) {
        return Some(Vec::new());
    }
    // CloudEvents name this attribute `type`, and the Event Grid schema names it `eventType`.
    let exact = |text: &str| {
        ["type", "eventType"]
            .map(|name| Filter::Exact { name: name.to_owned(), value: text.to_owned() })
    };
    Some(vec![Filter::Any(texts.into_iter().flat_map(exact).collect())])
}

/// Reads the conditions on the prefix and the suffix of the subject. Case is ignored unless the
/// filter states otherwise.
fn subject(fields: &Fields<'_>) -> Option<Vec<Filter>> {
    let sensitive = fields.is_true("isSubjectCaseSensitive");
    let begins: Compare = |name, value| Filter::Prefix { name, value };
    let ends: Compare = |name, value| Filter::Suffix { name, value };
    let both = [
        ("subjectBeginsWith", begins, TextMatch::BeginsWith),
        ("subjectEndsWith", ends, TextMatch::EndsWith),
    ];
    // Read both fields even after an error, to report every error.
    let read = both.map(|(field, with_case, how)| {
        let Some(cursor) = fields.given(field) else { return Some(None) };
        let value = cursor.text()?.to_owned();
        if value.is_empty() {
            return Some(None);
        }
        let name = "subject".to_owned();
        if sensitive {
            return Some(Some(with_case(name, value)));
        }
        let test = Test::Text(TextTest::new(how, &[value]));
        let key = Key::parse(&name)?;
        Some(Some(Filter::Advanced(Condition { key, test, arrays: Arrays::OtherType })))
    });
    let read = read.into_iter().collect::<Option<Vec<Option<Filter>>>>()?;
    Some(read.into_iter().flatten().collect())
}

/// Reads a list of advanced filters.
fn conditions(fields: &Fields<'_>, name: &'static str, dialect: Dialect) -> Option<Vec<Filter>> {
    let arrays = arrays(fields, dialect);
    let Some(cursor) = fields.given(name) else { return Some(Vec::new()) };
    let elements = cursor.list()?;
    if elements.len() > FILTERS_MAX {
        cursor
            .error(format!("at most {FILTERS_MAX} filters are allowed, found {}", elements.len()));
    }
    let values: usize = elements.iter().map(values_of).sum();
    if values > VALUES_MAX {
        cursor.error(format!(
            "at most {VALUES_MAX} values are allowed in total in all filters, found {values}"
        ));
    }
    read_each(&elements, |element| {
        element.mapping(|fields| advanced::condition(fields, arrays, words::read)).flatten()
    })
}

/// Returns how this dialect compares arrays.
fn arrays(fields: &Fields<'_>, dialect: Dialect) -> Arrays {
    match (fields.is_true("enableAdvancedFilteringOnArrays"), dialect) {
        (false, Dialect::EventGridKubernetes) => Arrays::Fail,
        (
            false,
            Dialect::Knative
            | Dialect::EventGrid
            | Dialect::EventGridResource
            | Dialect::EventGridNamespace
            | Dialect::Native,
        ) => Arrays::OtherType,
        (true, _) => Arrays::Elements,
    }
}

/// Counts the values of a filter, in `values` and `value` together. Reports nothing.
fn values_of(filter: &Cursor<'_>) -> usize {
    let several = filter.peek("values").filter(Cursor::is_list).and_then(|values| values.list());
    let single = filter.peek("value").filter(|value| !value.is_null());
    several.map_or(0, |values| values.len()) + usize::from(single.is_some())
}
