//! [`Key`]: the key of an Event Grid advanced filter, which is a path to a value of an event.
//!
//! This module is separate because a key refers to different members in different schemas.
//! `eventType` is `type` in a CloudEvent, and `topic` is `source`. The data of a custom event is
//! the whole event. A key is a path with dots between its parts, without escapes ("Event
//! filtering", limitations). An exact match of a name is preferred; otherwise case is ignored, as
//! in the examples of that page.
//!
//! Null counts as a missing value. If a member is null, another member to which the key also refers
//! is used. A key does not select elements of arrays; the condition or [`Key::leaves`] does.

use std::collections::BTreeMap;
use std::fmt;
use std::iter;

use serde_json::value::RawValue;

use super::fold::same;
use crate::event::Members;

/// Members that have different names in CloudEvents and in the Event Grid schema. Each entry is the
/// name in a key, in lower case, and the other name.
const ALIASES: [(&str, &str); 7] = [
    ("eventid", "id"),
    ("eventtype", "type"),
    ("type", "eventtype"),
    ("topic", "source"),
    ("source", "topic"),
    ("eventtypeversion", "dataversion"),
    ("eventtime", "time"),
];

/// The raw JSON of null.
const NULL: &str = "null";
/// Name of the member with the payload.
const DATA: &str = "data";
/// Names of members that only events with attributes have. An event without them is a bare payload.
const ENVELOPE: [&str; 2] = ["specversion", "eventType"];

/// Maximum nesting of lists that [`Key::leaves`] follows. The stack grows with the nesting.
const LISTS_MAX: usize = 64;

/// The path to a value of an event. It has at least one part.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Vec<String>);

impl Key {
    /// Parses a key such as `subject` or `data.order.total`. Returns `None` if a part is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        parts.iter().all(|part| !part.is_empty()).then_some(Self(parts))
    }

    /// Returns true if the key has one part, so that it names a member of the event itself.
    #[must_use]
    pub fn is_attribute(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns the raw JSON of the value, as the publisher wrote it; `None` if it is missing or
    /// null.
    #[must_use]
    pub fn value<'a>(&self, members: &Members<'a>) -> Option<&'a str> {
        self.find(members).filter(|value| *value != NULL)
    }

    /// Returns the raw JSON of the value, as the publisher wrote it. Unlike [`Key::value`], it
    /// returns null too.
    #[must_use]
    pub fn find<'a>(&self, members: &Members<'a>) -> Option<&'a str> {
        let (first, rest) = self.0.split_first()?;
        let at_first = top_level(members, first);
        if let Some(value) = at_first.filter(|value| rest.is_empty() || *value != NULL) {
            return inside(value, rest);
        }
        let is_payload = ENVELOPE.iter().all(|name| members.get(name).is_none());
        match rest {
            [name, rest @ ..] if is_payload && first.eq_ignore_ascii_case(DATA) => {
                inside(named(members, name)?, rest)
            }
            _ => None,
        }
    }

    /// Returns the values at the path that are neither lists nor objects. If a value on the path is
    /// a list, the path continues in each element. Names are compared exactly.
    #[must_use]
    pub fn leaves<'a>(&self, members: &Members<'a>) -> Vec<&'a str> {
        let mut found = Vec::new();
        if let Some((first, rest)) = self.0.split_first()
            && let Some(value) = members.get(first)
        {
            add_leaves(value, rest, LISTS_MAX, &mut found);
        }
        found
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Returns the value at a path within this JSON value.
fn inside<'a>(value: &'a str, path: &[String]) -> Option<&'a str> {
    path.iter().try_fold(value, |value, part| member(value, part))
}

/// Adds values at a path within this JSON value to `found`, unless they are lists or objects.
fn add_leaves<'a>(value: &'a str, path: &[String], lists_max: usize, found: &mut Vec<&'a str>) {
    match (value.as_bytes().first(), path) {
        (Some(b'['), _) => {
            let Some(lists_max) = lists_max.checked_sub(1) else { return };
            let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
            elements.iter().for_each(|element| add_leaves(element.get(), path, lists_max, found));
        }
        (Some(b'{'), [name, rest @ ..]) => {
            let members: BTreeMap<String, &RawValue> =
                serde_json::from_str(value).unwrap_or_default();
            if let Some(member) = members.get(name) {
                add_leaves(member.get(), rest, lists_max, found);
            }
        }
        (Some(b'{'), []) | (Some(_), [_, ..]) | (None, _) => {}
        (Some(_), []) => found.push(value),
    }
}

/// Finds a top-level member of the event, by this name or by its alias in [`ALIASES`].
fn top_level<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    let alias = ALIASES.iter().find(|(aliased, _)| same(aliased, name)).map(|(_, alias)| *alias);
    preferred([named(members, name), alias.and_then(|alias| named(members, alias))])
}

fn named<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    let without_case =
        members.iter().filter(|(member_name, _)| same(member_name, name)).map(|(_, value)| value);
    preferred(iter::once(members.get(name)).chain(without_case.map(Some)))
}

