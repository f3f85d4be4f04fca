//! Text → documents: a tree of values in which every node and every key knows its line and column.
//!
//! Separate because typed deserialization cannot do what findings need: continue after the first
//! problem, and give its position. JSON and YAML have a parser each (`json`, `yaml`), since templates in JSON
//! may have comments that YAML takes for text; `parts` decides which one reads a document. Promises: no input
//! panics, and nesting, aliases and size are bounded. A syntax error in YAML ends its file, one in JSON its
//! document; a duplicate key ends its document, because it is unknown which of the two was intended.

mod json;
mod parts;
mod yaml;

use std::thread;

use parts::Parts;
pub(crate) use parts::begins_like_json;

use super::findings::{Findings, Message, Severity, SourcePosition};

/// The largest file: a thousand subscriptions take a tenth of it. The tree of a file is held in
/// memory.
pub(crate) const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting of a document: definitions of Kubernetes that files also hold have 31 levels.
const DEPTH_MAX: usize = 64;
/// The stack that the parser may use. It recurses: 64 levels take 3 MiB without optimisation, and a thread has 2.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// What is somewhere in a file, and its position.
#[derive(Clone)]
pub(crate) struct Placed<T> {
    /// What is there.
    pub(crate) value: T,
    /// Its position.
    pub(crate) position: SourcePosition,
}

/// A value and its position.
pub(crate) type Node = Placed<Value>;

/// The key of a field and its position; a number is its text.
pub(crate) type Key = Placed<String>;

impl Node {
    /// A value that is in no file.
    pub(crate) fn of_json(value: &serde_json::Value) -> Self {
        Self::of_json_at(value, SourcePosition::NOWHERE)
    }

    /// A value that something at this position stands for.
    pub(crate) fn of_json_at(value: &serde_json::Value, position: SourcePosition) -> Self {
        use serde_json::Value as Json;

        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i128() {
                Some(whole) => Value::Integer(whole),
                None => {
                    Value::Fraction(Fraction { written: number.to_string(), ..Fraction::default() })
                }
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(elements) => {
                Value::List(elements.iter().map(|of| Self::of_json_at(of, position)).collect())
            }
            Json::Object(fields) => {
                let field = |(key, value): (&String, &Json)| {
                    (Key { value: key.clone(), position }, Self::of_json_at(value, position))
                };
                Value::Map(fields.iter().map(field).collect())
            }
        };
        Self { value, position }
    }

    /// An empty mapping at this position.
    pub(crate) const fn empty(position: SourcePosition) -> Self {
        Self { value: Value::Map(Vec::new()), position }
    }

    /// Sets the value at a path of fields. Mappings on the way that are not there yet are at its position.
    pub(crate) fn set(&mut self, path: &str, node: Self) {
        let position = node.position;
        let mut of = self;
        for name in path.split('.') {
            if !matches!(of.value, Value::Map(_)) {
                of.value = Value::Map(Vec::new());
            }
            let Value::Map(entries) = &mut of.value else { return };
            let found = entries.iter().position(|(key, _)| key.value == name);
            let index = found.unwrap_or(entries.len());
            if found.is_none() {
                let key = Key { value: name.to_owned(), position };
                entries.push((key, Self::empty(position)));
            }
            of = &mut entries[index].1;
        }
        *of = node;
    }

    /// This mapping with the fields of another one in place of its own, down to this depth.
    pub(crate) fn with_fields_of(mut self, other: &Self, depth: usize) -> Self {
        let (Value::Map(own), Value::Map(others)) = (&mut self.value, &other.value) else {
            return other.clone();
        };
        for (key, node) in others {
            match own.iter_mut().find(|(of, _)| of.value == key.value) {
                Some((_, old)) if depth > 1 => *old = old.clone().with_fields_of(node, depth - 1),
                Some((_, old)) => *old = node.clone(),
                None => own.push((key.clone(), node.clone())),
            }
        }
        self
    }

    /// Puts the value and all that is in it into this file.
    fn put_into(&mut self, file: usize) {
        self.position.file = file;
        match &mut self.value {
            Value::List(elements) => elements.iter_mut().for_each(|of| of.put_into(file)),
            Value::Map(entries) => entries.iter_mut().for_each(|(key, of)| {
                key.position.file = file;
                of.put_into(file);
            }),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Fraction(_)
            | Value::Text(_) => {}
        }
    }

