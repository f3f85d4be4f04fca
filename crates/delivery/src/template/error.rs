//! Errors of templates and of their rendering.

use thiserror::Error;

/// The most characters of a template that an error repeats.
const QUOTED_MAX_CHARACTERS: usize = 120;

/// A template cannot be compiled or rendered. Contains text of the template, but no value of an event and no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {}", self.problem())]
pub struct TemplateError {
    /// The field that holds the template, such as `spec.destination.body.attachments[0].text`.
    pub place: String,
    /// The part of the template that fails, at most 120 characters.
    pub expression: String,
    /// The problem and its solution, in one sentence.
    pub reason: String,
}

impl TemplateError {
    /// An error of a part of a template.
    pub(super) fn new(place: &str, expression: &str, reason: impl Into<String>) -> Self {
        Self { place: place.to_owned(), expression: quoted(expression), reason: reason.into() }
    }

    /// The expression and the reason, for a message that names the place in another way.
    #[must_use]
    pub fn problem(&self) -> String {
        format!("{}{}", shown(&self.expression), self.reason)
    }

    /// Removes the text of the template. It may hold a credential.
    #[must_use]
    pub fn without_expression(self) -> Self {
        Self { expression: String::new(), ..self }
    }
}

/// The expression before a reason; nothing if the error is about the whole field.
fn shown(expression: &str) -> String {
    if expression.is_empty() { String::new() } else { format!("`{expression}`: ") }
}

/// The reason of an error whose place is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Fault {
    /// A fault with this reason.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The first characters of a text of a template.
pub(super) fn quoted(text: &str) -> String {
    if text.chars().nth(QUOTED_MAX_CHARACTERS).is_none() {
        return text.to_owned();
    }
    text.chars().take(QUOTED_MAX_CHARACTERS - 1).chain(['…']).collect()
}
