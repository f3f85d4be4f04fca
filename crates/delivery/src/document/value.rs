//! [`Kind`]: how values of a field are read, written, described and shown.
//!
//! This module is separate from the records that use kinds, because many fields can have the same
//! kind.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use super::declaration::{Declaration, Shown};
use super::findings::quoted;
use super::reader::Cursor;
use crate::time::duration::format_ms;

/// A kind of value.
pub trait Kind {
    /// The type of the values.
    type Value;

    /// True if `null` counts as absent. Exported resources have `null` for absent mappings.
    const NULL_IS_ABSENT: bool = false;

    /// Reads the value at the cursor. Reports an invalid value and returns `None`.
    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value>;

    /// Reads the value at the cursor. A merged mapping takes missing fields from further documents.
    fn read_over<'a>(&self, at: &Cursor<'a>, _bases: &[Cursor<'a>]) -> Option<Self::Value> {
        self.read(at)
    }

    /// Returns the value as a document states it.
    fn write(&self, value: &Self::Value) -> Json;

    /// Returns the JSON Schema of the values.
    fn schema(&self) -> Json;

    /// Returns the declared fields of a merged mapping; nothing for other kinds.
    fn fields(&self) -> Vec<Declaration> {
        Vec::new()
    }

    /// Returns the value for display, without secrets. By default it is the written form.
    fn shown(&self, value: &Self::Value) -> Json {
        self.write(value)
    }

    /// Adds the value as settings for display.
    fn show(&self, path: String, value: &Self::Value, shown: &mut Vec<Shown>) {
        let value = self.shown(value);
        shown.push(Shown { path, text: for_people(&value), value });
    }
}

/// Returns a JSON value as text for people.
pub fn for_people(value: &Json) -> String {
    match value {
        Json::Null => "none".to_owned(),
        Json::Bool(_) | Json::Number(_) => value.to_string(),
        Json::String(text) => text.clone(),
        Json::Array(all) if all.is_empty() => "none".to_owned(),
        Json::Array(all) => all.iter().map(for_people).collect::<Vec<_>>().join(", "),
        Json::Object(all) if all.is_empty() => "none".to_owned(),
        Json::Object(all) => {
            let entries = all.iter().map(|(key, value)| format!("{key} {}", for_people(value)));
            entries.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The kind of `true` and `false`.
pub struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, at: &Cursor<'_>) -> Option<bool> {
        at.boolean()
    }

    fn write(&self, value: &bool) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }
}

/// The kind of whole numbers within a range.
pub struct Integer(pub RangeInclusive<u32>);

impl Kind for Integer {
    type Value = u32;

    fn read(&self, at: &Cursor<'_>) -> Option<u32> {
        at.integer(self.0.clone())
    }

    fn write(&self, value: &u32) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "integer", "minimum": self.0.start(), "maximum": self.0.end() })
    }
}

/// The kind of durations within a range, in milliseconds.
pub struct Duration(pub RangeInclusive<u64>);

impl Kind for Duration {
    type Value = u64;

    fn read(&self, at: &Cursor<'_>) -> Option<u64> {
        at.duration_ms(self.0.clone())
    }

    fn write(&self, value: &u64) -> Json {
        json!(format_ms(*value))
    }

    fn schema(&self) -> Json {
        let [least, most] = [self.0.start(), self.0.end()].map(|ms| format_ms(*ms));
        json!({ "$ref": "#/$defs/duration", "$comment": format!("{least} to {most}") })
    }
}

/// The kind of the words of an enumeration.
pub struct Word<T: 'static>(pub &'static [T], pub fn(T) -> &'static str);

impl<T: Copy> Kind for Word<T> {
    type Value = T;

    fn read(&self, at: &Cursor<'_>) -> Option<T> {
        at.word(self.0, self.1)
    }

    fn write(&self, value: &T) -> Json {
        json!(self.1(*value))
    }

    fn schema(&self) -> Json {
        json!({ "enum": self.0.iter().map(|of| self.1(*of)).collect::<Vec<_>>() })
    }
}

/// The kind of text that is parsed into a type. Messages do not quote it: it may be a secret by
/// mistake.
pub struct Parsed<T> {
    /// The name of the kind, for messages.
    what: &'static str,
    /// The rule for the text, for messages.
    rule: &'static str,
    /// The name of its definition in the JSON Schema.
    definition: &'static str,
    parsed: PhantomData<T>,
}

impl<T> Parsed<T> {
    /// Returns the kind with these words for messages, and the name of its definition.
    pub const fn new(what: &'static str, rule: &'static str, definition: &'static str) -> Self {
        Self { what, rule, definition, parsed: PhantomData }
    }
}

impl<T: FromStr + Display> Kind for Parsed<T> {
    type Value = T;

    fn read(&self, at: &Cursor<'_>) -> Option<T> {
        at.parsed(self.what, self.rule)
    }

    fn write(&self, value: &T) -> Json {
        json!(value.to_string())
    }

    fn schema(&self) -> Json {
        json!({ "$ref": format!("#/$defs/{}", self.definition) })
    }
}

/// The kind of text that a function checks. The error of the function states the rule.
pub struct Checked {
    /// Maximum number of characters.
    pub max_chars: usize,
    /// Checks a text.
    pub check: fn(&str) -> Result<(), String>,
    /// Returns the members of the JSON Schema other than type and length.
    pub schema: fn() -> Json,
}

impl Kind for Checked {
    type Value = String;

    fn read(&self, at: &Cursor<'_>) -> Option<String> {
        let text = at.text()?;
        if let Err(problem) = (self.check)(text) {
            return at.refuse(problem);
        }
        if text.chars().count() > self.max_chars {
            return at
                .refuse(format!("a text of at most {} characters is expected", self.max_chars));
        }
        Some(text.to_owned())
    }

    fn write(&self, value: &String) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        let mut schema = (self.schema)();
        schema["type"] = json!("string");
        schema["maxLength"] = json!(self.max_chars);
        schema
    }
}

/// The kind of lists without duplicates.
pub struct Distinct<K> {
    /// The kind of the elements.
    pub of: K,
    /// The words for one element and for several, for messages.
    pub what: [&'static str; 2],
    /// The valid numbers of elements.
    pub count: RangeInclusive<usize>,
}

impl<K: Kind<Value: PartialEq>> Kind for Distinct<K> {
    type Value = Vec<K::Value>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        let elements = at.list()?;
        let (least, most) = (self.count.start(), self.count.end());
        let [one, several] = self.what;
        if !self.count.contains(&elements.len()) {
            at.error(format!(
                "has to be a list of {least} to {most} {several}, has {}",
                elements.len()
            ));
        }
        let mut values = Vec::new();
        for element in elements {
            let Some(value) = self.of.read(&element) else { continue };
            if values.contains(&value) {
                let shown = quoted(&for_people(&self.of.write(&value)));
                element.error(format!("the {one} {shown} is listed twice"));
            }
            values.push(value);
        }
        Some(values)
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.iter().map(|of| self.of.write(of)).collect()
    }

    fn schema(&self) -> Json {
        let (least, most) = (self.count.start(), self.count.end());
        json!({ "type": "array", "minItems": least, "maxItems": most, "uniqueItems": true, "items": self.of.schema() })
    }
}

/// The kind of lists.
pub struct Each<K>(pub K);

impl<K: Kind> Kind for Each<K> {
    type Value = Vec<K::Value>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        at.each(|element| self.0.read(element))
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.iter().map(|of| self.0.write(of)).collect()
    }

    fn schema(&self) -> Json {
        json!({ "type": "array", "items": self.0.schema() })
    }
}
