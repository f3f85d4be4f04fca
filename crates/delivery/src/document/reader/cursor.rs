//! [`Cursor`]: reads a value of a document, and reports findings with the path of the value.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::super::findings::{Finding, Findings, Message, Severity, SourcePosition, quoted};
use super::super::hint::hint;
use super::super::node::{Key, Node, Value};
use crate::document::number::Number;
use crate::time::{brief, duration};

/// Names of the expected types, for messages.
const TEXT: &str = "text";
const FLAG: &str = "true or false";
const WHOLE_NUMBER: &str = "a whole number";
const NUMBER: &str = "a number";
const LIST: &str = "a list";
const DURATION: &str = "a duration such as PT30S";

/// A value of a document with its path. Its methods read the value, and report findings about it.
#[derive(Clone)]
pub struct Cursor<'a> {
    pub(super) node: &'a Node,
    pub(super) position: SourcePosition,
    pub(super) field: String,
    pub(super) unknown: Severity,
    pub(super) reported: Reported,
    pub(super) is_translated: bool,
    pub(super) is_in_template: bool,
    pub(super) findings: &'a Findings,
}

/// Selects the findings that a cursor reports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reported {
    /// The cursor reports all findings.
    All,
    /// The cursor reports errors, but neither warnings nor notes.
    Errors,
    /// The cursor reports nothing: its values were read before, or are not in a file.
    Nothing,
}

