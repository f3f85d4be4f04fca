//! Reads and writes the conditions of filters: `exact`, `prefix`, `suffix`, `all`, `any`, `not` and
//! `cesql`.
//!
//! This module is separate because two types of documents have these operators of the CloudEvents
//! Subscriptions API. Each type has rules of its own for the contents of an operator.

use serde_json::{Value as Json, json};

use super::advanced;
use crate::document::findings::Message;
use crate::document::reader::Cursor;
use crate::subscription::filter::Filter;
use crate::subscription::filter::cesql::Cesql;

/// Maximum nesting depth of `all`, `any` and `not`.
pub const DEPTH_MAX: usize = 10;
/// The names of the operators, for error messages.
pub const OPERATORS: &str = "expected one of exact, prefix, suffix, all, any, not, cesql";

/// Attributes of the Event Grid schema that CloudEvents does not have.
const EVENT_GRID_ATTRIBUTES: [&str; 4] =
    ["dataVersion", "eventTime", "eventType", "metadataVersion"];
/// The names that filters can compare, for error messages.
pub const VISIBLE: &str = "filters match only attributes, not data: names of lower-case letters \
                           and digits (CloudEvents), and eventType, eventTime, dataVersion, \
                           metadataVersion (Event Grid)";

/// Returns true if the text can be the name of an attribute, in CloudEvents or in the Event Grid
/// schema.
pub fn is_attribute(name: &str) -> bool {
    let of_cloud_events = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    // `data` has the form of an attribute's name, but is not an attribute.
    let is_attribute = !name.is_empty() && name != "data";
    is_attribute && name.chars().all(of_cloud_events) || EVENT_GRID_ATTRIBUTES.contains(&name)
}

/// Creates the filter that compares a member with a value. The arguments are the member's name and
/// the value.
pub type Compare = fn(String, String) -> Filter;

const COMPARISONS: [(&str, Compare); 3] = [
    ("exact", |name, value| Filter::Exact { name, value }),
    ("prefix", |name, value| Filter::Prefix { name, value }),
    ("suffix", |name, value| Filter::Suffix { name, value }),
];

/// Checks that conditions are nested at most `most` levels deep. Otherwise reports the problem and
/// returns `None`.
pub fn check_depth(cursor: &Cursor<'_>, depth: usize, most: usize) -> Option<()> {
    if depth > most {
        return cursor.refuse(format!("conditions are nested more than {most} levels deep"));
    }
    Some(())
}

/// Reads the condition of each operator in one mapping. An invalid condition is `None` in the list.
/// `field` finds an operator, `compared` reads a comparison, and `inner` reads a nested condition.
pub fn operators<'a>(
    field: impl Fn(&'static str) -> Option<Cursor<'a>>,
    compared: impl Fn(&Cursor<'a>, Compare) -> Option<Filter>,
    inner: impl Fn(&Cursor<'a>) -> Option<Filter>,
) -> Vec<Option<Filter>> {
    let mut conditions = Vec::new();
    for (operator, compare) in COMPARISONS {
        conditions.extend(field(operator).map(|members| compared(&members, compare)));
    }
    conditions.extend(field("all").map(|list| several(&list, &inner).map(Filter::All)));
    conditions.extend(field("any").map(|list| several(&list, &inner).map(Filter::Any)));
    conditions.extend(
        field("not").map(|condition| inner(&condition).map(|filter| Filter::Not(Box::new(filter)))),
    );
    conditions.extend(field("cesql").map(|expression| cesql(&expression)));
    conditions
}

/// Reads an expression of CloudEvents SQL. Adds a warning if the expression may not mean what its
/// author intended.
pub fn cesql(cursor: &Cursor<'_>) -> Option<Filter> {
    let reading = match Cesql::read(cursor.text()?) {
        Ok(reading) => reading,
        Err(error) => return cursor.refuse(error.to_string()),
    };
    if reading.never_boolean {
        cursor.warn("matches no event: the result is never true or false");
    }
    if let Some(at) = reading.mistakable_at {
        let read = format!("at character {at}: check the precedence of the operators");
        let written = format!("the expression means {}", reading.cesql);
        cursor.warn(Message::new(read).help(&written));
    }
    Some(Filter::Cesql(reading.cesql))
}

fn several<'a>(
    cursor: &Cursor<'a>,
    inner: impl Fn(&Cursor<'a>) -> Option<Filter>,
) -> Option<Vec<Filter>> {
    if cursor.list()?.is_empty() {
        return cursor.refuse("at least one condition is required");
    }
    cursor.each(inner)
}

/// Joins conditions with `all`. A single condition is returned as it is.
pub fn joined(mut filters: Vec<Filter>) -> Filter {
    if filters.len() == 1 { filters.remove(0) } else { Filter::All(filters) }
}

/// Returns a filter as a native document states it.
pub fn written(filter: &Filter) -> Json {
    let several = |all: &[Filter]| all.iter().map(written).collect::<Vec<_>>();
    match filter {
        // Documents must not contain empty lists, because an author could mean every event or no
        // event. An expression replaces an empty list.
        Filter::All(all) if all.is_empty() => json!({ "cesql": "TRUE" }),
        Filter::Any(all) if all.is_empty() => json!({ "cesql": "FALSE" }),
        Filter::All(all) => json!({ "all": several(all) }),
        Filter::Any(all) => json!({ "any": several(all) }),
        Filter::Not(negated) => json!({ "not": written(negated) }),
        Filter::Exact { name, value } => json!({ "exact": { name: value } }),
        Filter::ExactText { name, value } => json!({ "exactText": { name: value } }),
        Filter::Prefix { name, value } => json!({ "prefix": { name: value } }),
        Filter::Suffix { name, value } => json!({ "suffix": { name: value } }),
        Filter::Advanced(condition) => json!({ "eventGrid": advanced::written(condition) }),
        Filter::Cesql(cesql) => json!({ "cesql": cesql.to_string() }),
    }
}
