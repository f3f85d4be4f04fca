//! [`Node`]: documents as trees of values, in which every node and every key has a position.
//!
//! This module is separate from typed deserialization, which stops at the first error and reports
//! no positions.

use super::findings::SourcePosition;

/// A value or the name of a field, with its position in a file.
#[derive(Clone, PartialEq)]
pub struct Placed<T> {
    /// The value or the name of a field.
    pub value: T,
    /// The file, line and column at which the value or the name begins.
    pub position: SourcePosition,
}

/// A value in the tree of a document, with its position.
pub type Node = Placed<Value>;

/// The name of a field, with its position. A numeric name becomes text.
pub type Key = Placed<String>;

impl Node {
    /// Converts a JSON value that does not come from a file.
    pub fn of_json(value: &serde_json::Value) -> Self {
        Self::of_json_at(value, SourcePosition::NOWHERE)
    }

    /// Converts a JSON value, and gives all nodes in it this position. A caller that derived the
    /// value from a text in a file passes the position of that text.
    pub fn of_json_at(value: &serde_json::Value, position: SourcePosition) -> Self {
        use serde_json::Value as Json;

        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i128() {
                Some(whole) => Value::Integer(whole),
                None => Value::Fraction(Fraction::new(number.to_string())),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(elements) => Value::List(
                elements.iter().map(|element| Self::of_json_at(element, position)).collect(),
            ),
            Json::Object(fields) => {
                let field = |(key, value): (&String, &Json)| {
                    (Key { value: key.clone(), position }, Self::of_json_at(value, position))
                };
                Value::Map(fields.iter().map(field).collect())
            }
        };
        Self { value, position }
    }

    /// Returns an empty mapping at this position.
    pub const fn empty(position: SourcePosition) -> Self {
        Self { value: Value::Map(Vec::new()), position }
    }

    /// Sets the value at a path of fields. Missing mappings on the path are created at the position
    /// of the value.
    pub fn set(&mut self, path: &str, node: Self) {
        let position = node.position;
        let mut target = self;
        for name in path.split('.') {
            if !matches!(target.value, Value::Map(_)) {
                target.value = Value::Map(Vec::new());
            }
            let Value::Map(entries) = &mut target.value else { return };
            let found = entries.iter().position(|(key, _)| key.value == name);
            let index = found.unwrap_or(entries.len());
            if found.is_none() {
                let key = Key { value: name.to_owned(), position };
                entries.push((key, Self::empty(position)));
            }
            target = &mut entries[index].1;
        }
        *target = node;
    }

    /// Returns this mapping with the fields of `other`, which replace fields with the same name.
    /// Ignores `null` in `other`. Nested mappings are merged in the same way, down to this depth.
    pub fn with_fields_of(mut self, other: &Self, depth: usize) -> Self {
        let (Value::Map(own), Value::Map(others)) = (&mut self.value, &other.value) else {
            return other.clone();
        };
        for (key, node) in others.iter().filter(|(_, node)| !node.is_null()) {
            match own.iter_mut().find(|(own_key, _)| own_key.value == key.value) {
                Some((_, old)) if depth > 1 => *old = old.clone().with_fields_of(node, depth - 1),
                Some((_, old)) => *old = node.clone(),
                None => own.push((key.clone(), node.clone())),
            }
        }
        self
    }

    /// Sets the file index of the value and of everything in it.
    pub fn put_into(&mut self, file: usize) {
        self.position.file = file;
        match &mut self.value {
            Value::List(elements) => elements.iter_mut().for_each(|element| element.put_into(file)),
            Value::Map(entries) => entries.iter_mut().for_each(|(key, node)| {
                key.position.file = file;
                node.put_into(file);
            }),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Fraction(_)
            | Value::Text(_) => {}
        }
    }

    /// Returns true if the value is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Returns the text if the value is a string.
    pub fn text(&self) -> Option<&str> {
        let Value::Text(text) = &self.value else { return None };
        Some(text)
    }

    /// Returns true if the value is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// Returns the value at a path of fields such as `spec.sink`; `None` if a field is missing.
    pub fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |parent, name| {
            let Value::Map(entries) = &parent.value else { return None };
            entries.iter().find(|(key, _)| key.value == name).map(|(_, node)| node)
        })
    }
}

/// The value of a node, as the file states it.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// No value: `~`, `null`, or an empty value.
    Null,
    /// `true` or `false`. Other booleans of YAML 1.1, such as `yes`, are text.
    Bool(bool),
    /// A whole number, in the range of `i128`.
    Integer(i128),
    /// Any other number, with its digits as the file states them.
    Fraction(Fraction),
    /// A string, quoted or not.
    Text(String),
    /// A sequence of values.
    List(Vec<Node>),
    /// A mapping, whose fields are in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// A number that keeps the digits of the file. A floating-point number would round it.
#[derive(Clone, PartialEq)]
pub struct Fraction {
    written: String,
}

impl Fraction {
    /// Wraps the text of a number without parsing it.
    #[must_use]
    pub const fn new(written: String) -> Self {
        Self { written }
    }

    /// Returns the number as JSON. YAML also allows `+1.5`, `.5` and `5.`, which JSON does not.
    pub fn json(&self) -> String {
        let text = self.written.strip_prefix('+').unwrap_or(&self.written);
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
        let zero = if digits.starts_with('.') { "0" } else { "" };
        let text = format!("{sign}{zero}{digits}");
        match text.split_once('.') {
            Some((whole, rest)) if !rest.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{whole}{rest}")
            }
            Some(_) | None => text,
        }
    }
}

impl<T> Placed<T> {
    /// Returns `value` with the position of `self`.
    pub fn with<U>(&self, value: U) -> Placed<U> {
        Placed { value, position: self.position }
    }
}

impl Value {
    /// Returns the name of the value's type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "a whole number",
            Self::Fraction(_) => "a number with a fraction",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}