/// Finds a member of a JSON object. If several members have the name, the last one is used.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let members: BTreeMap<String, &'a RawValue> = serde_json::from_str(object).ok()?;
    let without_case =
        members.iter().filter(|(member_name, _)| same(member_name, name)).map(|(_, value)| value);
    let found = iter::once(members.get(name)).chain(without_case.map(Some));
    preferred(found.map(|value| value.map(|value| value.get())))
}

/// Returns the first existing value that is not JSON `null`. If every existing value is JSON
/// `null`, returns JSON `null`; if no value exists, returns `None`.
fn preferred<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> Option<&'a str> {
    let mut null = None;
    for value in values.into_iter().flatten() {
        match value {
            NULL => null = Some(value),
            _ => return Some(value),
        }
    }
    null
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_the_same_member_in_every_schema() {
        let grid = r#"{"id":"1","topic":"/t","subject":"s","eventType":"et","eventTime":"now","dataVersion":"2","data":{"siteName":{"N":7},"a.b":1}}"#;
        let cloud = r#"{"specversion":"1.0","id":"1","source":"/t","type":"et","time":"now","comext":5,"data":{"siteName":{"N":7},"siteName":{"N":8}}}"#;
        let custom = r#"{"siteName":{"N":7},"type":null}"#;
        for (event, key, value) in [
            (grid, "ID", Some("\"1\"")),
            (grid, "Topic", Some("\"/t\"")),
            (grid, "source", Some("\"/t\"")),
            (grid, "EventType", Some("\"et\"")),
            (grid, "type", Some("\"et\"")),
            (grid, "DataVersion", Some("\"2\"")),
            (grid, "EventTypeVersion", Some("\"2\"")),
            (grid, "data.sitename.n", Some("7")),
            (grid, "Data.siteName", Some("{\"N\":7}")),
            (grid, "data.a.b", None),
            (grid, "data.siteName.N.more", None),
            (grid, "siteName", None),
            (cloud, "eventid", Some("\"1\"")),
            (cloud, "topic", Some("\"/t\"")),
            (cloud, "eventType", Some("\"et\"")),
            (cloud, "specversion", Some("\"1.0\"")),
            (cloud, "comext", Some("5")),
            (cloud, "data.siteName.N", Some("8")),
            (cloud, "data.comext", None),
            (custom, "data.siteName.N", Some("7")),
            (custom, "siteName.N", Some("7")),
            (custom, "data", None),
            (custom, "type", Some("null")),
        ] {
            let members = Members::parse(event).unwrap();
            assert_eq!(Key::parse(key).unwrap().find(&members), value, "{key} of {event}");
        }
    }

    #[test]
    fn a_member_that_is_null_hides_no_other_member_that_the_key_means() {
        for (event, key, value) in [
            (r#"{"specversion":"1.0","topic":null,"source":"/t"}"#, "topic", Some("\"/t\"")),
            (r#"{"eventType":"et","type":null}"#, "Type", Some("\"et\"")),
            (r#"{"Subject":null,"subject":"s"}"#, "Subject", Some("\"s\"")),
            (r#"{"eventType":"et","data":{"N":null,"n":7}}"#, "data.N", Some("7")),
            (r#"{"data":null,"n":7}"#, "data.n", Some("7")),
            (r#"{"eventType":"et","data":null,"n":7}"#, "data.n", None),
            (r#"{"eventType":"et","data":{"n":null}}"#, "data.n", None),
            (r#"{"eventType":"et","data":{"n":null}}"#, "data.n.m", None),
            (r#"{"n":null,"N":null}"#, "n", None),
        ] {
            let members = Members::parse(event).unwrap();
            assert_eq!(Key::parse(key).unwrap().value(&members), value, "{key} of {event}");
        }
    }

    #[test]
    fn leaves_are_found_through_lists_by_exact_names() {
        let deep = format!(r#"{{"n":{}1{}}}"#, "[".repeat(65), "]".repeat(65));
        for (event, key, values) in [
            (r#"{"n":7}"#, "n", vec!["7"]),
            (r#"{"N":7,"data":1}"#, "n", vec![]),
            (r#"{"n":null}"#, "n", vec!["null"]),
            (r#"{"n":[]}"#, "n", vec![]),
            (r#"{"n":{"a":1}}"#, "n", vec![]),
            (r#"{"n":[1,[2,{"a":3}],null]}"#, "n", vec!["1", "2", "null"]),
            (r#"{"n":[{"a":[1,2]},{"b":3},4,{"a":5}]}"#, "n.a", vec!["1", "2", "5"]),
            (r#"{"n":{"A":1}}"#, "n.a", vec![]),
            (&deep, "n", vec![]),
        ] {
            let members = Members::parse(event).unwrap();
            assert_eq!(Key::parse(key).unwrap().leaves(&members), values, "{key} of {event}");
        }
    }

    #[test]
    fn a_key_is_shown_as_it_was_written() {
        assert_eq!(Key::parse("Data.a b.C").unwrap().to_string(), "Data.a b.C");
    }

    #[test]
    fn no_part_of_a_key_is_empty() {
        for text in ["", ".", "data.", ".data", "a..b"] {
            assert_eq!(Key::parse(text), None, "{text}");
        }
    }
}
