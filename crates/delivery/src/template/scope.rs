//! [`Scope`]: the values and the budget that evaluation and filters share.

use super::budget::{BUILT, Bounded, Budget};
use super::error::{Fault, quoted};
use super::limits::RENDERED_MAX_BYTES;
use super::value::Value;
use super::values::Values;

/// The values of a request, and the fuel for the evaluation.
#[derive(Clone, Copy)]
pub(super) struct Scope<'v> {
    /// The values of variables and secrets in this request.
    pub(super) values: &'v Values,
    /// The fuel that all work consumes.
    pub(super) budget: &'v Budget,
}

impl<'v> Scope<'v> {
    /// Returns the value of a secret. Fails if the secret was not loaded.
    pub(super) fn secret(&self, name: &str) -> Result<&'v str, Fault> {
        let secret = self.values.secret(name);
        secret.ok_or_else(|| Fault::new(format!("the secret `{}` was not loaded", quoted(name))))
    }

    /// Returns an empty text to which bytes are appended within the budget.
    pub(super) fn builder(&self) -> Bounded<'v> {
        Bounded::new(RENDERED_MAX_BYTES, BUILT, self.budget)
    }

    /// Returns the JSON of a value as a text.
    pub(super) fn json(&self, value: &Value<'v>) -> Result<Bounded<'v>, Fault> {
        let mut json = self.builder();
        value.write_json(&mut json, 0)?;
        Ok(json)
    }

    /// Appends a value to a text. A text is appended without quotes, and any other value as JSON.
    pub(super) fn push(&self, value: &Value<'v>, built: &mut Bounded<'v>) -> Result<(), Fault> {
        match value.as_text() {
            Some(text) => built.push(text),
            None => value.write_json(built, 0),
        }
    }
}
