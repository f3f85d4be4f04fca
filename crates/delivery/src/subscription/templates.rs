//! [`Templated`]: a template of a destination, and the names of the secrets in it.
//!
//! This module is separate from [`crate::template`], which compiles and renders templates. The
//! names of secrets and the source text belong to the subscription.

use serde_json::Value as Json;

use crate::subscription::secret::SecretName;
use crate::template::{BodyTemplate, PathTemplate, TemplateError, TextTemplate};

/// A compiled template, its source, and the names of the secrets in it.
#[derive(Debug, Clone)]
pub struct Templated<T> {
    /// The compiled template, which can be rendered.
    pub template: T,
    /// The source of the template, as the document states it.
    pub written: Json,
    /// The names of the secrets that the template contains or signs with.
    pub secrets: Vec<SecretName>,
}

/// Compares only the sources, because they determine the compiled templates.
impl<T> PartialEq for Templated<T> {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl<T> Eq for Templated<T> {}

/// A query parameter that is added to the URL of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParameter {
    /// The name of the parameter, taken literally: expressions in it are not evaluated.
    pub name: String,
    /// The template of the value. The rendered value is encoded like a value of an HTML form.
    pub value: Templated<TextTemplate>,
}

/// The errors of a template, each with its position and reason.
pub type Problems = Vec<TemplateError>;

/// Parses the names of secrets that a template contains.
///
/// # Errors
/// One error for each invalid name.
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
    /// Compiles a JSON body whose strings are templates. `place` is the path of the field, for
    /// error messages.
    ///
    /// # Errors
    /// One error for each invalid string.
    pub fn body(value: Json, place: &str) -> Result<Self, Problems> {
        let template = BodyTemplate::compile(&value, place)?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: value, secrets })
    }
}

impl Templated<TextTemplate> {
    /// Compiles a text with expressions. `place` is the path of the field, for error messages.
    ///
    /// # Errors
    /// The reason why the text is not a valid template.
    pub fn text(text: &str, place: &str) -> Result<Self, Problems> {
        let template = TextTemplate::compile(text, place).map_err(|error| vec![error])?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: text.into(), secrets })
    }
}

impl Templated<PathTemplate> {
    /// Compiles a URL with expressions in its path. `place` is the path of the field, for error
    /// messages.
    ///
    /// # Errors
    /// The reason why the URL is invalid.
    pub fn url(text: &str, place: &str) -> Result<Self, Problems> {
        let template = PathTemplate::compile(text, place).map_err(|error| vec![error])?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: text.into(), secrets })
    }
}
