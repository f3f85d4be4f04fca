//! Reads the field `filter`: conditions on the members of an event, as a mapping of operators.
//!
//! This module is separate because only filters are nested. An event must satisfy every operator of
//! a mapping, and every member of an operator. An empty condition is refused, because its author
//! could mean every event or no event. A condition on a member that no event of the topic has is
//! refused too. It would match no event, or every event under `not`.

use serde_json::{Value as Json, json};

use super::advanced;
use super::conditions::{
    self, Compare, DEPTH_MAX, OPERATORS, VISIBLE, check_depth, is_attribute, joined, operators,
};
use crate::document::findings::{Message, quoted};
use crate::document::kind::Kind;
use crate::document::reader::{Cursor, Entry};
use crate::event::Input;
use crate::subscription::filter::Filter;

/// The field type of the field `filter`: a mapping of operators.
pub struct Filters;

impl Kind for Filters {
    type Value = Filter;

    fn read(&self, at: &Cursor<'_>) -> Option<Filter> {
        read_at(at, 1)
    }

    fn write(&self, value: &Filter) -> Json {
        if *value == Filter::EVERYTHING { Json::Null } else { conditions::written(value) }
    }

    fn schema(&self) -> Json {
        json!({ "$ref": "#/$defs/filter" })
    }
}

fn read_at(cursor: &Cursor<'_>, depth: usize) -> Option<Filter> {
    check_depth(cursor, depth, DEPTH_MAX)?;
    if cursor.entries()?.is_empty() {
        return cursor.refuse(Message::new("the filter has no condition").help(OPERATORS));
    }
    let inner = |nested: &Cursor<'_>| read_at(nested, depth + 1);
    let conditions = cursor.mapping(|fields| {
        let mut conditions = operators(|name| fields.get(name), comparisons, inner);
        let exact_text: Compare = |name, value| Filter::ExactText { name, value };
        conditions.extend(fields.get("exactText").map(|members| comparisons(&members, exact_text)));
        conditions.extend(fields.get("eventGrid").map(|condition| advanced::native(&condition)));
        conditions
    })?;
    let conditions = conditions.into_iter().collect::<Option<Vec<_>>>()?;
    // If all operators are unknown, they have been reported. A filter without conditions would
    // match every event.
    (!conditions.is_empty()).then(|| joined(conditions))
}

fn comparisons(cursor: &Cursor<'_>, compare: Compare) -> Option<Filter> {
    let members = cursor.entries()?;
    if members.is_empty() {
        return cursor
            .refuse(Message::new("no attribute to compare").help("such as {type: order.created}"));
    }
    let compared: Vec<Option<Filter>> = members
        .iter()
        .map(|member| Some(compare(member.name.to_owned(), member.value.scalar()?)))
        .collect();
    compared.into_iter().collect::<Option<_>>().map(joined)
}

/// Reports the names in a filter that are not attributes of any event with this input format.
pub fn check_names(cursor: &Cursor<'_>, input: Input) {
    for entry in cursor.peek_entries() {
        match entry.name {
            "exact" | "exactText" | "prefix" | "suffix" => {
                entry.value.peek_entries().iter().for_each(|member| check_name(member, input));
            }
            "all" | "any" => {
                entry.value.peek_list().iter().for_each(|element| check_names(element, input));
            }
            "not" => check_names(&entry.value, input),
            _ => {}
        }
    }
}

/// Reports a name that is not an attribute. For custom events, all names are allowed. A name with a
/// dot causes a warning, because the dot does not select a nested member.
fn check_name(member: &Entry<'_>, input: Input) {
    let Entry { name, key, .. } = member;
    if is_attribute(name) {
        return;
    }
    if input != Input::Custom {
        let message = format!("{} is not the name of an attribute", quoted(name));
        let help = format!(
            "{VISIBLE}; if the Topic has input: custom, filters match top-level members of JSON"
        );
        return key.error(Message::new(message).help(help));
    }
    if name.contains('.') {
        let message = format!("{} is read as one top-level member, not a path", quoted(name));
        key.warn(Message::new(message).help("a filter cannot match nested members"));
    }
}
