//! Reads `filter.attributes` and `filters` of a Trigger, which select the events of a broker.
//!
//! Separate because the rules differ from those of our own `filter`:
//! - An empty value in `filter.attributes` requires the attribute, with any value.
//! - Each element of `filters` has one operator.
//! - `filters` replace `filter`, unless the list is empty.
//! - A missing attribute fails every comparison, and so matches under `not`.

use super::class::Class;
use super::old;
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Entry, Fields, read_each};
use delivery::subscription::filter::Filter;
use delivery::subscription::filter::number::Number;
use delivery::subscription::kinds::conditions::{
    Compare, OPERATORS, VISIBLE, cesql, check_depth, is_attribute, joined, operators,
};

/// Maximum nesting of expressions. The native form allows two levels more: for a joined list, and
/// for a required attribute.
const DEPTH_MAX: usize = 8;

/// Operators of a filter expression.
const WORDS: [&str; 8] = ["exact", "prefix", "suffix", "all", "any", "not", "cesql", "sql"];

/// Attributes that are text in every event, because they are not extensions.
const TEXT_ATTRIBUTES: [&str; 8] =
    ["datacontenttype", "dataschema", "id", "source", "specversion", "subject", "time", "type"];

/// Reads the filter in a Trigger's `spec`. `class` is the class of the Trigger's broker.
pub(super) fn read(spec: &Fields<'_>, class: Class) -> Option<Filter> {
    let of_attributes = spec.section("filter", |fields| attributes(fields, class));
    let Some(filters) = spec.given("filters") else {
        return of_attributes.unwrap_or(Some(Filter::EVERYTHING));
    };
    let elements = filters.list()?;
    if elements.is_empty() {
        return of_attributes.unwrap_or(Some(Filter::EVERYTHING));
    }
    if let Some(key) = spec.given_key("filter") {
        key.warn("no effect: filters is also set");
    }
    read_each(&elements, |element| expression(element, 1)).map(joined)
}

fn attributes(fields: &Fields<'_>, class: Class) -> Option<Filter> {
    match fields.given("attributes") {
        Some(attributes) => {
            let compares_text = class.compares_attributes_as_text();
            if !compares_text {
                warn_of_types(&attributes);
            }
            compared(&attributes, |name, value| match value.as_str() {
                "" => present(name),
                _ if compares_text => Filter::Exact { name, value },
                _ => same_type(name, value),
            })
        }
        None if fields.given("sourceAndType").is_some() => {
            fields.given("sourceAndType").and_then(|at| old::source_and_type(&at))
        }
        None if fields
            .parent()
            .entries()
            .is_some_and(|entries| entries.iter().all(|entry| entry.value.is_null())) =>
        {
            Some(Filter::EVERYTHING)
        }
        None => fields.parent().refuse(
            Message::new("the filter has no supported condition")
                .help("attributes: {type: order.created}"),
        ),
    }
}

/// Returns a filter that requires the attribute, with any value. An empty value counts as absent.
fn present(name: String) -> Filter {
    let empty = Filter::Exact { name: name.clone(), value: String::new() };
    Filter::All(vec![Filter::Prefix { name, value: String::new() }, Filter::Not(Box::new(empty))])
}

fn expression(cursor: &Cursor<'_>, depth: usize) -> Option<Filter> {
    check_depth(cursor, depth, DEPTH_MAX)?;
    let has_condition =
        |entry: &Entry<'_>| !(entry.value.is_empty() && WORDS.contains(&entry.name));
    if depth == 1 && !cursor.entries()?.iter().any(has_condition) {
        // At the top level, Knative accepts an expression without a condition, even with empty
        // operators.
        return Some(Filter::EVERYTHING);
    }
    let mut conditions = cursor.mapping(|fields| conditions(fields, depth))?;
    match conditions.len() {
        0 => cursor.error(Message::new("the filter has no supported condition").help(OPERATORS)),
        1 => return conditions.pop()?,
        _ => cursor.error(
            Message::new("an expression must have exactly one operator")
                .help("combine several operators with all"),
        ),
    }
    None
}

/// Returns the condition of each operator in one expression; `None` for a condition that cannot be
/// read.
fn conditions(fields: &Fields<'_>, depth: usize) -> Vec<Option<Filter>> {
    let inner = |cursor: &Cursor<'_>| expression(cursor, depth + 1);
    let mut conditions = operators(|name| fields.given(name), compared_with_values, inner);
    // The Subscriptions API names this operator `sql`.
    conditions.extend(fields.given("sql").map(|sql| cesql(&sql)));
    conditions
}

fn compared_with_values(cursor: &Cursor<'_>, compare: Compare) -> Option<Filter> {
    let members = cursor.entries()?;
    if members.is_empty() {
        return cursor
            .refuse(Message::new("no attribute to compare").help("such as {type: order.created}"));
    }
    for member in members.iter().filter(|member| member.value.peek_text() == Some("")) {
        member.value.error("an empty value cannot be compared");
    }
    compared(cursor, compare)
}

/// Returns a filter that requires all attributes of a mapping to match.
fn compared(cursor: &Cursor<'_>, compare: impl Fn(String, String) -> Filter) -> Option<Filter> {
    let mut filters = Vec::new();
    for member in cursor.entries()? {
        if !is_attribute(member.name) {
            let message = Message::new("not the name of an attribute");
            member.key.error(message.help(VISIBLE));
        }
        filters.push(member.value.scalar().map(|value| compare(member.name.to_owned(), value)));
    }
    Some(joined(filters.into_iter().collect::<Option<Vec<Filter>>>()?))
}

/// Returns a filter that requires the attribute to be this text. `filters` compare every value as
/// text, but `filter.attributes` does not: the core broker compares the text with the unconverted
/// value. A number or boolean of a structured event therefore never matches.
/// <https://github.com/knative/eventing/blob/main/pkg/eventfilter/attributes/filter.go>
fn same_type(name: String, value: String) -> Filter {
    match may_be_typed(&name, &value) {
        true => Filter::ExactText { name, value },
        false => Filter::Exact { name, value },
    }
}

/// True if the attribute is an extension whose value may be a number or boolean.
fn may_be_typed(name: &str, value: &str) -> bool {
    let is_typed = matches!(value, "true" | "false") || Number::parse(value).is_some();
    is_typed && !TEXT_ATTRIBUTES.contains(&name)
}

/// Adds a warning for values that look like a number or a boolean: they match only text, which the
/// author of the filter may not expect. An integer in a header of a binary-mode event becomes a
/// number here, so it does not match either.
fn warn_of_types(attributes: &Cursor<'_>) {
    for member in attributes.entries().unwrap_or_default() {
        let value = member.value.peek_text().filter(|value| may_be_typed(member.name, value));
        if let Some(value) = value {
            let message = "matches only a string, not a number or a boolean, even in a header";
            let exact = format!("filters: [{{exact: {{{}: '{value}'}}}}]", member.name);
            member.value.warn(Message::new(message).help(exact));
        }
    }
}
