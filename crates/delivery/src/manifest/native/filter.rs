//! `filter`: conditions over an event's members, as a mapping of operators.
//!
//! Separate because it is the only part that nests. Several operators in one mapping, and several
//! members under one operator, all have to hold. An empty condition is refused, since it could mean
//! everything or nothing.

use super::super::findings::Message;
use super::super::reader::{Cursor, Fields};
use crate::subscription::filter::Filter;

/// The deepest nesting of `all`, `any` and `not`.
const DEPTH_MAX: usize = 8;

type Compare = fn(String, String) -> Filter;

const COMPARISONS: [(&str, Compare); 3] = [
    ("exact", |name, value| Filter::Exact { name, value }),
    ("prefix", |name, value| Filter::Prefix { name, value }),
    ("suffix", |name, value| Filter::Suffix { name, value }),
];

/// Reads a filter.
pub(super) fn read(cursor: &Cursor<'_>) -> Option<Filter> {
    read_at(cursor, 1)
}

fn read_at(cursor: &Cursor<'_>, depth: usize) -> Option<Filter> {
    if depth > DEPTH_MAX {
        return cursor.refuse(format!("conditions nest at most {DEPTH_MAX} deep"));
    }
    if cursor.entries()?.is_empty() {
        return cursor.refuse(
            Message::new("no condition").help("one of exact, prefix, suffix, all, any, not"),
        );
    }
    joined(cursor.mapping(|fields| operators(fields, depth))?)
}

/// The condition of each operator in one mapping; `None` for one that could not be read.
fn operators(fields: &Fields<'_>, depth: usize) -> Vec<Option<Filter>> {
    let mut conditions = Vec::new();
    for (operator, compare) in COMPARISONS {
        conditions.extend(fields.get(operator).map(|members| comparisons(&members, compare)));
    }
    conditions.extend(fields.get("all").map(|list| several(&list, depth).map(Filter::All)));
    conditions.extend(fields.get("any").map(|list| several(&list, depth).map(Filter::Any)));
    conditions.extend(
        fields.get("not").map(|of| read_at(&of, depth + 1).map(|of| Filter::Not(Box::new(of)))),
    );
    conditions
}

fn several(cursor: &Cursor<'_>, depth: usize) -> Option<Vec<Filter>> {
    let elements = cursor.list()?;
    if elements.is_empty() {
        return cursor.refuse("at least one condition is required");
    }
    // Each is read, even after an error: all of them get their findings.
    let filters: Vec<Option<Filter>> =
        elements.iter().map(|element| read_at(element, depth + 1)).collect();
    filters.into_iter().collect()
}

fn comparisons(cursor: &Cursor<'_>, compare: Compare) -> Option<Filter> {
    let members = cursor.entries()?;
    if members.is_empty() {
        return cursor
            .refuse(Message::new("no member to compare").help("such as {type: order.created}"));
    }
    let read =
        members.iter().map(|member| Some(compare(member.name.to_owned(), member.value.scalar()?)));
    joined(read.collect())
}

/// All of them; a single one is returned as it is.
fn joined(conditions: Vec<Option<Filter>>) -> Option<Filter> {
    let mut filters = conditions.into_iter().collect::<Option<Vec<Filter>>>()?;
    match filters.len() {
        0 => None,
        1 => filters.pop(),
        _ => Some(Filter::All(filters)),
    }
}
