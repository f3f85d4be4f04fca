//! [`Finding`]: a problem in a file, with its position.
//!
//! This module is separate from reading, so that people, tools and tests get the same findings.
//! [`Findings`] collects them while many documents are read. Every finding is one line of text:
//! control characters from the file are replaced.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

words! {
    /// The severity of a finding. The variants are sorted from the most to the least serious.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// The document is unusable until the problem is corrected.
        Error = "error",
        /// The document is usable, but probably does not have the intended effect.
        Warning = "warning",
        /// No action is needed. The finding reports a default, or objects that are ignored.
        Note = "note",
    }
}

/// One problem at one position of one file. `lastmile check` prints it as JSON in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity. Only an error makes the document unusable.
    pub severity: Severity,
    /// The name of the file, as the caller stated it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u64,
    /// The column in characters, counted from 1.
    pub column: u64,
    /// The path of the field, such as `spec.retry.maxAttempts`; empty for the document as a whole.
    pub field: String,
    /// The description of the problem, without its position.
    pub message: String,
    /// The correct spelling or value, if it is known.
    pub help: Option<String>,
    /// The unresolved reference; `None` if the finding is not about a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<MissingReference>,
}

/// A reference without an entry in a `Destinations` document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingReference {
    /// The key that the `Destinations` document lacks.
    pub key: String,
    /// The purpose for which the address is needed.
    #[serde(rename = "for")]
    pub used_for: ReferenceUse,
    /// The additional fields that the entry needs for a token. Empty if no token is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Needed>,
}

words! {
    /// A field that the entry of a `Destinations` document needs for a token.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub enum Needed {
        /// The address of the token server that issues the token.
        TokenUrl = "tokenUrl",
        /// The client id with which the token is requested.
        ClientId = "clientId",
        /// The name of the secret with which the client authenticates.
        ClientSecret = "clientSecret",
        /// The scope that is requested for the token.
        Scope = "scope",
    }
}

impl Needed {
    /// Returns an example value for the field.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::TokenUrl => "tokenUrl: \"https://…\"",
            Self::ClientId => "clientId: \"…\"",
            Self::ClientSecret => "clientSecret: \"env:…\"",
            Self::Scope => "scope: \"…\"",
        }
    }
}

words! {
    /// The purpose for which the address of a reference is needed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub enum ReferenceUse {
        /// Events or replies are sent to the address.
        Events = "events",
        /// Dead letters are sent to the address. Without an entry, they go to the default
        /// container.
        DeadLetters = "deadLetters",
        /// Events are sent to the address with a token. If the entry lacks the fields for a token,
        /// the events are sent without a token.
        Token = "token",
    }
}

impl Finding {
    /// Returns the position as `file:line:column`.
    pub fn location(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// Returns the finding without its position: `field: message`.
    pub fn problem(&self) -> String {
        if self.field.is_empty() {
            return self.message.clone();
        }
        format!("{}: {}", self.field, self.message)
    }
}

impl fmt::Display for Finding {
    /// Prints the finding as `file:line:column: error: field: message; help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.location(), self.severity.as_str(), self.problem())?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// A position in one of several files. Positions sort by file, in reading order, then by line and
/// column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// The index of the file, in the order in which files are read.
    pub file: usize,
    /// The line, counted from 1.
    pub line: u64,
    /// The column in characters, counted from 1.
    pub column: u64,
}

impl SourcePosition {
    /// The position of values that are not in any file, such as defaults.
    pub const NOWHERE: Self = Self { file: usize::MAX, line: 0, column: 0 };
}

/// The text of a finding: the problem, and optionally the correction.
pub struct Message {
    text: String,
    help: Option<String>,
    /// Boxed to keep `Message` small, because many results contain one.
    reference: Option<Box<MissingReference>>,
}

impl Message {
    /// Returns a message that describes a problem, without a correction.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), help: None, reference: None }
    }

