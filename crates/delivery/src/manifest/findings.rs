//! What is wrong with a file, and where.
//!
//! Separate from the reading, so that a person, a tool and a test see one shape: a [`Finding`] is a
//! value with its place, and [`Findings`] gathers them while many documents are read. Every finding
//! is one line of text: whatever control characters the file has put into it are replaced.

use std::cell::RefCell;
use std::fmt;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The document cannot be used as it is.
    Error,
    /// It can, but probably does not do what was meant.
    Warning,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong, or odd, at one place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The name of the file, as it was given.
    pub file: String,
    /// The line; 1 is the first.
    pub line: u64,
    /// The column in characters; 1 is the first.
    pub column: u64,
    /// The field as a path, such as `spec.retry.maxAttempts`; empty where the document as a whole
    /// is meant.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is known.
    pub help: Option<String>,
}

impl fmt::Display for Finding {
    /// `file:line:column: error: field: message; help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: ", self.file, self.line, self.column, self.severity)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// A place in one of the files that are read together; ordered as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Which file.
    pub(super) file: usize,
    /// The line, from 1.
    pub(super) line: u64,
    /// The column, from 1.
    pub(super) column: u64,
}

/// What a finding says: what is wrong, and perhaps what would be right.
pub(super) struct Message {
    text: String,
    help: Option<String>,
}

impl Message {
    /// What is wrong.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), help: None }
    }

    /// And what would be right.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
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

/// The findings of all files so far. Gathering goes through a shared reference: many cursors report
/// side by side.
pub(super) struct Findings {
    files: Vec<String>,
    gathered: RefCell<Vec<(Place, Finding)>>,
}

impl Findings {
    /// None yet, about files of these names.
    pub(super) fn new<'a>(files: impl Iterator<Item = &'a str>) -> Self {
        Self { files: files.map(str::to_owned).collect(), gathered: RefCell::default() }
    }

    /// Adds one.
    pub(super) fn add(&self, severity: Severity, place: Place, field: &str, message: Message) {
        let finding = Finding {
            severity,
            file: self.files[place.file].clone(),
            line: place.line,
            column: place.column,
            field: one_line(field),
            message: one_line(&message.text),
            help: message.help.as_deref().map(one_line),
        };
        self.gathered.borrow_mut().push((place, finding));
    }

    /// How many errors there are so far: who reads a part compares before and after.
    pub(super) fn errors(&self) -> usize {
        self.gathered
            .borrow()
            .iter()
            .filter(|(_, finding)| finding.severity == Severity::Error)
            .count()
    }

    /// The name of a file.
    pub(super) fn file(&self, file: usize) -> &str {
        &self.files[file]
    }

    /// A place as text.
    pub(super) fn location(&self, place: Place) -> String {
        format!("{}:{}:{}", self.files[place.file], place.line, place.column)
    }

    /// All of them, in the order of files and lines.
    pub(super) fn into_sorted(self) -> Vec<Finding> {
        let mut gathered = self.gathered.into_inner();
        gathered.sort_by_key(|(place, _)| *place);
        gathered.into_iter().map(|(_, finding)| finding).collect()
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The longest text of a file that a message repeats, in characters.
const QUOTED_MAX: usize = 80;

/// A text of a file within a message: in quotes, and cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_that_an_editor_can_jump_to() {
        let findings = Findings::new(["a.yaml", "b.yaml"].into_iter());
        let place = |file, line, column| Place { file, line, column };
        findings.add(Severity::Warning, place(1, 1, 1), "", "odd".into());
        findings.add(
            Severity::Error,
            place(0, 12, 5),
            "spec.x\n",
            Message::new("bad\r\nbad").help("good"),
        );
        assert_eq!(findings.errors(), 1);
        let shown: Vec<String> = findings.into_sorted().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "a.yaml:12:5: error: spec.x\u{fffd}: bad\u{fffd}\u{fffd}bad; good",
                "b.yaml:1:1: warning: odd"
            ]
        );
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(quoted("ö"), "\"ö\"");
        assert_eq!(quoted(&"ö".repeat(81)), format!("\"{}…\"", "ö".repeat(80)));
    }
}
