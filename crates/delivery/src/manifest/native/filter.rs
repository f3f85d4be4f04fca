//! `filter`: conditions over an event's members, as a mapping of operators.
//!
//! Separate because it is the only part that nests. Several operators in one mapping, and several
//! members under one operator, all have to hold. An empty condition is refused, since it could mean
//! everything or nothing.

use super::super::conditions::{Compare, OPERATORS, check_depth, joined, operators};
use super::super::findings::Message;
use super::super::reader::Cursor;
use crate::subscription::filter::Filter;

/// Reads a filter.
pub(super) fn read(cursor: &Cursor<'_>) -> Option<Filter> {
    read_at(cursor, 1)
}

fn read_at(cursor: &Cursor<'_>, depth: usize) -> Option<Filter> {
    check_depth(cursor, depth)?;
    if cursor.entries()?.is_empty() {
        return cursor.refuse(Message::new("no condition").help(OPERATORS));
    }
    let inner = |of: &Cursor<'_>| read_at(of, depth + 1);
    let conditions =
        cursor.mapping(|fields| operators(|name| fields.get(name), comparisons, inner))?;
    let conditions = conditions.into_iter().collect::<Option<Vec<_>>>()?;
    // Every operator may be unknown, which is reported; no condition would match everything.
    (!conditions.is_empty()).then(|| joined(conditions))
}

fn comparisons(cursor: &Cursor<'_>, compare: Compare) -> Option<Filter> {
    let members = cursor.entries()?;
    if members.is_empty() {
        return cursor
            .refuse(Message::new("no member to compare").help("such as {type: order.created}"));
    }
    let compared: Vec<Option<Filter>> = members
        .iter()
        .map(|member| Some(compare(member.name.to_owned(), member.value.scalar()?)))
        .collect();
    compared.into_iter().collect::<Option<_>>().map(joined)
}
