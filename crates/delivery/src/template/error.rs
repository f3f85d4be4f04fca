//! [`TemplateError`]: errors of compiling and rendering templates.

use thiserror::Error;

/// Maximum length of a quotation of a template, in characters.
const QUOTED_MAX_CHARACTERS: usize = 120;

/// An error of compiling or rendering a template. It contains text of the template, but no value of
/// the event and no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {}", self.problem())]
pub struct TemplateError {
    /// The field with the template, such as `spec.destination.body.attachments[0].text`.
    pub place: String,
    /// The failing part of the template, at most 120 characters.
    pub expression: String,
    /// The problem and its solution, in one sentence.
    pub reason: String,
}

impl TemplateError {
    /// Returns an error about a part of a template.
    pub(super) fn new(place: &str, expression: &str, reason: impl Into<String>) -> Self {
        Self { place: place.to_owned(), expression: quoted(expression), reason: reason.into() }
    }

    /// Returns expression and reason, for messages that state the place in another way.
    #[must_use]
    pub fn problem(&self) -> String {
        format!("{}{}", shown(&self.expression), self.reason)
    }

    /// Removes the text of the template, which may contain a credential.
    #[must_use]
    pub fn without_expression(self) -> Self {
        Self { expression: String::new(), ..self }
    }
}

/// Formats the expression before a reason. It is empty if the error concerns the whole field.
fn shown(expression: &str) -> String {
    if expression.is_empty() { String::new() } else { format!("`{expression}`: ") }
}

/// The reason of an error whose place is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Fault {
    /// Returns a fault with this reason.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Shortens a text of a template for a message.
pub(super) fn quoted(text: &str) -> String {
    if text.chars().nth(QUOTED_MAX_CHARACTERS).is_none() {
        return text.to_owned();
    }
    text.chars().take(QUOTED_MAX_CHARACTERS - 1).chain(['…']).collect()
}
