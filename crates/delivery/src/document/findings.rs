//! Findings: what is wrong with a file, and where.
//!
//! Separate from the reading, so that people, tools and tests see the same: a [`Finding`] is a
//! value with its position, and [`Findings`] collects them while many documents are read. Every
//! finding is one line of text: control characters from the file are replaced.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

words! {
    /// The weight of a finding.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// The document cannot be used as it is.
        Error = "error",
        /// It can be used, but probably does not do what was intended.
        Warning = "warning",
        /// Needs no action. Reports a default, or ignored objects.
        Note = "note",
    }
}

/// One problem at one position of one file. Its JSON is that of `lastmile check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The weight of a finding.
    pub severity: Severity,
    /// The name of the file, as it was given.
    pub file: String,
    /// The line; 1 is the first.
    pub line: u64,
    /// The column in characters; 1 is the first.
    pub column: u64,
    /// The field as a path, such as `spec.retry.maxAttempts`; empty for the document as a whole.
    pub field: String,
    /// The problem.
    pub message: String,
    /// The right spelling or value, where that is known.
    pub help: Option<String>,
    /// The reference that nothing maps to an address, where that is what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<MissingReference>,
}

/// A reference that needs an entry in a `Destinations` document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingReference {
    /// The key of the entry.
    pub key: String,
    /// What its address is for.
    #[serde(rename = "for")]
    pub used_for: ReferenceUse,
    /// For a token: what its entry has to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Needed>,
}

words! {
    /// What an entry has to have for a token, as it is called there.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub enum Needed {
        /// Where it is fetched.
        TokenUrl = "tokenUrl",
        /// Who is calling.
        ClientId = "clientId",
        /// The name of the secret that proves it.
        ClientSecret = "clientSecret",
        /// What it is for.
        Scope = "scope",
    }
}

impl Needed {
    /// Its spelling.
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
    /// What the address of a reference is for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub enum ReferenceUse {
        /// Events or replies are sent there.
        Events = "events",
        /// Dead letters go there; without an address, to the default container.
        DeadLetters = "deadLetters",
        /// Events are sent there with a token; without what its entry needs, with none.
        Token = "token",
    }
}

impl Finding {
    /// `file:line:column`.
    pub fn location(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// `field: message`.
    pub fn problem(&self) -> String {
        if self.field.is_empty() {
            return self.message.clone();
        }
        format!("{}: {}", self.field, self.message)
    }
}

impl fmt::Display for Finding {
    /// `file:line:column: error: field: message; help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.location(), self.severity.as_str(), self.problem())?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// A position in one of the files that are read together; ordered as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// Which file.
    pub file: usize,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

impl SourcePosition {
    /// The position of what no file states.
    pub const NOWHERE: Self = Self { file: usize::MAX, line: 0, column: 0 };
}

/// The text of a finding: what is wrong, and perhaps what would be right.
pub struct Message {
    text: String,
    help: Option<String>,
    /// In a box, so that a message is small beside a value.
    reference: Option<Box<MissingReference>>,
}

impl Message {
    /// The problem.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), help: None, reference: None }
    }

    /// Replaces the text, and keeps the help.
    pub fn with_text(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// Adds what would be right.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the reference that needs an address.
    pub fn about(mut self, key: &str, used_for: ReferenceUse) -> Self {
        let reference = MissingReference { key: key.to_owned(), used_for, needs: Vec::new() };
        self.reference = Some(Box::new(reference));
        self
    }

    /// Says what the entry of that reference has to have.
    pub fn needs(mut self, needs: Vec<Needed>) -> Self {
        if let Some(reference) = &mut self.reference {
            reference.needs = needs;
        }
        self
    }

    /// A finding of it in a file as a whole.
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

/// The findings of all files so far. They are added through a shared reference, since many cursors
/// report at once.
pub struct Findings {
    files: Vec<String>,
    gathered: RefCell<Vec<(SourcePosition, Finding)>>,
    /// The indexes of the errors among them.
    errors: RefCell<Vec<usize>>,
    /// The fields at the positions of translated values, as their own documents name them.
    translated: RefCell<BTreeMap<SourcePosition, String>>,
}

impl Findings {
    /// None yet, about files of these names.
    pub fn new<'a>(files: impl Iterator<Item = &'a str>) -> Self {
        let files = files.map(str::to_owned).collect();
        let (gathered, errors) = (RefCell::default(), RefCell::default());
        Self { files, gathered, errors, translated: RefCell::default() }
    }

    /// Adds one.
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

    /// Notes that the value at a position is translated from this field.
    pub fn note_translated(&self, position: SourcePosition, field: &str) {
        self.translated.borrow_mut().insert(position, field.to_owned());
    }

    /// The field at the position of a translated value, as its own document names it.
    pub fn translated_field(&self, position: SourcePosition) -> Option<String> {
        self.translated.borrow().get(&position).cloned()
    }

    /// How many errors there are so far, to compare before and after a part is read.
    pub fn errors(&self) -> usize {
        self.errors.borrow().len()
    }

    /// The first error after so many errors.
    pub fn error_after(&self, errors: usize) -> Option<Box<Finding>> {
        let at = *self.errors.borrow().get(errors)?;
        Some(Box::new(self.gathered.borrow().get(at)?.1.clone()))
    }

    /// The name of a file.
    pub fn file(&self, file: usize) -> &str {
        self.files.get(file).map_or("", String::as_str)
    }

    /// A position as text.
    pub fn location(&self, position: SourcePosition) -> String {
        format!("{}:{}:{}", self.file(position.file), position.line, position.column)
    }

    /// All of them, in the order of files and lines, each once: a part of a template may be read several times.
    pub fn into_sorted(self) -> Vec<Finding> {
        let mut gathered = self.gathered.into_inner();
        // Stable: findings at one position keep the order in which they were found.
        gathered.sort_by_key(|(position, _)| *position);
        let mut findings: Vec<(SourcePosition, Finding)> = Vec::with_capacity(gathered.len());
        for (position, finding) in gathered {
            let here = findings.iter().rev().take_while(|(of, _)| *of == position);
            if !here.map(|(_, of)| of).any(|of| *of == finding) {
                findings.push((position, finding));
            }
        }
        findings.into_iter().map(|(_, finding)| finding).collect()
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The longest text of a file that a message quotes, in characters.
const QUOTED_MAX: usize = 80;

/// A text of a file within a message: in quotes, truncated where it is long.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}

/// A name of a file within a message: truncated if it is long.
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
