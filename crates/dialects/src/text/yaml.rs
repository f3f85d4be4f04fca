//! Parses YAML.
//!
//! Separate because only YAML has aliases, tags, several documents in one text, and many spellings
//! of numbers. JSON documents were removed before (`parts`).

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Location, MessageFormatter as _, Spanned, Tagged};

use delivery::document::findings::{Message, SourcePosition};
use delivery::document::node::{Fraction, Key, Node, Placed, Value};

use super::json::begins_like_json;
use super::parsed::{DEPTH_MAX, FILE_MAX_BYTES, Parsed, Problem, too_deep};

/// Maximum number of parser events that all aliases of a file may add, because nested aliases grow
/// exponentially.
const ALIAS_EVENTS_MAX: usize = 100_000;

/// Parses the documents of a text. After a syntax error, the rest of the text is not read. A
/// document with a duplicate key is omitted.
pub(crate) fn read(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let source = Source::new(text);
    let mut bytes = text.as_bytes();
    for read in serde_saphyr::read_with_options::<_, Read>(&mut bytes, options(text)) {
        let read = read.map_err(|error| {
            let position = error.location().map_or(BEGINNING, |at| position(&at));
            Placed { value: syntax_message(&error, text), position }
        });
        match read.and_then(|root| node(root, &source)) {
            Ok(root) => parsed.add(root),
            Err(problem) => parsed.problems.push(problem),
        }
    }
    parsed
}

/// A value from the YAML parser, with its tag and its position.
type Read = Spanned<Tagged<Tree>>;

/// Converts a parsed YAML value to a node, including all nested values. A CloudFormation tag
/// becomes a mapping with one key. If the tag were dropped, its argument would become the value,
/// such as the name of an export for `!ImportValue`.
fn node(parsed: Read, source: &Source<'_>) -> Result<Node, Problem> {
    let position = position(&parsed.referenced);
    let Tagged(tree, tag) = parsed.value;
    let value = match tree {
        Tree::Null => Value::Null,
        Tree::Bool(value) => Value::Bool(value),
        Tree::Integer(value) => Value::Integer(value),
        Tree::Fraction => {
            let span = parsed.defined.span();
            Value::Fraction(Fraction::new(source.part((span.offset(), span.len())).to_owned()))
        }
        Tree::Text(text) => Value::Text(text),
        Tree::List(elements) => {
            let elements = elements.into_iter().map(|element| node(element, source));
            Value::List(elements.collect::<Result<_, _>>()?)
        }
        Tree::Map(entries) => Value::Map(mapping(entries, source)?),
    };
    let node = Placed { value, position };
    let Some(name) = tag.as_deref().and_then(function) else { return Ok(node) };
    let entry = (Key { value: name, position }, node);
    Ok(Placed { value: Value::Map(vec![entry]), position })
}

/// Returns the long form of a tag for a CloudFormation function, such as `Fn::Sub` for `!Sub`.
fn function(tag: &str) -> Option<String> {
    let name = tag.strip_prefix('!')?;
    match name {
        "Ref" | "Condition" => Some(name.to_owned()),
        _ => name.starts_with(|c: char| c.is_ascii_uppercase()).then(|| format!("Fn::{name}")),
    }
}

/// Converts the entries of a mapping. Fails if two keys have the same text: the YAML parser accepts
/// `1` and `"1"` as different keys.
fn mapping(
    entries: Vec<(Spanned<String>, Read)>,
    source: &Source<'_>,
) -> Result<Vec<(Key, Node)>, Problem> {
    let mut names = BTreeSet::new();
    let entry = |(key, value): (Spanned<String>, Read)| {
        let position = position(&key.referenced);
        if !names.insert(key.value.clone()) {
            return Err(Placed { value: defined_twice(&key.value), position });
        }
        Ok((Key { value: key.value, position }, node(value, source)?))
    };
    entries.into_iter().map(entry).collect()
}

fn defined_twice(key: &str) -> Message {
    Message::new(format!("{key} is defined twice in one mapping")).help("keep one of them")
}

/// The text of a file, for looking up a character by its index.
struct Source<'a> {
    text: &'a str,
    /// Byte offset of every thousandth character, so that a look-up reads few characters.
    marks: Vec<usize>,
}

impl<'a> Source<'a> {
    const STEP: usize = 1000;

    fn new(text: &'a str) -> Self {
        let marks = text.char_indices().step_by(Self::STEP).map(|(at, _)| at).collect();
        Self { text, marks }
    }

    fn part(&self, (begin, length): (u64, u64)) -> &'a str {
        let (part, rest) = (self.from(begin), self.from(begin.saturating_add(length)));
        part.get(..part.len() - rest.len()).unwrap_or_default()
    }

    /// Returns the text that begins at the character with this index.
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

/// Converts an error of the YAML parser to a message. Adds a hint if the file seems to be a
/// template.
fn syntax_message(error: &serde_saphyr::Error, text: &str) -> Message {
    if let serde_saphyr::Error::DuplicateMappingKey { key, .. } = error.without_snippet() {
        let key = key.as_deref().unwrap_or("a key");
        return defined_twice(key);
    }
    if let serde_saphyr::Error::Budget { breach: BudgetBreach::Depth { .. }, .. } =
        error.without_snippet()
    {
        return too_deep("; the file is read up to here");
    }
    let message = Message::new(format!(
        "not valid YAML: {}",
        serde_saphyr::UserMessageFormatter.format_message(error)
    ));
    if text.contains("{{") && !begins_like_json(text) {
        return message.help(
            "the file is a template: check its rendered output, such as that of helm template",
        );
    }
    message
}

/// Returns the options of the parser. Every relevant option is explicit instead of a default.
/// CloudFormation templates have tags such as `!Sub`, which `function` converts.
fn options(text: &str) -> serde_saphyr::Options {
    let is_template = text.contains("AWS::Events::");
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX, max_reader_input_bytes: Some(FILE_MAX_BYTES) },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIAS_EVENTS_MAX },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::Merge,
        legacy_octal_numbers: false,
        reject_unsupported_tags: !is_template,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// Position of the first character of a file.
const BEGINNING: SourcePosition = SourcePosition { file: 0, line: 1, column: 1 };

/// Converts a position of the parser. A value without a position gets that of the first character.
fn position(at: &Location) -> SourcePosition {
    SourcePosition { file: 0, line: at.line().max(1), column: at.column().max(1) }
}

/// A parsed YAML value.
enum Tree {
    Null,
    Bool(bool),
    Integer(i128),
    /// A number whose digits must be read from the text, because the parser does not keep them.
    Fraction,
    Text(String),
    List(Vec<Read>),
    Map(Vec<(Spanned<String>, Read)>),
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(value.into()))
    }

    fn visit_f64<E>(self, _rounded: f64) -> Result<Tree, E> {
        Ok(Tree::Fraction)
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}