/// An entry of a mapping whose keys are chosen by the user, such as the names of parameters.
pub struct Entry<'a> {
    /// The key of the entry as text.
    pub name: &'a str,
    /// A cursor at the key. Its findings have the position of the key.
    pub key: Cursor<'a>,
    /// A cursor at the value of the entry.
    pub value: Cursor<'a>,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the outermost value of a document.
    pub fn root(document: &'a Node, findings: &'a Findings) -> Self {
        Self {
            node: document,
            position: document.position,
            field: String::new(),
            unknown: Severity::Error,
            reported: Reported::All,
            is_translated: false,
            is_in_template: false,
            findings,
        }
    }

    /// Returns a cursor that reports unknown fields as warnings. It is for formats of other
    /// projects, because a newer version of such a format may define the field.
    pub fn lenient(self) -> Self {
        Self { unknown: Severity::Warning, ..self }
    }

    /// Returns a cursor that reports no findings, because the same values were read before.
    pub fn silent(self) -> Self {
        Self { reported: Reported::Nothing, ..self }
    }

    /// Returns a cursor that reports only errors, because the values were checked when they were
    /// translated.
    pub fn errors_only(self) -> Self {
        Self { reported: Reported::Errors, ..self }
    }

    /// Returns a cursor for a translated document. Its findings name the fields of the original
    /// document.
    pub fn translated(self) -> Self {
        Self { is_translated: true, ..self }
    }

    /// Converts `value`, the translation of the value at this cursor, to a node with the position
    /// of the original. Findings about the translation name the original field.
    pub fn translation(&self, value: &serde_json::Value) -> Node {
        self.findings.note_translated(self.position, &self.field);
        Node::of_json_at(value, self.position)
    }

    /// Copies this value with its positions, as part of a translation. Findings about the copy name
    /// the original fields.
    pub fn copied(&self) -> Node {
        self.note_fields();
        self.node.clone()
    }

    /// Records the paths of this value and of all nested values, so that findings about a
    /// translation can name the original fields.
    fn note_fields(&self) {
        self.findings.note_translated(self.position, &self.field);
        let entries = self.peek_entries().into_iter().map(|entry| entry.value);
        entries.chain(self.peek_list()).for_each(|inner| inner.note_fields());
    }

    /// Returns the node with the value and its position.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Returns `base` with the fields of this mapping, which replace fields with the same name.
    /// Ignores fields that are `null` in this mapping. If a field is a mapping in both, its fields
    /// are merged too. Deeper mappings are replaced.
    pub fn laid_over(&self, base: Node) -> Node {
        base.with_fields_of(self.node, 2)
    }

    /// Returns a cursor that reports no findings, for a value that does not come from a file.
    pub fn beside<'b>(&self, node: &'b Node) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor { node, field: String::new(), reported: Reported::Nothing, ..self.clone() }
    }

    /// Returns a cursor for a value in an ARM template, whose strings may be expressions.
    pub fn in_template(self) -> Self {
        Self { is_in_template: true, ..self }
    }

    pub(super) fn report(&self, severity: Severity, message: Message) {
        let is_reported = match self.reported {
            Reported::All => true,
            Reported::Errors => severity == Severity::Error,
            Reported::Nothing => false,
        };
        if is_reported {
            self.findings.add(severity, self.position, &self.path(), message);
        }
    }

    /// Reports an error about this value.
    pub fn error(&self, message: impl Into<Message>) {
        self.report(Severity::Error, message.into());
    }

    /// Reports an error about this value, and returns `None` for convenience.
    pub fn refuse<T>(&self, message: impl Into<Message>) -> Option<T> {
        self.error(message);
        None
    }

    /// Reports a warning about this value.
    pub fn warn(&self, message: impl Into<Message>) {
        self.report(Severity::Warning, message.into());
    }

    /// Reports a note about this value.
    pub fn note(&self, message: impl Into<Message>) {
        self.report(Severity::Note, message.into());
    }

    /// Returns the path of the field. For a translated value, it is the path in the original
    /// document.
    pub fn path(&self) -> String {
        let original = self.is_translated.then(|| self.findings.translated_field(self.position));
        original.flatten().unwrap_or_else(|| self.field.clone())
    }

    /// Returns the name of the field, which is the last segment of its path.
    pub fn name(&self) -> &str {
        self.field.rsplit('.').next().unwrap_or_default()
    }

    /// Returns the name of the file, without folders and extension.
    pub fn file_stem(&self) -> &'a str {
        let name =
            self.findings.file(self.position.file).rsplit(['/', '\\']).next().unwrap_or_default();
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// Returns the position as `file:line:column`.
    pub fn location(&self) -> String {
        self.findings.location(self.position)
    }

    /// Returns the result of `read`, or `None` if `read` reports an error.
    pub fn without_error<T>(&self, read: impl FnOnce() -> Option<T>) -> Option<T> {
        self.result_or_error(read).ok()
    }

    /// Returns the result of `read` if it returns one without reporting an error.
    ///
    /// # Errors
    /// The first error that `read` reported; `None` if `read` returned `None` without an error.
    pub fn result_or_error<T>(
        &self,
        read: impl FnOnce() -> Option<T>,
    ) -> Result<T, Option<Box<Finding>>> {
        let before = self.findings.errors();
        let value = read();
        match self.findings.error_after(before) {
            Some(error) => Err(Some(error)),
            None => value.ok_or(None),
        }
    }

    fn expected<T>(&self, noun: &str) -> Option<T> {
        if self.is_expression() {
            return self.refuse(format!("expected {noun}, found an expression"));
        }
        let kind = self.node.value.kind();
        let message = Message::new(format!("expected {noun}, found {kind}"));
        self.refuse(match spelling(noun, &self.node.value) {
            Some(help) => message.help(help),
            None => message,
        })
    }

    /// Returns true if the value is a mapping; reports nothing.
    pub fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// Returns true if the value is a list; reports nothing.
    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Returns true if the value is `null`, or an empty text, list or mapping; reports nothing.
    pub fn is_empty(&self) -> bool {
        match &self.node.value {
            Value::Null => true,
            Value::Text(text) => text.is_empty(),
            Value::List(elements) => elements.is_empty(),
            Value::Map(entries) => entries.is_empty(),
            Value::Bool(_) | Value::Integer(_) | Value::Fraction(_) => false,
        }
    }

    /// Returns true if the value is `null`; reports nothing.
    pub fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// Returns true if the value is the boolean `true`; reports nothing.
    pub fn is_true(&self) -> bool {
        matches!(self.node.value, Value::Bool(true))
    }

    /// Returns true if the value is an expression of an ARM template; reports nothing.
    pub fn is_expression(&self) -> bool {
        matches!(&self.node.value, Value::Text(_)) && self.peek_text().is_none()
    }

    /// Returns true if the value is in a file, and not a default.
    pub fn is_stated(&self) -> bool {
        self.position != SourcePosition::NOWHERE
    }

    /// Returns the position of the value.
    pub fn position(&self) -> SourcePosition {
        self.position
    }

    /// Returns the value at a path of fields such as `spec.sink`. Reports nothing, and the fields
    /// still count as unknown until they are read.
    pub fn peek(&self, path: &str) -> Option<Self> {
        path.split('.').try_fold(self.clone(), |parent, name| {
            let Value::Map(entries) = &parent.node.value else { return None };
            let (key, node) = entries.iter().find(|(key, _)| key.value == name)?;
            Some(parent.child(key, node))
        })
    }

    /// Returns the text of a string that is not an expression; reports nothing.
    pub fn peek_text(&self) -> Option<&'a str> {
        let Value::Text(text) = &self.node.value else { return None };
        if self.is_in_template { super::template_text::literal(text) } else { Some(text) }
    }

    /// Returns the text at a path of fields, or an empty text if there is none; reports nothing.
    pub fn text_at(&self, path: &str) -> &'a str {
        self.peek(path).and_then(|value| value.peek_text()).unwrap_or_default()
    }

    /// Reads a string. Reports any other value, or an expression, and returns `None`.
    pub fn text(&self) -> Option<&'a str> {
        self.peek_text().or_else(|| self.expected(TEXT))
    }

    /// Reads a string and parses it. Errors do not quote the string, because a user may have
    /// written a secret there by mistake.
    pub fn parsed<T: FromStr>(&self, noun: &str, rule: &str) -> Option<T> {
        let parsed = self.text()?.parse().ok();
        parsed.or_else(|| self.refuse(Message::new(format!("not {noun}")).help(rule)))
    }

    /// Reads a string, a whole number or a boolean, and returns it as text.
    pub fn scalar(&self) -> Option<String> {
        match &self.node.value {
            Value::Bool(value) => Some(value.to_string()),
            Value::Integer(value) => Some(value.to_string()),
            Value::Null | Value::Fraction(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                self.text().map(str::to_owned)
            }
        }
    }

    /// Reads a boolean. Reports any other value and returns `None`.
    pub fn boolean(&self) -> Option<bool> {
        let Value::Bool(value) = self.node.value else { return self.expected(FLAG) };
        Some(value)
    }

    /// Reads a whole number. Reports a number outside the range and returns `None`.
    pub fn integer(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let Value::Integer(value) = self.node.value else {
            return self.expected(WHOLE_NUMBER);
        };
        let inside = u32::try_from(value).ok().filter(|value| range.contains(value));
        let (least, most) = (range.start(), range.end());
        inside.or_else(|| self.refuse(format!("must be {least} to {most}, but is {value}")))
    }

    /// Reads a number of any size without rounding it.
    pub fn number(&self) -> Option<Number> {
        let text = match &self.node.value {
            Value::Integer(value) => value.to_string(),
            Value::Fraction(number) => number.json(),
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                String::new()
            }
        };
        Number::parse(&text).or_else(|| self.expected(NUMBER))
    }

    /// Reads a duration and returns it in milliseconds. Reports a duration outside the range.
    pub fn duration_ms(&self, range_ms: RangeInclusive<u64>) -> Option<u64> {
        let Some(text) = self.peek_text() else {
            return self.expected(DURATION);
        };
        let ms = match duration::parse_ms(text) {
            Ok(ms) => ms,
            Err(error) => {
                let problem = format!("at character {}, {}", error.at, error.problem);
                let message = Message::new(format!(
                    "{} is not an ISO 8601 duration: {problem}",
                    quoted(text)
                ));
                let help = match brief::parse_ms(text) {
                    Ok(ms) => format!("write {}", duration::format_ms(ms)),
                    Err(_) => "expected a duration such as PT30S, PT1M30S or P1DT12H".to_owned(),
                };
                return self.refuse(message.help(help));
            }
        };
        if range_ms.contains(&ms) {
            return Some(ms);
        }
        let [least, most] = [range_ms.start(), range_ms.end()].map(|ms| duration::format_ms(*ms));
        self.refuse(format!("must be {least} to {most}, but is {}", quoted(text)))
    }

    /// Reads a string that must be one of these names, and returns the value of that name.
    pub fn choice<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).or_else(|| self.unknown_word(text, words))
    }

    /// Reports that the string is none of the allowed names, with a hint.
    pub fn unknown_word<T>(&self, word: &str, words: &[(&'static str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = Message::new(format!("{} is not a valid value", quoted(word)));
        self.refuse(message.help(hint(word, &known)))
    }

    /// Reads a string that must be the name of one of these values, and returns that value. `word`
    /// returns the name of a value.
    pub fn word<T: Copy>(&self, all: &[T], word: fn(T) -> &'static str) -> Option<T> {
        let words: Vec<_> = all.iter().map(|value| (word(*value), *value)).collect();
        self.choice(&words)
    }

    /// Returns the elements of a list. Reports any other value and returns `None`.
    pub fn list(&self) -> Option<Vec<Self>> {
        let Value::List(elements) = &self.node.value else {
            return self.expected(LIST);
        };
        let element = |(index, node): (usize, &'a Node)| Self {
            node,
            position: node.position,
            field: self.path_with(format_args!("[{index}]")),
            ..*self
        };
        Some(elements.iter().enumerate().map(element).collect())
    }

    /// Returns the elements of a list, or no elements for any other value; reports nothing.
    pub fn peek_list(&self) -> Vec<Self> {
        self.is_list().then(|| self.list()).flatten().unwrap_or_default()
    }

    /// Returns the entries of a mapping, or no entries for any other value; reports nothing.
    pub fn peek_entries(&self) -> Vec<Entry<'a>> {
        self.is_mapping().then(|| self.entries()).flatten().unwrap_or_default()
    }

    /// Reads each element of a list with `read`. Returns `None` if one of them is invalid.
    pub fn each<T>(&self, read: impl Fn(&Self) -> Option<T>) -> Option<Vec<T>> {
        read_each(&self.list()?, read)
    }

    /// Returns the entries of a mapping whose keys are chosen by the user, such as the names of
    /// parameters. Reports any other value and returns `None`.
    pub fn entries(&self) -> Option<Vec<Entry<'a>>> {
        let entry = |(key, node): &'a (Key, Node)| {
            let value = self.child(key, node);
            Entry { name: &key.value, key: Self { position: key.position, ..value.clone() }, value }
        };
        self.map().map(|entries| entries.iter().map(entry).collect())
    }

    /// Returns the value as JSON, without positions.
    pub fn json(&self) -> serde_json::Value {
        json(&self.node.value)
    }

    pub(super) fn map(&self) -> Option<&'a [(Key, Node)]> {
        let Value::Map(entries) = &self.node.value else { return self.expected("a mapping") };
        Some(entries)
    }

    pub(super) fn child(&self, key: &Key, node: &'a Node) -> Self {
        Self { node, position: node.position, field: self.path_to(&key.value), ..*self }
    }

    pub(super) fn path_to(&self, name: &str) -> String {
        let dot = if self.field.is_empty() { "" } else { "." };
        self.path_with(format_args!("{dot}{name}"))
    }

    /// Returns the path with `end` appended. A cursor that reports nothing has an empty path,
    /// because no finding needs it and building it takes time.
    fn path_with(&self, end: fmt::Arguments<'_>) -> String {
        if self.reported == Reported::Nothing {
            String::new()
        } else {
            format!("{}{end}", self.field)
        }
    }
}

