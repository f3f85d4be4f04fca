//! A problem: one error that a response reports.
//!
//! Separate because all readers of bodies produce problems, and all problems are formatted in one
//! way.

use super::template::{self, ID, TEMPLATE_MAX_CHARS, VALUE};
use super::templated::Templated;

/// Maximum number of segments of a field path that are kept.
const SEGMENTS_MAX: usize = 12;
/// Field names that frameworks use for errors that concern the whole request.
const NO_FIELDS: [&str; 8] =
    ["base", "non_field_errors", "__all__", "_errors", "detail", "_schema", "formerrors", "error"];
/// Names that frameworks put before every field path.
const ROOTS: [&str; 3] = ["$", "#", "."];
/// Codes that only state that the request is wrong. They are omitted if the problem has a text.
const VAGUE_CODES: [&str; 9] = [
    "validationerror",
    "validationfailed",
    "fsterrvalidation",
    "graphqlvalidationfailed",
    "baduserinput",
    "invalidargument",
    "invalidinput",
    "invalidrequest",
    "unprocessable",
];
/// Texts with which libraries begin variable additions to a message: request ids, the position in a
/// text, or the rejected value.
const APPENDED: [&str; 3] = [" (Service: ", " | LineNumber:", ". Preview of field's value: "];
/// Text with which System.Text.Json begins the field path after a message. A member beside the
/// message has the same path.
const APPENDED_PLACE: &str = ". Path: $";
/// Names of types. A type name may be the rejected value, but stays in the text: `expected string,
/// received number`.
const TYPES: [&str; 8] =
    ["undefined", "null", "string", "number", "object", "array", "boolean", "integer"];
/// Minimum length to which a message is cut in favour of a long field path.
const MESSAGE_MIN_CHARS: usize = 40;
/// Minimum length at which a rejected value is recognised without quotation marks.
const BARE_VALUE_MIN_CHARS: usize = 3;

/// One error that a response reports.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) code: Option<String>,
    /// The texts of the problem, the most general first.
    pub(super) texts: Vec<String>,
    /// The segments of the field path; empty if the problem names no field.
    pub(super) field: Vec<String>,
    /// The value that the destination rejected. A text of the problem may repeat this value.
    pub(super) rejected: Option<String>,
}

/// A problem in the form in which it is shown and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) message: Templated,
    /// The field path; empty if the message already contains it.
    pub(super) field: Templated,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.message.is_empty() && self.field.is_empty()
    }

    /// Returns the text that identifies the problem: `Field required: body.customer.email`. A long
    /// message is cut, but not the field path.
    pub(super) fn template(&self) -> String {
        let mut line = self.message.clone();
        if !self.field.is_empty() {
            let room = TEMPLATE_MAX_CHARS.saturating_sub(self.field.chars() + ": ".len());
            line.template = template::cut(line.template, room.max(MESSAGE_MIN_CHARS));
            line.push(": ", &self.field);
        }
        template::cut(line.template, TEMPLATE_MAX_CHARS)
    }
}

impl Problem {
    pub(super) fn text(text: &str) -> Self {
        Self { texts: vec![text.to_owned()], ..Self::default() }
    }

    /// Formats the problem, with placeholders for varying parts.
    pub(super) fn line(&self, is_generic: impl Fn(&str) -> bool) -> Line {
        let mut kept: Vec<Templated> = Vec::new();
        for part in self.parts(&is_generic) {
            if kept.iter().any(|other| contains(&other.template, &part.template)) {
                continue;
            }
            kept.retain(|other| !contains(&part.template, &other.template));
            kept.push(part);
        }
        if kept.len() > 1 && kept.first().is_some_and(|code| is_vague(&code.template)) {
            kept.remove(0);
        }
        let field = field(&self.field);
        let path = |text: &str| text.replace('[', ".").replace(']', "");
        let is_named = kept.iter().any(|part| contains(&path(&part.template), &field.template));
        let message = Templated::joined(&kept, ": ");
        Line { message, field: if is_named { Templated::default() } else { field } }
    }

