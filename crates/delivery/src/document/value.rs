//! Kinds of values: how each is read, written, described and shown.
//!
//! Separate from the records that use them: a kind is declared once, however many fields are of it.

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

    /// Treats `null` as absent: exported resources have it for absent mappings.
    const NULL_IS_ABSENT: bool = false;

    /// Reads the value at the cursor; an invalid one is reported.
    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value>;

    /// Reads the value over further documents, which state fields that are missing here.
    fn read_over<'a>(&self, at: &Cursor<'a>, _bases: &[Cursor<'a>]) -> Option<Self::Value> {
        self.read(at)
    }

    /// The value as a document states it.
    fn write(&self, value: &Self::Value) -> Json;

    /// The JSON Schema of its values.
    fn schema(&self) -> Json;

    /// The fields of a mapping that is merged field by field.
    fn fields(&self) -> Vec<Declaration> {
        Vec::new()
    }

    /// The value as it is shown: as it is written, if nothing of it is secret.
    fn shown(&self, value: &Self::Value) -> Json {
        self.write(value)
    }

    /// Adds its settings as they are shown.
    fn show(&self, path: String, value: &Self::Value, shown: &mut Vec<Shown>) {
        let value = self.shown(value);
        shown.push(Shown { path, text: for_people(&value), value });
    }
}

/// A value of JSON for people.
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

/// `true` or `false`.
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

/// A whole number within a range.
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

/// A duration within a range, in milliseconds.
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

/// One of these words.
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

/// Text that is parsed into a type of its own. It is not quoted in messages: it may be a secret by mistake.
pub struct Parsed<T> {
    /// The name of the kind, for messages.
    what: &'static str,
    /// The rule for its text, for messages.
    rule: &'static str,
    /// Its definition in the JSON Schema.
    definition: &'static str,
    parsed: PhantomData<T>,
}

impl<T> Parsed<T> {
    /// The kind with these words for messages, and the name of its definition.
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

/// Text that a function checks; its error says what would be right.
pub struct Checked {
    /// The most characters.
    pub max_chars: usize,
    /// The check.
    pub check: fn(&str) -> Result<(), String>,
    /// The members of the JSON Schema beside its type and its length.
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

/// A list of different values.
pub struct Distinct<K> {
    /// The kind of each.
    pub of: K,
    /// The word for one of them, and for several, in messages.
    pub what: [&'static str; 2],
    /// The numbers of elements that are allowed.
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

/// A list.
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