    /// Whether this is `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The text here, if this is text.
    pub(crate) fn text(&self) -> Option<&str> {
        let Value::Text(text) = &self.value else { return None };
        Some(text)
    }

    /// The elements of a list; none of any other value.
    pub(crate) fn elements(&self) -> &[Self] {
        let Value::List(elements) = &self.value else { return &[] };
        elements
    }

    /// Whether this is a mapping.
    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// The value at a path of fields.
    pub(crate) fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |of, name| {
            let Value::Map(entries) = &of.value else { return None };
            entries.iter().find(|(key, _)| key.value == name).map(|(_, node)| node)
        })
    }
}

/// What a node holds.
#[derive(Clone)]
pub(crate) enum Value {
    /// Nothing: `~`, `null`, or no text at all.
    Null,
    /// `true` or `false`; the other words of old YAML are text.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number, as it is written.
    Fraction(Fraction),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// A number in its own digits: a double would round it.
#[derive(Clone, Default)]
pub(crate) struct Fraction {
    /// The position in a text of YAML: the first character, and the number of characters.
    characters: (u64, u64),
    /// As it is written; of YAML empty until the text has been parsed.
    written: String,
}

impl Fraction {
    /// As JSON spells it; YAML also has `+1.5`, `.5` and `5.`.
    pub(crate) fn json(&self) -> String {
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
    /// Another value at the same position.
    pub(crate) fn with<U>(&self, value: U) -> Placed<U> {
        Placed { value, position: self.position }
    }
}

impl Value {
    /// The kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
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

/// A problem and its position in a file.
type Problem = Placed<Message>;

/// The documents of one file, and where it cannot be read; empty ones are left out, and a list at the top
/// is one document per element.
#[derive(Default)]
pub(crate) struct Parsed {
    documents: Vec<Node>,
    problems: Vec<Problem>,
}

impl Parsed {
    /// Parses the text of a file, on a thread with enough stack. A name that ends with `.json` makes it JSON.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        if text.len() > FILE_MAX_BYTES {
            let message =
                format!("the file has {} bytes; at most {FILE_MAX_BYTES} are read", text.len());
            return Self::unreadable(Message::new(message).help("split it"));
        }
        let parsed = thread::scope(|scope| {
            let parser = thread::Builder::new().stack_size(STACK_BYTES);
            parser.spawn_scoped(scope, || Self::parse(name, text)).ok()?.join().ok()
        });
        parsed.unwrap_or_else(|| {
            Self::unreadable("the file could not be parsed: no thread, or no memory for it".into())
        })
    }

    /// No documents, and why.
    pub(crate) fn unreadable(value: Message) -> Self {
        let position = SourcePosition { file: 0, line: 1, column: 1 };
        Self { documents: Vec::new(), problems: vec![Placed { value, position }] }
    }

    fn parse(name: &str, text: &str) -> Self {
        // Neither parser counts a byte order mark as a character.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Parts { json: mut parsed, yaml, mut doubts } = parts::read(name, text);
        let of_yaml = yaml::read(&yaml);
        let problems = of_yaml.problems.into_iter().map(|problem| doubts.resolve(problem));
        parsed.problems.extend(problems);
        parsed.documents.extend(of_yaml.documents);
        // Both are in the order of the file, which documents of the two formats may share.
        parsed.documents.sort_by_key(|node| node.position);
        parsed
    }

    /// Adds a document, or each element of a list as one.
    fn add(&mut self, root: Node) {
        let is_there = |node: &Node| !matches!(node.value, Value::Null);
        match root {
            Node { value: Value::List(elements), .. } => {
                self.documents.extend(elements.into_iter().filter(is_there));
            }
            node => self.documents.extend(Some(node).filter(is_there)),
        }
    }

    /// The documents, with the file's index among those that are read together; reports its problems.
    pub(crate) fn into_documents(mut self, file: usize, findings: &Findings) -> Vec<Node> {
        for problem in self.problems {
            let position = SourcePosition { file, ..problem.position };
            findings.add(Severity::Error, position, "", problem.value);
        }
        self.documents.iter_mut().for_each(|node| node.put_into(file));
        self.documents
    }
}

/// The message for a document that nests too deep, in either format.
fn too_deep(consequence: &str) -> Message {
    Message::new(format!("nested deeper than {DEPTH_MAX} levels{consequence}"))
        .help("put this document into a file of its own")
}

#[cfg(test)]
mod tests;
