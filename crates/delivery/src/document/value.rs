//! [`Kind`]: field types. A field type defines how values are read, written, described and shown.
//!
//! This module is separate from the records that use field types, because many fields can have the
//! same type.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::{Value as Json, json};

use super::declaration::{Declaration, Shown};
use super::findings::quoted;
use super::reader::Cursor;
use crate::time::duration::format_ms;

/// A field type: how the values of a field are read, written, described and shown.
pub trait Kind {
    /// The Rust type of a value with this field type.
    type Value;

    /// True if `null` counts as absent. Exported resources have `null` for absent mappings.
    const NULL_IS_ABSENT: bool = false;

    /// Reads the value at the cursor. Reports an invalid value and returns `None`.
    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value>;

    /// Reads the value at the cursor. For a merged mapping, further documents (`_bases`) supply
    /// missing fields.
    fn read_over<'a>(&self, at: &Cursor<'a>, _bases: &[Cursor<'a>]) -> Option<Self::Value> {
        self.read(at)
    }

    /// Returns the value as a document states it.
    fn write(&self, value: &Self::Value) -> Json;

    /// Returns the JSON Schema of the values.
    fn schema(&self) -> Json;

    /// Returns the declarations of nested fields, if the value is a mapping that is merged field by
    /// field; otherwise none.
    fn fields(&self) -> Vec<Declaration> {
        Vec::new()
    }

    /// Returns the value for display, without secrets. By default, it is the value as a document
    /// states it.
    fn shown(&self, value: &Self::Value) -> Json {
        self.write(value)
    }

    /// Adds the value of the field at `path` to the settings for display.
    fn show(&self, path: String, value: &Self::Value, shown: &mut Vec<Shown>) {
        let value = self.shown(value);
        shown.push(Shown { path, text: for_people(&value), value });
    }
}

/// Formats a JSON value as text for people.
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

/// The field type of booleans.
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

/// The field type of whole numbers within a range.
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

/// The field type of durations within a range, in milliseconds.
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

/// The field type of enumerations: all values, and the function that returns the name of a value.
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
        json!({ "enum": self.0.iter().map(|word| self.1(*word)).collect::<Vec<_>>() })
    }
}

/// The field type of strings that are parsed into `T`. Messages do not quote the string, because a
/// user may have written a secret there by mistake.
pub struct Parsed<T> {
    /// A noun for the string, for messages, such as `the name of a secret`.
    noun: &'static str,
    /// The syntax of the string, for messages.
    rule: &'static str,
    /// The name of the field type's definition in the JSON Schema.
    definition: &'static str,
    parsed: PhantomData<T>,
}

impl<T> Parsed<T> {
    /// Creates a field type from its texts for messages and the name of its definition.
    pub const fn new(noun: &'static str, rule: &'static str, definition: &'static str) -> Self {
        Self { noun, rule, definition, parsed: PhantomData }
    }
}

impl<T: FromStr + Display> Kind for Parsed<T> {
    type Value = T;

    fn read(&self, at: &Cursor<'_>) -> Option<T> {
        at.parsed(self.noun, self.rule)
    }

    fn write(&self, value: &T) -> Json {
        json!(value.to_string())
    }

    fn schema(&self) -> Json {
        json!({ "$ref": format!("#/$defs/{}", self.definition) })
    }
}

/// The field type of strings that a function checks. The error of the function states the rule.
pub struct Checked {
    /// Maximum number of characters in the string.
    pub max_chars: usize,
    /// Checks a string. The error states the rule that the string violates.
    pub check: fn(&str) -> Result<(), String>,
    /// Returns the members of the JSON Schema other than `type` and `maxLength`.
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
                .refuse(format!("expected a string of at most {} characters", self.max_chars));
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

/// The field type of lists without duplicates.
pub struct Distinct<K> {
    /// The field type of the elements.
    pub element: K,
    /// The noun for an element, in singular and plural, for messages.
    pub nouns: [&'static str; 2],
    /// The allowed numbers of elements.
    pub count: RangeInclusive<usize>,
}

impl<K: Kind<Value: PartialEq>> Kind for Distinct<K> {
    type Value = Vec<K::Value>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        let elements = at.list()?;
        let (least, most) = (self.count.start(), self.count.end());
        let [singular, plural] = self.nouns;
        if !self.count.contains(&elements.len()) {
            at.error(format!(
                "must be a list of {least} to {most} {plural}, but has {}",
                elements.len()
            ));
        }
        let mut values = Vec::new();
        for element in elements {
            let Some(value) = self.element.read(&element) else { continue };
            if values.contains(&value) {
                let shown = quoted(&for_people(&self.element.write(&value)));
                element.error(format!("the {singular} {shown} is listed twice"));
            }
            values.push(value);
        }
        Some(values)
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.iter().map(|element| self.element.write(element)).collect()
    }

    fn schema(&self) -> Json {
        let (least, most) = (self.count.start(), self.count.end());
        json!({ "type": "array", "minItems": least, "maxItems": most, "uniqueItems": true, "items": self.element.schema() })
    }
}

/// The field type of lists; duplicates are allowed.
pub struct Each<K>(pub K);

impl<K: Kind> Kind for Each<K> {
    type Value = Vec<K::Value>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        at.each(|element| self.0.read(element))
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.iter().map(|element| self.0.write(element)).collect()
    }

    fn schema(&self) -> Json {
        json!({ "type": "array", "items": self.0.schema() })
    }
}
