//! Text → documents: a tree of values in which every node and every key knows its line and column.
//!
//! Separate because typed reading cannot do what findings need: go on after the first problem, and point at it. JSON
//! is read by the same parser. Promises: no input panics, and nesting, aliases and size are bounded. A syntax error
//! ends its file; a key that stands twice ends its document, because nobody knows which of the two was meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, MessageFormatter as _, Spanned};

use super::findings::{Findings, Message, Place, Severity};

/// The largest file: a thousand subscriptions take a tenth of it, and all of it is held in memory as a tree.
pub(super) const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting of a document. The parser recurses, and half of a thread's 2 MiB of stack has to be enough for
/// it, also without optimisation.
const DEPTH_MAX: usize = 24;
/// What all aliases of a file may add, in parser events: an alias of aliases of aliases grows without bound.
const ALIAS_EVENTS_MAX: usize = 100_000;

/// One document of a file.
pub(super) struct Document {
    /// Which file it stands in.
    pub(super) file: usize,
    /// Its outermost value.
    pub(super) root: Node,
}

/// A value and where it begins.
pub(super) struct Node {
    /// The value.
    pub(super) value: Value,
    line: u64,
    column: u64,
}

/// What a node holds.
pub(super) enum Value {
    /// Nothing: `~`, `null`, or no text at all.
    Null,
    /// `true` or `false`; the other words of old YAML are text.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Fraction,
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// The key of a field and where it stands.
pub(super) struct Key {
    /// The key; a number is its text.
    pub(super) text: String,
    line: u64,
    column: u64,
}

impl Node {
    /// Where the value begins.
    pub(super) fn place(&self, file: usize) -> Place {
        Place { file, line: self.line, column: self.column }
    }
}

impl Key {
    /// Where the key stands.
    pub(super) fn place(&self, file: usize) -> Place {
        Place { file, line: self.line, column: self.column }
    }
}

impl Value {
    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "a whole number",
            Self::Fraction => "a number with a fraction",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// The documents of one file; empty ones are left out, and a list at the top is one document per element.
pub(super) fn documents(file: usize, text: &str, findings: &Findings) -> Vec<Document> {
    let report = |line, column, message: Message| {
        findings.add(Severity::Error, Place { file, line, column }, "", message);
    };
    if text.len() > FILE_MAX_BYTES {
        let message = format!("the file has {} bytes; at most {FILE_MAX_BYTES} are read", text.len());
        report(1, 1, Message::new(message).help("split it"));
        return Vec::new();
    }
    let mut bytes = text.as_bytes();
    let mut documents = Vec::new();
    for parsed in serde_saphyr::read_with_options::<_, Node>(&mut bytes, options()) {
        match parsed {
            Ok(Node { value: Value::List(elements), .. }) => documents.extend(elements),
            Ok(node) => documents.push(node),
            Err(error) => {
                let (line, column) = error.location().map_or((1, 1), |at| line_and_column(&at));
                report(line, column, syntax_message(&error));
            }
        }
    }
    documents.retain(|node| !matches!(node.value, Value::Null));
    documents.into_iter().map(|root| Document { file, root }).collect()
}

fn syntax_message(error: &serde_saphyr::Error) -> Message {
    if let serde_saphyr::Error::DuplicateMappingKey { key, .. } = error.without_snippet() {
        let key = key.as_deref().unwrap_or("a key");
        return Message::new(format!("{key} stands twice in one mapping")).help("keep one of them");
    }
    Message::new(format!("not YAML that can be read: {}", serde_saphyr::UserMessageFormatter.format_message(error)))
}

/// Every option is said here; the parser's own defaults are not leaned on where they matter.
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

/// Line and column from 1; what has no place of its own stands at the first character.
fn line_and_column(at: &Location) -> (u64, u64) {
    (at.line().max(1), at.column().max(1))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        let (line, column) = line_and_column(&referenced);
        Ok(Self { value, line, column })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: text, referenced, .. } = Spanned::deserialize(deserializer)?;
        let (line, column) = line_and_column(&referenced);
        Ok(Self { text, line, column })
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

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Fraction)
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
mod tests {
    use super::*;

