//! Parses JSON, with the comments that templates may have.
//!
//! The comments are `// …` to the end of the line, and `/* … */`. Separate because YAML reads a
//! comment as text and joins it with the next key. Example: `// only created orders` before
//! `"filter"` would remove the filter of a subscription. The syntax that Azure accepts in templates
//! is accepted: comments, a comma after the last element, and line ends within a text. Everything
//! else follows RFC 8259. Numbers keep their digits. A duplicate key is an error.

use std::collections::BTreeSet;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use delivery::document::findings::{Message, SourcePosition};
use delivery::document::node::{Fraction, Key, Node, Placed, Value};

use super::parsed::{DEPTH_MAX, Problem, too_deep};

/// Options of the parser. Every option is explicit, because the defaults accept more.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
};

/// The problem with a text that is not valid JSON.
pub(crate) struct NotJson {
    /// The first problem in the text.
    pub(crate) problem: Problem,
    /// True if the text may be valid YAML, because of syntax such as a key without quotes.
    pub(crate) may_be_yaml: bool,
}

/// Parses a text; returns `None` if it has only comments. `first_line` is the number of its first
/// line in the file.
///
/// # Errors
/// Returns the first problem.
pub(crate) fn read(text: &str, first_line: u64) -> Result<Option<Node>, Box<NotJson>> {
    let place = || Place { text, offset: 0, line: first_line, column: 1 };
    let refused = |problem, may_be_yaml| Box::new(NotJson { problem, may_be_yaml });
    let collected = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
    let parsed = parse_to_ast(text, &collected, &OPTIONS).map_err(|error| {
        let problem = place().at(error.range().start, syntax_message(&error));
        refused(problem, is_of_yaml(error.kind()))
    })?;
    let root = parsed.value.map(|value| node(&value, &mut place(), 0));
    root.transpose().map_err(|problem| refused(problem, false))
}

/// Converts ascending offsets to lines and columns. Counting continues from the last offset, so
/// that a long line is not counted again for each value.
struct Place<'t> {
    text: &'t str,
    offset: usize,
    line: u64,
    column: u64,
}

impl Place<'_> {
    fn at<T>(&mut self, offset: usize, value: T) -> Placed<T> {
        let between = self.text.get(self.offset..offset).unwrap_or_default();
        for character in between.chars() {
            match character {
                '\n' => (self.line, self.column) = (self.line + 1, 1),
                _ => self.column += 1,
            }
        }
        self.offset = self.offset.max(offset);
        let (line, column) = (self.line, self.column);
        Placed { value, position: SourcePosition { file: 0, line, column } }
    }
}

/// Converts a value and its contents. Positions are requested in the order of the text.
fn node(value: &ast::Value<'_>, place: &mut Place<'_>, depth: usize) -> Result<Node, Problem> {
    let at = place.at(value.range().start, ());
    let is_container = matches!(value, ast::Value::Array(_) | ast::Value::Object(_));
    if is_container && depth == DEPTH_MAX {
        return Err(at.with(too_deep("")));
    }
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => number(literal.value),
        ast::Value::StringLit(literal) => Value::Text(literal.value.to_string()),
        ast::Value::Array(array) => {
            let elements = array.elements.iter().map(|element| node(element, place, depth + 1));
            Value::List(elements.collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => Value::Map(members(&object.properties, place, depth)?),
    };
    Ok(at.with(value))
}

/// Converts the members of an object. A duplicate name is an error.
fn members(
    properties: &[ast::ObjectProp<'_>],
    place: &mut Place<'_>,
    depth: usize,
) -> Result<Vec<(Key, Node)>, Problem> {
    let mut names = BTreeSet::new();
    let mut members = Vec::new();
    for property in properties {
        let name = property.name.as_str();
        let key = place.at(property.name.range().start, name.to_owned());
        if !names.insert(name) {
            let message = format!("{name} is defined twice in one mapping");
            return Err(key.with(Message::new(message).help("keep one of them")));
        }
        members.push((key, node(&property.value, place, depth + 1)?));
    }
    Ok(members)
}

/// Returns a 64-bit integer, or the digits of any other number.
fn number(written: &str) -> Value {
    let whole = written.parse::<u64>().map(i128::from);
    match whole.or_else(|_| written.parse::<i64>().map(i128::from)) {
        Ok(number) => Value::Integer(number),
        Err(_) => Value::Fraction(Fraction::new(written.to_owned())),
    }
}

/// True if YAML accepts the syntax: text without quotes or in single quotes, anchors, and other
/// spellings of numbers.
fn is_of_yaml(kind: &ParseErrorKind) -> bool {
    matches!(
        kind,
        ParseErrorKind::ExpectedStringObjectProperty
            | ParseErrorKind::HexadecimalNumbersNotAllowed
            | ParseErrorKind::SingleQuotedStringsNotAllowed
            | ParseErrorKind::UnaryPlusNumbersNotAllowed
            | ParseErrorKind::UnexpectedToken
            | ParseErrorKind::UnexpectedWord
    )
}

fn syntax_message(error: &ParseError) -> Message {
    let kind = error.kind();
    if matches!(kind, ParseErrorKind::NestingDepthExceeded) {
        return too_deep("");
    }
    let problem = kind.to_string();
    let mut characters = problem.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    let problem: String = first.into_iter().chain(characters).collect();
    let message = Message::new(format!("not valid JSON: {problem}"));
    if matches!(kind, ParseErrorKind::MultipleRootJsonValues) {
        let help = "separate several JSON documents with a line ---, or write a list";
        return message.help(help);
    }
    message
}

/// True if the text begins with `{` or `[`, after white space and comments. False for `{{`, which
/// begins a template.
pub(crate) fn begins_like_json(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let comment_end = match rest.get(..2) {
            Some("//") => rest.find('\n'),
            // The search starts after the first two characters, because "/*/" does not end the
            // comment.
            Some("/*") => rest.get(2..).and_then(|comment| comment.find("*/")).map(|end| end + 4),
            _ => return rest.starts_with(['{', '[']) && !rest.starts_with("{{"),
        };
        let Some(after) = comment_end.and_then(|end| rest.get(end..)) else { return false };
        rest = after.trim_start();
    }
}
