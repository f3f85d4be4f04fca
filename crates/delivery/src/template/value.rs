//! [`Value`]: a value during the evaluation of a template.
//!
//! This module is separate because values borrow from the event. A template can read a large event
//! without copying it.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::budget::{Bounded, STEP};
use super::error::Fault;
use super::escape::push_json_text;
use super::limits::JSON_DEPTH_MAX;

/// A number in the form in which templates compute with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// A signed or unsigned 64-bit integer. `serde_json` parses any other integer as a float.
    Integer(i128),
    /// Any other number. It is always finite.
    Float(f64),
}

impl Number {
    /// Returns the number; `None` if the integer does not fit into 64 bits.
    pub(super) fn integer(value: i128) -> Option<Self> {
        let holds = i64::try_from(value).is_ok() || u64::try_from(value).is_ok();
        holds.then_some(Self::Integer(value))
    }

    /// Returns the number; `None` if the float is not finite.
    pub(super) fn float(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self::Float(value))
    }

    /// Returns the number as JSON text.
    pub(super) fn written(self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => Json::from(value).to_string(),
        }
    }

    /// Returns the float that is nearest to the number.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a comparison or a quotient with floats is not exact anyway"
    )]
    pub(super) fn as_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    fn from_json(number: &serde_json::Number) -> Self {
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        integer.map_or_else(|| Self::Float(number.as_f64().unwrap_or_default()), Self::Integer)
    }
}