    /// Replaces the description and keeps the correction.
    pub fn with_text(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// Adds the correct spelling or value.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the key of a reference that has no address.
    pub fn about(mut self, key: &str, used_for: ReferenceUse) -> Self {
        let reference = MissingReference { key: key.to_owned(), used_for, needs: Vec::new() };
        self.reference = Some(Box::new(reference));
        self
    }

    /// Adds the fields that the entry of the reference must have.
    pub fn needs(mut self, needs: Vec<Needed>) -> Self {
        if let Some(reference) = &mut self.reference {
            reference.needs = needs;
        }
        self
    }

    /// Returns a finding about `field`. Its position is the beginning of the file, because the
    /// position of the field is not known.
    pub fn at_beginning(self, severity: Severity, file: String, field: &str) -> Finding {
        let Self { text: message, help, reference } = self;
        let reference = reference.map(|reference| *reference);
        let field = field.to_owned();
        Finding { severity, file, line: 1, column: 1, field, message, help, reference }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Collects the findings of all files. It has interior mutability, because many cursors report
/// findings at the same time.
pub struct Findings {
    files: Vec<String>,
    gathered: RefCell<Vec<(SourcePosition, Finding)>>,
    /// The indexes in `gathered` of findings that are errors.
    errors: RefCell<Vec<usize>>,
    /// The paths of fields in the original document, keyed by the positions of the translated
    /// values.
    translated: RefCell<BTreeMap<SourcePosition, String>>,
}

impl Findings {
    /// Returns an empty collection for files with these names.
    pub fn new<'a>(files: impl Iterator<Item = &'a str>) -> Self {
        let files = files.map(str::to_owned).collect();
        let (gathered, errors) = (RefCell::default(), RefCell::default());
        Self { files, gathered, errors, translated: RefCell::default() }
    }

    /// Adds a finding about the value at a position.
    pub fn add(&self, severity: Severity, position: SourcePosition, field: &str, message: Message) {
        let finding = Finding {
            severity,
            file: self.file(position.file).to_owned(),
            line: position.line,
            column: position.column,
            field: one_line(field),
            message: one_line(&message.text),
            help: message.help.as_deref().map(one_line),
            reference: message.reference.map(|reference| *reference),
        };
        let mut gathered = self.gathered.borrow_mut();
        if severity == Severity::Error {
            self.errors.borrow_mut().push(gathered.len());
        }
        gathered.push((position, finding));
    }

    /// Records that the value at a position was translated from the field with this path.
    pub fn note_translated(&self, position: SourcePosition, field: &str) {
        self.translated.borrow_mut().insert(position, field.to_owned());
    }

    /// Returns the path of the field from which the value at a position was translated.
    pub fn translated_field(&self, position: SourcePosition) -> Option<String> {
        self.translated.borrow().get(&position).cloned()
    }

    /// Returns the number of errors so far. To detect errors in a part of a document, compare the
    /// numbers before and after reading the part.
    pub fn errors(&self) -> usize {
        self.errors.borrow().len()
    }

    /// Returns the next error after the first `errors` errors, in the order in which they were
    /// added.
    pub fn error_after(&self, errors: usize) -> Option<Box<Finding>> {
        let at = *self.errors.borrow().get(errors)?;
        Some(Box::new(self.gathered.borrow().get(at)?.1.clone()))
    }

    /// Returns the name of the file with this index.
    pub fn file(&self, file: usize) -> &str {
        self.files.get(file).map_or("", String::as_str)
    }

    /// Returns a position as `file:line:column`.
    pub fn location(&self, position: SourcePosition) -> String {
        format!("{}:{}:{}", self.file(position.file), position.line, position.column)
    }

    /// Returns all findings, sorted by position and without duplicates. Duplicates occur because a
    /// part of a template may be read several times.
    pub fn into_sorted(self) -> Vec<Finding> {
        let mut gathered = self.gathered.into_inner();
        // The sort is stable, so findings at one position keep their order.
        gathered.sort_by_key(|(position, _)| *position);
        let mut findings: Vec<(SourcePosition, Finding)> = Vec::with_capacity(gathered.len());
        for (position, finding) in gathered {
            let here = findings.iter().rev().take_while(|(at, _)| *at == position);
            if !here.map(|(_, earlier)| earlier).any(|earlier| *earlier == finding) {
                findings.push((position, finding));
            }
        }
        findings.into_iter().map(|(_, finding)| finding).collect()
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Maximum length of a quotation in a message, in characters.
const QUOTED_MAX: usize = 80;

/// Quotes text from a file for a message, and shortens it to `QUOTED_MAX`.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}

/// Shortens a name from a file to `QUOTED_MAX`, for a message.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX).and_then(|(end, _)| text.get(..end)) {
        Some(beginning) => format!("{beginning}…"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_that_an_editor_can_jump_to() {
        let findings = Findings::new(["a.yaml", "b.yaml"].into_iter());
        let position = |file, line, column| SourcePosition { file, line, column };
        findings.add(Severity::Warning, position(1, 1, 1), "", "odd".into());
        findings.add(
            Severity::Error,
            position(0, 12, 5),
            "spec.x\n",
            Message::new("bad\r\nbad").help("good"),
        );
        findings.add(Severity::Note, position(0, 1, 1), "", "ignored".into());
        assert_eq!(findings.errors(), 1);
        let first = findings.error_after(0).map(|finding| finding.message);
        assert_eq!(first.as_deref(), Some("bad\u{fffd}\u{fffd}bad"));
        assert_eq!(findings.error_after(1), None);
        let shown: Vec<String> = findings.into_sorted().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "a.yaml:1:1: note: ignored",
                "a.yaml:12:5: error: spec.x\u{fffd}: bad\u{fffd}\u{fffd}bad; good",
                "b.yaml:1:1: warning: odd"
            ]
        );
    }

    #[test]
    fn a_finding_that_is_found_twice_is_there_once() {
        let findings = Findings::new(["f"].into_iter());
        for (column, field, message) in
            [(1, "a", "odd"), (1, "b", "odd"), (1, "a", "odd"), (2, "a", "odd"), (1, "a", "even")]
        {
            let position = SourcePosition { file: 0, line: 1, column };
            findings.add(Severity::Warning, position, field, message.into());
        }
        let shown: Vec<String> = findings.into_sorted().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "f:1:1: warning: a: odd",
                "f:1:1: warning: b: odd",
                "f:1:1: warning: a: even",
                "f:1:2: warning: a: odd"
            ]
        );
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(quoted("ö"), "\"ö\"");
        assert_eq!(quoted(&"ö".repeat(81)), format!("\"{}…\"", "ö".repeat(80)));
    }
}
