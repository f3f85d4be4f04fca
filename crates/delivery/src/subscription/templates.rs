//! The templates of a destination, with the secrets that they name.
//!
//! This module is separate from [`crate::template`], which compiles and renders templates. The
//! names of secrets and the source text belong to the subscription.

use serde_json::Value as Json;

use crate::subscription::secret::SecretName;
use crate::template::{BodyTemplate, PathTemplate, TemplateError, TextTemplate};

/// A compiled template, its source text, and the secrets that it names.
#[derive(Debug, Clone)]
pub struct Templated<T> {
    /// The compiled form.
    pub template: T,
    /// The source, as the file states it.
    pub written: Json,
    /// The secrets that the template contains or signs with.
    pub secrets: Vec<SecretName>,
}

/// Compares the source only: it determines the compiled form.
impl<T> PartialEq for Templated<T> {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl<T> Eq for Templated<T> {}

/// A parameter that requests add to the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParameter {
    /// Literal; names have no expressions.
    pub name: String,
    /// Encoded like a value of an HTML form.
    pub value: Templated<TextTemplate>,
}

/// The errors of a template, each with its position and reason.
pub type Problems = Vec<TemplateError>;

/// Parses the names of secrets.
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
    /// Compiles the value of a field. `place` is its name in errors.
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
    /// Compiles a text. `place` is its name in errors.
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
    /// Compiles a URL with expressions in its path. `place` is its name in errors.
    ///
    /// # Errors
    /// The reason why the URL is invalid.
    pub fn url(text: &str, place: &str) -> Result<Self, Problems> {
        let template = PathTemplate::compile(text, place).map_err(|error| vec![error])?;
        let secrets = secrets(template.secrets(), place)?;
        Ok(Self { template, written: text.into(), secrets })
    }
}
