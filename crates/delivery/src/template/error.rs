//! [`TemplateError`]: an error of compiling or rendering a template.

use thiserror::Error;

/// Maximum length of the part of a template that an error quotes, in characters.
const QUOTED_MAX_CHARACTERS: usize = 120;

/// An error of compiling or rendering a template. It contains text of the template, but no value of
/// the event and no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {}", self.problem())]
pub struct TemplateError {
    /// The path of the field with the template, such as
    /// `spec.destination.body.attachments[0].text`.
    pub place: String,
    /// The failing part of the template, shortened to 120 characters.
    pub expression: String,
    /// The problem and its solution, in one sentence.
    pub reason: String,
}

impl TemplateError {
    /// Returns an error about this part of a template. A long part is shortened.
    pub(super) fn new(place: &str, expression: &str, reason: impl Into<String>) -> Self {
        Self { place: place.to_owned(), expression: quoted(expression), reason: reason.into() }
    }

    /// Returns the failing part and the reason, for messages that state the location in a different
    /// way.
    #[must_use]
    pub fn problem(&self) -> String {
        format!("{}{}", shown(&self.expression), self.reason)
    }

    /// Removes the text of the template from the error, because it may contain a credential.
    #[must_use]
    pub fn without_expression(self) -> Self {
        Self { expression: String::new(), ..self }
    }
}

/// Returns the beginning of an error message: the failing part in backquotes, and a colon. The
/// result is empty if the error is about the whole field.
fn shown(expression: &str) -> String {
    if expression.is_empty() { String::new() } else { format!("`{expression}`: ") }
}

/// The reason for an error whose location is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Fault {
    /// Wraps the reason for an error.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Shortens a part of a template for an error message.
pub(super) fn quoted(text: &str) -> String {
    if text.chars().nth(QUOTED_MAX_CHARACTERS).is_none() {
        return text.to_owned();
    }
    text.chars().take(QUOTED_MAX_CHARACTERS - 1).chain(['…']).collect()
}
