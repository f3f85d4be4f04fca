//! The templates of a destination, with the secrets that they name.
//!
//! Separate from [`crate::template`], which compiles and renders them, because the names of secrets and the
//! written text belong to subscriptions.

use serde_json::Value as Json;

use crate::subscription::secret::SecretName;
use crate::template::{BodyTemplate, PathTemplate, TemplateError, TextTemplate};

/// A compiled template, the text of the file that it was made from, and the secrets that it names.
#[derive(Debug, Clone)]
pub struct Templated<T> {
    /// Renders.
    pub template: T,
    /// As the file states it.
    pub written: Json,
    /// The secrets that it contains or signs with.
    pub secrets: Vec<SecretName>,
}

/// Templates with the same text are equal.
impl<T> PartialEq for Templated<T> {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl<T> Eq for Templated<T> {}

/// A parameter that is added to the query of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParameter {
    /// Literal, without expressions.
    pub name: String,
    /// Encoded as a value of a form.
    pub value: Templated<TextTemplate>,
}

/// The errors of a template, each with its place and its reason.
pub type Problems = Vec<TemplateError>;

/// The secrets of these names.
///
/// # Errors
/// One problem for each invalid name.
fn secrets<'n>(
    names: impl Iterator<Item = &'n str>,
    place: &str,
) -> Result<Vec<SecretName>, Problems> {
    let (mut found, mut problems) = (Vec::new(), Problems::new());
    for name in names {
        match name.parse() {
            Ok(secret) => found.push(secret),
            Err(reason) => {
                let place = place.to_owned();
                problems.push(TemplateError { place, expression: String::new(), reason });
            }
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

impl Templated<BodyTemplate> {
    /// Compiles the value of a field. `place` is its name in errors.
    ///
    /// # Errors
    /// Each string that is not a template.
    pub fn body(value: Json, place: &str) -> Result<Self, Problems> {
        let template = BodyTemplate::compile(&value, place)?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: value, secrets })
    }
}

impl Templated<TextTemplate> {
    /// Compiles a text. `place` is its name in errors.
    ///
    /// # Errors
    /// Why it is not a template.
    pub fn text(text: &str, place: &str) -> Result<Self, Problems> {
        let template = TextTemplate::compile(text, place).map_err(|error| vec![error])?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: text.into(), secrets })
    }
}

impl Templated<PathTemplate> {
    /// Compiles a URL with expressions in its path. `place` is its name in errors.
    ///
    /// # Errors
    /// Why it is not such a URL.
    pub fn url(text: &str, place: &str) -> Result<Self, Problems> {
        let template = PathTemplate::compile(text, place).map_err(|error| vec![error])?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: text.into(), secrets })
    }
}