    fn parse(text: &str) -> (Vec<String>, Vec<String>) {
        let findings = Findings::new(["f"].into_iter());
        let shown = documents(0, text, &findings).iter().map(|document| show(&document.root)).collect();
        (shown, findings.into_sorted().iter().map(ToString::to_string).collect())
    }

    fn show(node: &Node) -> String {
        let inner = match &node.value {
            Value::Null => "~".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Fraction => "fraction".to_owned(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(", ")),
            Value::Map(map) => {
                let entry =
                    |(key, node): &(Key, Node)| format!("{}@{}:{} {}", key.text, key.line, key.column, show(node));
                format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        };
        format!("{inner}@{}:{}", node.line, node.column)
    }

    #[test]
    fn every_node_and_key_knows_its_place() {
        let text = "a: [1, -2]\nöü: {503: yes, x: 1.5}\nn:\nt: true\nq: '1'\n";
        let shown = "{a@1:1 [1@1:5, -2@1:8]@1:4, öü@2:1 {503@2:6 \"yes\"@2:11, x@2:16 fraction@2:19}@2:5, \
                     n@3:1 ~@3:2, t@4:1 true@4:4, q@5:1 \"1\"@5:4}@1:1";
        assert_eq!(parse(text), (vec![shown.to_owned()], vec![]));
    }

    #[test]
    fn json_is_read_with_its_escapes_and_tabs() {
        let (shown, findings) = parse("{\n\t\"a\":\"\\ud83d\\ude00\\/\\n\",\"b\":[true,null]}");
        assert_eq!(shown, ["{a@2:2 \"😀/\\n\"@2:6, b@2:25 [true@2:30, ~@2:35]@2:29}@1:1"]);
        assert!(findings.is_empty(), "{findings:?}");
    }

    #[test]
    fn documents_are_parted_by_lines_or_stand_in_a_list_and_empty_ones_are_skipped() {
        assert_eq!(parse("---\n# nothing\n---\na: 1\n---\n~\n...\n").0, ["{a@4:1 1@4:4}@4:1"]);
        assert_eq!(parse(r#"[{"a":1},null,"b"]"#).0, ["{a@1:3 1@1:7}@1:2", "\"b\"@1:15"]);
        assert_eq!(parse(""), (vec![], vec![]));
        assert_eq!(parse("\u{feff}a: 1").0.len(), 1);
    }

    #[test]
    fn an_alias_stands_where_it_is_used() {
        assert_eq!(parse("a: &x 1\nb: *x\n").0, ["{a@1:1 1@1:7, b@2:1 1@2:4}@1:1"]);
    }

    #[test]
    fn a_key_that_stands_twice_ends_its_document_only() {
        let (shown, findings) = parse("a: 1\nb: {503: 1, 503: 2}\n---\nc: 1\n");
        assert_eq!(shown, ["{c@4:1 1@4:4}@4:1"]);
        assert_eq!(findings, ["f:2:13: error: 503 stands twice in one mapping; keep one of them"]);
    }

    #[test]
    fn a_syntax_error_ends_its_file_and_what_came_before_stays() {
        for (text, place) in [
            ("a: 1\n---\nb: [1\nc: 2\n", "f:4:"),
            ("a: 1\n---\nb: 1\n  c: 2\n", "f:4:4:"),
            ("a: 1\n---\nb: *x\n", "f:3:4:"),
            ("a: 1\n---\nb: \"x\n", "f:"),
            ("a: 1\n---\nb: !secret x\n", "f:3:"),
        ] {
            let (shown, findings) = parse(text);
            assert_eq!(shown.len(), 1, "{text}");
            assert_eq!(findings.len(), 1, "{text}");
            assert!(findings[0].starts_with(place), "{findings:?}");
        }
    }

    #[test]
    fn size_nesting_and_aliases_are_bounded() {
        let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
        let bomb = (1..12).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
            let alias = format!("*a{}, ", level - 1).repeat(9);
            format!("{text}a{level}: &a{level} [{alias}]\n")
        });
        for text in [deep, bomb, " ".repeat(FILE_MAX_BYTES + 1)] {
            let (shown, findings) = parse(&text);
            assert_eq!((shown.len(), findings.len()), (0, 1), "{findings:?}");
        }
    }
}
