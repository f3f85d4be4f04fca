//! [`TextTemplate`]: a text with expressions, for header values, query values, and bodies that are
//! not JSON.

use std::sync::Arc;

use super::budget::{BUILT, Bounded, Budget, WRITTEN};
use super::error::{Fault, TemplateError};
use super::evaluate::render;
use super::expression::Variable;
use super::limits::{HEADER_MAX_BYTES, QUERY_VALUE_MAX_BYTES, RENDERED_MAX_BYTES};
use super::output::Encoding;
use super::program::Program;
use super::values::Values;

/// A compiled text with expressions. Clones share the compiled form.
#[derive(Debug, Clone)]
pub struct TextTemplate {
    program: Arc<Program>,
    text: Arc<str>,
}

impl TextTemplate {
    /// Compiles a text. `place` is the path of its field, such as
    /// `spec.destination.headers[0].value`.
    ///
    /// # Errors
    /// The error of the first invalid part.
    pub fn compile(text: &str, place: &str) -> Result<Self, TemplateError> {
        Ok(Self { program: Program::compile(text, place)?.into(), text: text.into() })
    }

    /// Renders a body that is not JSON. Values are not escaped, because the receiver's format is
    /// unknown.
    ///
    /// # Errors
    /// The error of the first part that cannot be rendered.
    pub fn render_text(&self, values: &Values) -> Result<String, TemplateError> {
        self.render(values, Encoding::Text)
    }

    /// Renders a header value, without white space at the ends. Non-ASCII characters are
    /// percent-encoded, as in all header values that come from events.
    ///
    /// # Errors
    ///
    /// Fails if a part cannot be rendered, or if the value has a control character or is too long.
    pub fn render_header(&self, values: &Values) -> Result<String, TemplateError> {
        let rendered = self.render(values, Encoding::Header)?;
        header_value(&rendered, values.budget()).map_err(|fault| self.error(fault))
    }

    /// Renders a query value, encoded like a form value: a space is `+`, and `&` is `%26`.
    ///
    /// # Errors
    /// The error of the first part that cannot be rendered.
    pub fn render_query_value(&self, values: &Values) -> Result<String, TemplateError> {
        self.render(values, Encoding::Query)
    }

    fn render(&self, values: &Values, encoding: Encoding) -> Result<String, TemplateError> {
        let max_bytes = match encoding {
            Encoding::Text | Encoding::JsonString | Encoding::Path => RENDERED_MAX_BYTES,
            Encoding::Header => HEADER_MAX_BYTES,
            Encoding::Query => QUERY_VALUE_MAX_BYTES,
        };
        let mut out = Bounded::new(max_bytes, WRITTEN, values.budget());
        render(&self.program, values, encoding, &mut out)?;
        Ok(out.finish())
    }

    /// Returns the names of the secrets in calls of `secret` and `hmac`, sorted and without
    /// duplicates.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.program.secrets.iter().map(|name| &**name)
    }

    /// Returns true if an expression uses the variable `event`, which does not exist if the
    /// subscription batches.
    #[must_use]
    pub fn reads_event(&self) -> bool {
        self.program.variables.contains(&Variable::Event)
    }

    fn error(&self, fault: Fault) -> TemplateError {
        TemplateError::new(&self.program.place, &self.text, fault.0)
    }
}

/// Converts a rendered text to a header value. Fails if the text contains a control character or is
/// too long.
fn header_value(text: &str, budget: &Budget) -> Result<String, Fault> {
    if text.chars().any(char::is_control) {
        return Err(Fault::new(
            "the value contains a control character, such as a line break, which is not allowed in \
             a header",
        ));
    }
    let mut value = Bounded::new(HEADER_MAX_BYTES, BUILT, budget);
    percent_encoding::utf8_percent_encode(text.trim(), percent_encoding::CONTROLS)
        .try_for_each(|part| value.push(part))?;
    Ok(value.finish())
}