/// Returns a correction for a value that has the expected content but the wrong type, such as a
/// number in quotes.
fn spelling(expected: &str, value: &Value) -> Option<String> {
    match (expected, value) {
        (TEXT, Value::Bool(_) | Value::Integer(_) | Value::Fraction(_)) => {
            Some("write it in quotes".to_owned())
        }
        (WHOLE_NUMBER, Value::Text(text)) => {
            let number: i128 = text.trim().parse().ok()?;
            Some(format!("write {number}, without quotes"))
        }
        (NUMBER, Value::Text(text)) => {
            let number = Number::parse(text.trim())?;
            Some(format!("write {number}, without quotes"))
        }
        (FLAG, Value::Text(text)) => {
            let flag = match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => "true",
                "false" | "no" | "off" => "false",
                _ => return None,
            };
            Some(format!("write {flag}, without quotes"))
        }
        (LIST, Value::Text(_) | Value::Integer(_)) => {
            Some("write it in brackets, as in [a, b]".to_owned())
        }
        (DURATION, Value::Integer(seconds)) if *seconds > 0 => {
            Some(format!("PT{seconds}S is {seconds} s"))
        }
        (_, _) => None,
    }
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => {
            value.to_string().parse().map_or(serde_json::Value::Null, serde_json::Value::Number)
        }
        Value::Fraction(number) => {
            number.json().parse().map_or(serde_json::Value::Null, serde_json::Value::Number)
        }
        Value::Text(text) => text.as_str().into(),
        Value::List(elements) => elements.iter().map(|element| json(&element.value)).collect(),
        Value::Map(entries) => {
            entries.iter().map(|(key, node)| (key.value.clone(), json(&node.value))).collect()
        }
    }
}

/// Reads every element, even after an invalid one, so that all errors are reported.
pub fn read_each<'a, T>(
    elements: &[Cursor<'a>],
    read: impl Fn(&Cursor<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let values: Vec<Option<T>> = elements.iter().map(read).collect();
    values.into_iter().collect()
}