/// A value during evaluation. Cloning a value is cheap.
#[derive(Clone)]
pub(super) enum Value<'v> {
    /// The value of a member or an item that does not exist.
    Undefined,
    Null,
    /// The boolean `true` or `false`.
    Boolean(bool),
    Number(Number),
    /// A text that is borrowed from the event or the template.
    Text(&'v str),
    /// A text that an expression has built.
    Built(Rc<str>),
    /// A list that is borrowed from the event.
    Elements(&'v [Json]),
    /// An object that is borrowed from the event.
    Members(&'v Map<String, Json>),
    /// A list that an expression has built.
    List(Rc<[Self]>),
    /// An object that an expression has built.
    Object(Rc<[(&'v str, Self)]>),
}

impl<'v> Value<'v> {
    /// Converts a JSON value of an event, without copying texts.
    pub(super) fn from_json(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Boolean(*value),
            Json::Number(number) => Self::Number(Number::from_json(number)),
            Json::String(text) => Self::Text(text),
            Json::Array(elements) => Self::Elements(elements),
            Json::Object(members) => Self::Members(members),
        }
    }

    /// Wraps a text that an expression built.
    pub(super) fn built(text: Bounded<'_>) -> Self {
        Self::Built(text.finish().into())
    }

    pub(super) fn count(count: usize) -> Self {
        Self::Number(Number::Integer(i128::try_from(count).unwrap_or(i128::MAX)))
    }

    /// Returns the text if the value is a text; otherwise `None`.
    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Built(text) = self {
            return Some(text);
        }
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the number if the value is a number; otherwise `None`.
    pub(super) fn as_number(&self) -> Option<Number> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Returns the name of the value's type, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "not defined",
            Self::Null => "null",
            Self::Boolean(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) | Self::Built(_) => "a string",
            Self::Elements(_) | Self::List(_) => "a list",
            Self::Members(_) | Self::Object(_) => "an object",
        }
    }

    /// Returns true if the value counts as true in a condition. Null, `false`, 0 and empty values
    /// count as false.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Boolean(value) => *value,
            Self::Number(number) => number.as_float() != 0.0,
            Self::Text(_) | Self::Built(_) => self.as_text() != Some(""),
            Self::Elements(_) | Self::List(_) => self.list_length() != Some(0),
            Self::Members(_) | Self::Object(_) => self.member_count() != Some(0),
        }
    }

    /// Returns the number of items if the value is a list; otherwise `None`.
    pub(super) fn list_length(&self) -> Option<usize> {
        if let Self::Elements(elements) = self {
            return Some(elements.len());
        }
        if let Self::List(items) = self { Some(items.len()) } else { None }
    }

    /// Returns the item of a list at this position; `Undefined` if it does not exist.
    pub(super) fn item(&self, index: usize) -> Self {
        let item = if let Self::Elements(elements) = self {
            elements.get(index).map(Self::from_json)
        } else if let Self::List(items) = self {
            items.get(index).cloned()
        } else {
            None
        };
        item.unwrap_or(Self::Undefined)
    }

    /// Returns the members if the value is an object, in the order in which JSON output lists them;
    /// otherwise `None`.
    pub(super) fn members(&self) -> Option<Vec<(&'v str, Self)>> {
        if let Self::Members(members) = self {
            let member =
                |(name, value): (&'v String, &'v Json)| (name.as_str(), Self::from_json(value));
            return Some(members.iter().map(member).collect());
        }
        if let Self::Object(members) = self { Some(members.to_vec()) } else { None }
    }

    /// Returns the number of members if the value is an object; otherwise `None`.
    pub(super) fn member_count(&self) -> Option<usize> {
        if let Self::Members(members) = self {
            return Some(members.len());
        }
        if let Self::Object(members) = self { Some(members.len()) } else { None }
    }

    /// Returns the member of an object with this name; `Undefined` if it does not exist.
    pub(super) fn member(&self, name: &str) -> Self {
        let value = if let Self::Members(members) = self {
            members.get(name).map(Self::from_json)
        } else if let Self::Object(members) = self {
            // If several members have the name, the last one is used, as in JSON parsers.
            let found = members.iter().rev().find(|(member, _)| *member == name);
            found.map(|(_, value)| value.clone())
        } else {
            None
        };
        value.unwrap_or(Self::Undefined)
    }

    /// Appends the value as JSON.
    ///
    /// # Errors
    ///
    /// Fails if the output is full, the fuel is used up, or the value is nested too deeply.
    pub(super) fn write_json(&self, out: &mut Bounded<'_>, depth: usize) -> Result<(), Fault> {
        check_depth(depth)?;
        out.budget().spend(1, STEP / 8)?;
        match self {
            Self::Undefined | Self::Null => out.push("null"),
            Self::Boolean(value) => out.push(if *value { "true" } else { "false" }),
            Self::Number(number) => out.push(&number.written()),
            Self::Text(_) | Self::Built(_) => {
                push_json_string(self.as_text().unwrap_or_default(), out)
            }
            Self::Elements(_) | Self::List(_) => {
                out.push("[")?;
                for index in 0..self.list_length().unwrap_or_default() {
                    if index > 0 {
                        out.push(",")?;
                    }
                    self.item(index).write_json(out, depth + 1)?;
                }
                out.push("]")
            }
            Self::Members(members) => write_members(
                members.iter().map(|(name, value)| (name.as_str(), Self::from_json(value))),
                out,
                depth,
            ),
            Self::Object(members) => write_members(members.iter().cloned(), out, depth),
        }
    }
}

/// Fails if a value is nested deeper than the limit, because the recursion could overflow the
/// stack.
pub(super) fn check_depth(depth: usize) -> Result<(), Fault> {
    if depth <= JSON_DEPTH_MAX {
        return Ok(());
    }
    Err(Fault::new(format!(
        "lists and objects in a value are nested more than {JSON_DEPTH_MAX} levels deep"
    )))
}

fn write_members<'v>(
    members: impl Iterator<Item = (&'v str, Value<'v>)>,
    out: &mut Bounded<'_>,
    depth: usize,
) -> Result<(), Fault> {
    out.push("{")?;
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(",")?;
        }
        push_json_string(name, out)?;
        out.push(":")?;
        value.write_json(out, depth + 1)?;
    }
    out.push("}")
}

fn push_json_string(text: &str, out: &mut Bounded<'_>) -> Result<(), Fault> {
    out.push("\"")?;
    push_json_text(text, out)?;
    out.push("\"")
}
