//! Text → documents: a tree of values in which every node and every key knows its line and column.
//!
//! Separate because typed deserialization cannot do what findings need: continue after the first
//! problem, and give its position. JSON is read by the same parser. Promises: no input panics, and
//! nesting, aliases and size are bounded. A syntax error ends its file; a duplicate key ends its
//! document, because it is unknown which of the two was intended.

use std::{fmt, thread};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Location, MessageFormatter as _, Spanned};

use super::findings::{Findings, Message, Severity, SourcePosition};

/// The largest file: a thousand subscriptions take a tenth of it. The tree of a file is held in
/// memory.
pub(super) const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting of a document: definitions of Kubernetes that files also hold have 31 levels.
const DEPTH_MAX: usize = 64;
/// The stack that the parser may use. It recurses: 64 levels take 3 MiB without optimisation, and a thread has 2.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// The most parser events that all aliases of a file may add: nested aliases grow exponentially.
const ALIAS_EVENTS_MAX: usize = 100_000;

/// One document of a file.
pub(super) struct Document {
    /// The index of its file.
    pub(super) file: usize,
    /// Its outermost value.
    pub(super) root: Node,
}

/// What is somewhere in a file, and its position.
#[derive(Clone)]
pub(super) struct Placed<T> {
    /// What is there.
    pub(super) value: T,
    line: u64,
    column: u64,
}

/// A value and its position.
pub(super) type Node = Placed<Value>;

/// The key of a field and its position; a number is its text.
pub(super) type Key = Placed<String>;

/// What a node holds.
#[derive(Clone)]
pub(super) enum Value {
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
    /// An expression of a template whose value is not known.
    Open(Open),
}

/// An expression of a template whose value is not known.
#[derive(Clone)]
pub(super) struct Open {
    /// The expression as it is written.
    pub(super) text: String,
    /// What of it is not known.
    pub(super) why: String,
}

/// A number in its own digits: a double would round it.
#[derive(Clone, Default)]
pub(super) struct Fraction {
    /// Where it is in the file: the first character and how many there are.
    characters: (u64, u64),
    /// As it is written; empty until the file has been parsed.
    written: String,
}

impl Fraction {
    /// As JSON spells it; YAML also has `+1.5`, `.5` and `5.`.
    pub(super) fn json(&self) -> String {
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
    pub(super) fn with<U>(&self, value: U) -> Placed<U> {
        Placed { value, line: self.line, column: self.column }
    }

    /// The position, in this file.
    pub(super) fn position(&self, file: usize) -> SourcePosition {
        SourcePosition { file, line: self.line, column: self.column }
    }
}

impl Value {
    /// The kind of the value, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "a whole number",
            Self::Fraction(_) => "a number with a fraction",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
            Self::Open(_) => "an expression",
        }
    }
}

/// The documents of one file, and where it cannot be read; empty ones are left out, and a list at the top
/// is one document per element.
pub(super) struct Parsed {
    documents: Vec<Node>,
    /// Line, column and what is wrong there.
    problems: Vec<(u64, u64, Message)>,
}

impl Parsed {
    /// Parses the text of a file, on a thread with enough stack.
    pub(super) fn new(text: &str) -> Self {
        if text.len() > FILE_MAX_BYTES {
            let message =
                format!("the file has {} bytes; at most {FILE_MAX_BYTES} are read", text.len());
            return Self::unreadable(Message::new(message).help("split it"));
        }
        let parsed = thread::scope(|scope| {
            let parser = thread::Builder::new().stack_size(STACK_BYTES);
            parser.spawn_scoped(scope, || Self::parse(text)).ok()?.join().ok()
        });
        parsed.unwrap_or_else(|| {
            Self::unreadable("the file could not be parsed: no thread, or no memory for it".into())
        })
    }

    /// No documents, and why.
    fn unreadable(message: Message) -> Self {
        Self { documents: Vec::new(), problems: vec![(1, 1, message)] }
    }

    fn parse(text: &str) -> Self {
        let mut parsed = Self { documents: Vec::new(), problems: Vec::new() };
        let mut bytes = text.as_bytes();
        for read in serde_saphyr::read_with_options::<_, Node>(&mut bytes, options()) {
            match read {
                Ok(Node { value: Value::List(elements), .. }) => parsed.documents.extend(elements),
                Ok(node) => parsed.documents.push(node),
                Err(error) => {
                    let (line, column) = error.location().map_or((1, 1), |at| line_and_column(&at));
                    parsed.problems.push((line, column, syntax_message(&error, text)));
                }
            }
        }
        parsed.documents.retain(|node| !matches!(node.value, Value::Null));
        let source = Source::new(text);
        parsed.documents.iter_mut().for_each(|node| write_fractions(node, &source));
        parsed
    }

