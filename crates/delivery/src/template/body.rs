//! [`BodyTemplate`]: a JSON body whose strings are templates.
//!
//! A string that consists of exactly one expression is replaced by the value of the expression,
//! which can have any JSON type. Any other string with tags is rendered and stays a string.
//! Everything else is written unchanged, including names of members.

use std::sync::Arc;

use serde_json::Value as Json;

use super::budget::{Bounded, WRITTEN};
use super::error::TemplateError;
use super::evaluate::{render, render_json};
use super::expression::Variable;
use super::limits::{
    BODY_DEPTH_MAX, BODY_STRINGS_MAX, BODY_TEMPLATE_MAX_BYTES, RENDERED_MAX_BYTES,
};
use super::output::Encoding;
use super::program::Program;
use super::syntax::has_tags;
use super::values::Values;

/// A compiled JSON body. Clones share the compiled form.
#[derive(Debug, Clone)]
pub struct BodyTemplate {
    parts: Arc<[Part]>,
}

/// A part of the JSON text of a body.
#[derive(Debug)]
enum Part {
    /// JSON text without expressions, which is written unchanged.
    Constant(String),
    /// A string with tags, which is rendered.
    String(Program),
}

impl BodyTemplate {
    /// Compiles a body. `place` is the path of its field, such as `spec.destination.body`.
    ///
    /// # Errors
    /// One error for each invalid string, or the limit that the body exceeds.
    pub fn compile(body: &Json, place: &str) -> Result<Self, Vec<TemplateError>> {
        let mut compiling =
            Compiling { parts: Vec::new(), strings: 0, bytes: 0, errors: Vec::new() };
        let is_whole = compiling.value(body, place, 0).is_ok();
        if !is_whole || !compiling.errors.is_empty() {
            return Err(compiling.errors);
        }
        Ok(Self { parts: compiling.parts.into() })
    }

    /// Renders the body as JSON in UTF-8.
    ///
    /// # Errors
    /// The error of the first string that cannot be rendered.
    pub fn render(&self, values: &Values) -> Result<Vec<u8>, TemplateError> {
        let mut out = Bounded::new(RENDERED_MAX_BYTES, WRITTEN, values.budget());
        for part in &*self.parts {
            match part {
                // The constant parts alone are below the limit, so an expression has filled the
                // output.
                Part::Constant(json) => {
                    out.push(json)
                        .map_err(|fault| TemplateError::new(&self.last_place(), json, fault.0))?;
                }
                Part::String(program) => match program.single() {
                    Some(tagged) => render_json(program, tagged, values, &mut out)?,
                    None => {
                        let failed = |fault: super::error::Fault| {
                            TemplateError::new(&program.place, "", fault.0)
                        };
                        out.push("\"").map_err(failed)?;
                        render(program, values, Encoding::JsonString, &mut out)?;
                        out.push("\"").map_err(failed)?;
                    }
                },
            }
        }
        Ok(out.finish().into_bytes())
    }

    /// Returns the names of the secrets that the body contains or signs with, sorted and without
    /// duplicates.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let names = self.programs().flat_map(|program| &program.secrets);
        names.map(|name| &**name).collect::<std::collections::BTreeSet<&str>>().into_iter()
    }

    /// Returns true if an expression uses the variable `event`, which does not exist if the
    /// subscription batches.
    #[must_use]
    pub fn reads_event(&self) -> bool {
        self.programs().any(|program| program.variables.contains(&Variable::Event))
    }

    fn programs(&self) -> impl Iterator<Item = &Program> {
        self.parts.iter().filter_map(|part| match part {
            Part::Constant(_) => None,
            Part::String(program) => Some(program),
        })
    }

    fn last_place(&self) -> String {
        self.programs().last().map(|program| program.place.to_string()).unwrap_or_default()
    }
}

/// The error with which compilation stops once a limit is exceeded.
struct Stop;

struct Compiling {
    parts: Vec<Part>,
    strings: usize,
    bytes: usize,
    errors: Vec<TemplateError>,
}

impl Compiling {
    fn value(&mut self, value: &Json, place: &str, depth: usize) -> Result<(), Stop> {
        if depth > BODY_DEPTH_MAX {
            return self.stop(
                place,
                format!("lists and objects are nested more than {BODY_DEPTH_MAX} levels deep"),
            );
        }
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {
                self.constant(place, &value.to_string())
            }
            Json::String(text) => self.string(place, text),
            Json::Array(items) => {
                self.constant(place, "[")?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.constant(place, ",")?;
                    }
                    self.value(item, &format!("{place}[{index}]"), depth + 1)?;
                }
                self.constant(place, "]")
            }
            Json::Object(members) => {
                self.constant(place, "{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        self.constant(place, ",")?;
                    }
                    self.constant(place, &Json::from(name.as_str()).to_string())?;
                    self.constant(place, ":")?;
                    self.value(value, &member(place, name), depth + 1)?;
                }
                self.constant(place, "}")
            }
        }
    }

    fn string(&mut self, place: &str, text: &str) -> Result<(), Stop> {
        if !has_tags(text) {
            return self.constant(place, &Json::from(text).to_string());
        }
        self.strings += 1;
        if self.strings > BODY_STRINGS_MAX {
            return self.stop(
                place,
                format!("the body has more than {BODY_STRINGS_MAX} strings with expressions"),
            );
        }
        self.count(place, text.len())?;
        match Program::compile(text, place) {
            Ok(program) => self.parts.push(Part::String(program)),
            Err(error) => self.errors.push(error),
        }
        Ok(())
    }

    fn constant(&mut self, place: &str, json: &str) -> Result<(), Stop> {
        self.count(place, json.len())?;
        match self.parts.last_mut() {
            Some(Part::Constant(before)) => before.push_str(json),
            Some(Part::String(_)) | None => self.parts.push(Part::Constant(json.to_owned())),
        }
        Ok(())
    }

    fn count(&mut self, place: &str, bytes: usize) -> Result<(), Stop> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= BODY_TEMPLATE_MAX_BYTES {
            return Ok(());
        }
        self.stop(place, format!("the body has more than {BODY_TEMPLATE_MAX_BYTES} bytes"))
    }

    fn stop(&mut self, place: &str, reason: String) -> Result<(), Stop> {
        self.errors.push(TemplateError::new(place, "", reason));
        Err(Stop)
    }
}

/// Returns the path of a member for error messages: `body.text`, or `body["other name"]`.
pub(crate) fn member(place: &str, name: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if !name.is_empty() && name.chars().all(is_plain) {
        return format!("{place}.{name}");
    }
    format!("{place}[{}]", Json::from(super::error::quoted(name)))
}