    /// Returns the code and the texts, without empty and generic ones.
    fn parts(&self, is_generic: impl Fn(&str) -> bool) -> Vec<Templated> {
        let code = self.code.iter().map(|code| Templated::with(template::of_code(code), code));
        let texts =
            self.texts.iter().map(|text| self.templated(&without_status(text, &is_generic)));
        let parts = code.chain(texts);
        parts.filter(|part| !part.is_empty() && !is_generic(&part.template)).collect()
    }

    fn templated(&self, text: &str) -> Templated {
        let place = (!self.field.is_empty()).then_some(APPENDED_PLACE);
        let end = APPENDED.into_iter().chain(place).filter_map(|mark| text.find(mark)).min();
        let text = end.and_then(|end| text.get(..end)).unwrap_or(text).trim_end_matches('.');
        let text = without_request(text);
        let masked = match self.rejected.as_deref() {
            Some(value) if self.field.last().is_none_or(|field| field != value) => {
                without_value(text, value)
            }
            Some(_) | None => text.to_owned(),
        };
        let template = template::generalize(&masked);
        Templated::with(template.trim_end_matches('.').to_owned(), text)
    }
}

/// Removes a parenthesis with an id from the end of a text: `no stock (request 7f3a9c1d)` becomes
/// `no stock`.
fn without_request(text: &str) -> &str {
    let end = text.strip_suffix(')').and_then(|inner| inner.rsplit_once(" ("));
    let is_id = |inner: &str| template::generalize(inner).contains(ID);
    end.filter(|(_, inner)| is_id(inner)).map_or(text, |(before, _)| before)
}

/// Replaces the rejected value in a text with a placeholder.
fn without_value(text: &str, value: &str) -> String {
    if value.chars().count() < BARE_VALUE_MIN_CHARS || TYPES.contains(&value) {
        return text.to_owned();
    }
    let (mut masked, mut end) = (String::new(), 0);
    for at in places(text, value) {
        masked.push_str(text.get(end..at).unwrap_or_default());
        masked.push_str(VALUE);
        end = at + value.len();
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    masked
}

fn is_vague(code: &str) -> bool {
    let letters = code.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    VAGUE_CODES.contains(&letters.as_str())
}

/// Returns the first line of a text, without a status number at its beginning: `404 Not Found`
/// becomes `Not Found`. Keeps the number unless the number or the rest of the line repeats the
/// status of the response.
fn without_status(text: &str, is_generic: &impl Fn(&str) -> bool) -> String {
    let line = super::text::first_line(text).unwrap_or_default();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_status = line.len() - rest.len() == 3 && rest.starts_with(' ');
    let rest = rest.trim_start_matches([' ', '-', '–', ':']);
    if is_status && (is_generic(rest) || line.get(..3).is_some_and(&is_generic)) {
        rest.to_owned()
    } else {
        line
    }
}

/// True if `text` contains `part` as whole words. Ignores upper and lower case.
fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.to_lowercase(), part.to_lowercase());
    places(&text, &part).next().is_some()
}

/// Returns the offsets at which `text` contains `part` as whole words.
fn places<'a>(text: &'a str, part: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(part).map(|(at, _)| at).filter(move |at| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        let after = text.get(at + part.len()..).and_then(|after| after.chars().next());
        is_edge(before) && is_edge(after)
    })
}

/// Joins the segments of a field path: `items.<number>.price`. Names are kept; ids and indexes
/// become placeholders.
fn field(segments: &[String]) -> Templated {
    let split = segments.iter().flat_map(|segment| segment.split(['.', '/', '[', ']']));
    let named = split.filter(|segment| !segment.is_empty() && !ROOTS.contains(segment));
    let named = named.filter(|segment| !NO_FIELDS.contains(&segment.to_lowercase().as_str()));
    let segments: Vec<Templated> = named.take(SEGMENTS_MAX).map(segment).collect();
    Templated::joined(&segments, ".")
}

fn segment(name: &str) -> Templated {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && digits <= 2;
    if is_name {
        Templated::without_values(name.to_owned())
    } else {
        Templated::with(template::of_segment(name), name)
    }
}