    /// The documents, with the file's index among those that are read together; reports its problems.
    pub(super) fn into_documents(self, file: usize, findings: &Findings) -> Vec<Document> {
        for (line, column, message) in self.problems {
            findings.add(Severity::Error, SourcePosition { file, line, column }, "", message);
        }
        self.documents.into_iter().map(|root| Document { file, root }).collect()
    }
}

/// Gives each number in a tree the text that it has in the file.
fn write_fractions(node: &mut Node, source: &Source<'_>) {
    match &mut node.value {
        Value::Fraction(number) => source.part(number.characters).clone_into(&mut number.written),
        Value::List(list) => list.iter_mut().for_each(|node| write_fractions(node, source)),
        Value::Map(map) => map.iter_mut().for_each(|(_, node)| write_fractions(node, source)),
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Text(_) | Value::Open(_) => {}
    }
}

/// The text of a file, whose parts are found by characters.
struct Source<'a> {
    text: &'a str,
    /// The byte at which every thousandth character begins: none is far from one of them.
    marks: Vec<usize>,
}

impl<'a> Source<'a> {
    const STEP: usize = 1000;

    fn new(text: &'a str) -> Self {
        // The parser does not count a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let marks = text.char_indices().step_by(Self::STEP).map(|(at, _)| at).collect();
        Self { text, marks }
    }

    fn part(&self, (begin, length): (u64, u64)) -> &'a str {
        let (part, rest) = (self.from(begin), self.from(begin.saturating_add(length)));
        part.get(..part.len() - rest.len()).unwrap_or_default()
    }

    /// The text from a character on.
    fn from(&self, character: u64) -> &'a str {
        let character = usize::try_from(character).unwrap_or(usize::MAX);
        let mark = self.marks.get(character / Self::STEP).copied().unwrap_or(self.text.len());
        let mut rest = self.text.get(mark..).unwrap_or_default().chars();
        if character % Self::STEP > 0 {
            rest.nth(character % Self::STEP - 1);
        }
        rest.as_str()
    }
}

/// What is not YAML in a file, and what the file is perhaps.
fn syntax_message(error: &serde_saphyr::Error, text: &str) -> Message {
    if let serde_saphyr::Error::DuplicateMappingKey { key, .. } = error.without_snippet() {
        let key = key.as_deref().unwrap_or("a key");
        return Message::new(format!("{key} is defined twice in one mapping"))
            .help("keep one of them");
    }
    if let serde_saphyr::Error::Budget { breach: BudgetBreach::Depth { .. }, .. } =
        error.without_snippet()
    {
        let message = format!("nested deeper than {DEPTH_MAX} levels; the file is read up to here");
        return Message::new(message).help("put this document into a file of its own");
    }
    let message = Message::new(format!(
        "not YAML that can be read: {}",
        serde_saphyr::UserMessageFormatter.format_message(error)
    ));
    match likely_mistake(text) {
        Some(help) => message.help(help),
        None => message,
    }
}

/// What would make a file readable that is no YAML.
fn likely_mistake(text: &str) -> Option<&'static str> {
    let begins = text.trim_start();
    let is_json = begins.starts_with(['{', '[']) && !begins.starts_with("{{");
    if text.contains("{{") && !is_json {
        return Some(
            "this is a template: check what it renders, such as the output of helm template",
        );
    }
    let values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    if values.take_while(Result::is_ok).take(2).count() == 2 {
        return Some("several JSON documents are separated by a line with ---, or are a list");
    }
    let has_comments = begins.starts_with("//") || text.contains("\n//") || text.contains("/*");
    has_comments.then_some("JSON has no comments: remove them")
}

/// Every option that matters is set here, not left to the parser's defaults.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX, max_reader_input_bytes: Some(FILE_MAX_BYTES) },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIAS_EVENTS_MAX },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::Merge,
        legacy_octal_numbers: false,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// Line and column from 1; a value without a position is at the first character.
fn line_and_column(at: &Location) -> (u64, u64) {
    (at.line().max(1), at.column().max(1))
}

/// What may have to know where it is written.
trait Written {
    /// Keeps the place.
    fn at(&mut self, _place: &Location) {}
}

impl Written for String {}

impl Written for Value {
    fn at(&mut self, place: &Location) {
        if let Self::Fraction(number) = self {
            number.characters = (place.span().offset(), place.span().len());
        }
    }
}

impl<'de, T: Deserialize<'de> + Written> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { mut value, referenced, defined }: Spanned<T> =
            Spanned::deserialize(deserializer)?;
        value.at(&defined);
        let (line, column) = line_and_column(&referenced);
        Ok(Self { value, line, column })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, _rounded: f64) -> Result<Value, E> {
        Ok(Value::Fraction(Fraction::default()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests;
