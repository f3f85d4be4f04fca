//! Reads templates, as documents state them: bodies, texts and query parameters.

use serde_json::{Map, Value as Json, json};

use crate::document::kind::{Checked, Kind};
use crate::document::node::{Node, Value};
use crate::document::reader::Cursor;
use crate::subscription::credentials::is_credential_parameter;
use crate::subscription::header::{check_value, is_name};
use crate::subscription::templates::{Problems, QueryParameter, Templated};
use crate::template::limits::TEMPLATE_MAX_BYTES;
use crate::template::{BodyTemplate, TemplateError, TextTemplate, has_tags, member};

/// Path of the field `body`, for error messages.
const BODY: &str = "destination.body";
/// Maximum number of query parameters of a destination.
const PARAMETERS_MAX: usize = 50;
/// Maximum length in bytes of a query parameter's name.
const PARAMETER_NAME_MAX_BYTES: usize = 256;

/// Returns the compiled template, or reports each error at its own position. `place` is the path of
/// the field, for error messages.
pub fn or_report<T>(at: &Cursor<'_>, place: &str, compiled: Result<T, Problems>) -> Option<T> {
    let report = |problem: TemplateError| {
        let within = problem.place.strip_prefix(place).unwrap_or_default();
        match inner(at, within) {
            Some(inner) => inner.error(problem.problem()),
            None => at.error(format!("in {within}: {}", problem.problem())),
        }
    };
    compiled.map_err(|problems| problems.into_iter().for_each(report)).ok()
}

/// Returns the cursor at a position within a body, such as `.blocks[0].text`. Returns `None` if the
/// body has no such position. This happens if the error contains a shortened name.
fn inner<'a>(at: &Cursor<'a>, within: &str) -> Option<Cursor<'a>> {
    if within.is_empty() {
        return Some(at.clone());
    }
    let entries = at.peek_entries().into_iter().map(|entry| (member("", entry.name), entry.value));
    let elements = at.peek_list().into_iter().enumerate();
    let elements = elements.map(|(index, element)| (format!("[{index}]"), element));
    let mut parts = entries.chain(elements);
    parts.find_map(|(place, part)| {
        let rest = within.strip_prefix(&place)?;
        let is_part = rest.is_empty() || rest.starts_with(['.', '[']);
        is_part.then(|| inner(&part, rest)).flatten()
    })
}

/// Removes the text of templates from errors, because it may contain a credential.
pub(super) fn without_expressions(problems: Problems) -> Problems {
    problems.into_iter().map(TemplateError::without_expression).collect()
}

/// The field type of JSON values whose strings are templates.
pub struct Body;

impl Kind for Body {
    type Value = Templated<BodyTemplate>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        check_numbers(at.node(), at)?;
        or_report(at, BODY, Templated::body(at.json(), BODY))
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.written.clone()
    }

    fn schema(&self) -> Json {
        json!({})
    }
}

/// Reports numbers that JSON does not allow, because they would be sent as null.
fn check_numbers(node: &Node, at: &Cursor<'_>) -> Option<()> {
    match &node.value {
        Value::Fraction(number) if number.json().parse::<serde_json::Number>().is_err() => {
            let message = "the body contains a number that JSON does not allow, such as 007: write \
                           it in quotes";
            at.refuse(message)
        }
        Value::List(elements) => elements.iter().try_for_each(|element| check_numbers(element, at)),
        Value::Map(entries) => entries.iter().try_for_each(|(_, value)| check_numbers(value, at)),
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Fraction(_) | Value::Text(_) => {
            Some(())
        }
    }
}

/// The field type of texts with expressions. Its parameter is the path of the field, for error
/// messages.
pub struct Text(pub &'static str);

impl Kind for Text {
    type Value = Templated<TextTemplate>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        or_report(at, self.0, Templated::text(at.text()?, self.0))
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.written.clone()
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "maxLength": TEMPLATE_MAX_BYTES })
    }
}

/// The field type of the field `contentType`: a media type (RFC 9110, 8.3.1).
pub const CONTENT_TYPE: Checked =
    Checked { max_chars: 255, check: check_content_type, schema: content_type_schema };

fn check_content_type(text: &str) -> Result<(), String> {
    let media_type = text.split(';').next().unwrap_or_default().trim_end();
    let is_type =
        media_type.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype));
    if is_type && check_value(text).is_ok() {
        return Ok(());
    }
    Err("not a media type, such as text/plain; charset=utf-8".to_owned())
}

fn content_type_schema() -> Json {
    json!({ "pattern": "^[^/\\s]+/[^/\\s]+" })
}

/// The field type of the field `query`: a mapping from names of parameters to templates.
pub struct Query;

impl Kind for Query {
    type Value = Vec<QueryParameter>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        let entries = at.entries()?;
        if entries.len() > PARAMETERS_MAX {
            return at.refuse(format!(
                "at most {PARAMETERS_MAX} parameters are allowed, found {}",
                entries.len()
            ));
        }
        let read = entries.iter().map(|entry| {
            if !(1..=PARAMETER_NAME_MAX_BYTES).contains(&entry.name.len()) {
                let most = PARAMETER_NAME_MAX_BYTES;
                return entry
                    .key
                    .refuse(format!("the name of a parameter must have 1 to {most} bytes"));
            }
            let text = entry.value.scalar()?;
            let place = format!("destination.query.{}", entry.name);
            let is_credential = is_credential_parameter(entry.name);
            let mut compiled = Templated::text(&text, &place);
            if is_credential {
                compiled = compiled.map_err(without_expressions);
            }
            let value = or_report(&entry.value, &place, compiled)?;
            if is_credential && !has_tags(&text) {
                let message = "a credential must not be in clear text: use {{ secret('env:NAME') \
                               }}, for example";
                return entry.value.refuse(message);
            }
            Some(QueryParameter { name: entry.name.to_owned(), value })
        });
        // Every parameter is read before errors are handled, so that all errors are reported. The
        // parameters are sorted as in the stored form, so that every request has them in the same
        // order.
        let read: Option<Vec<_>> = read.collect::<Vec<_>>().into_iter().collect();
        let mut parameters = read?;
        parameters.sort_by(|a, b| a.name.cmp(&b.name));
        Some(parameters)
    }

    fn write(&self, value: &Self::Value) -> Json {
        let parameters =
            value.iter().map(|parameter| (parameter.name.clone(), parameter.value.written.clone()));
        Json::Object(parameters.collect::<Map<_, _>>())
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "maxProperties": PARAMETERS_MAX,
            "additionalProperties": { "type": ["string", "integer", "boolean"] },
        })
    }
}
