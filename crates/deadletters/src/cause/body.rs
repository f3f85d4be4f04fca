//! Reads the errors in the body of a response. Pure.
//!
//! Separate from the readers for each format: this module chooses the reader and limits the bytes.
//!
//! Promises: a body that was cut at any position can be read, because dead letters keep only the
//! beginning of a response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::errors::Errors;
use super::problem::{Line, Problem};
use super::{cut_json, library_texts, lines, shapes, status, text};
use crate::facts::RESPONSE_MAX_CHARS;

const BASE64: &str = "base64:";

/// Reads the errors in a stored response, which is either text, or `base64:` followed by encoded
/// bytes.
pub(super) fn read(response: &str, status: Option<u16>) -> Errors {
    let decoded = response.strip_prefix(BASE64).and_then(decode);
    let body = decoded.as_deref().unwrap_or(response);
    let body: String = body.chars().take(RESPONSE_MAX_CHARS).collect();
    let body = body.trim_start_matches('\u{feff}').trim();
    // A cut within a character leaves an incomplete sequence, which becomes U+FFFD. (It is also the
    // reason why such a body was stored as Base64.)
    let body = body.trim_end_matches('\u{fffd}');
    let is_generic = |text: &str| status::is_generic(text, status);
    let Found { problems, is_cut, has_more } = find(body, is_generic);
    let mut lines: Vec<Line> = Vec::new();
    let problems = problems.into_iter().flat_map(lines::split);
    for problem in problems.map(library_texts::without_additions) {
        let line = problem.line(is_generic);
        if !line.is_empty() && lines.iter().all(|other| other.template() != line.template()) {
            lines.push(line);
        }
    }
    Errors { lines, is_cut, has_more }
}

/// Decodes Base64 text, and drops an incomplete group at the end.
fn decode(base64: &str) -> Option<String> {
    let base64: &str = base64.get(..base64.len().min(RESPONSE_MAX_CHARS * 2))?;
    let whole = base64.get(..base64.len() / 4 * 4)?;
    STANDARD.decode(whole).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The errors found in a body.
#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
    /// True if the end of the body is missing.
    is_cut: bool,
    /// True if the missing end contained a further error.
    has_more: bool,
}

fn find(body: &str, is_generic: impl Fn(&str) -> bool) -> Found {
    if let Some(json) = cut_json::read(body) {
        return of_json(&json);
    }
    let marked = body.starts_with('<').then(|| text::marked(body, is_generic)).flatten();
    let problems = marked.or_else(|| text::plain(body)).into_iter().collect();
    Found { problems, ..Found::default() }
}

fn of_json(json: &cut_json::Read) -> Found {
    let cut_json::Read { value, whole, is_cut } = json;
    let mut problems = shapes::problems(value);
    if problems.is_empty() {
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty);
        let text = if is_empty { String::new() } else { value.to_string() };
        return Found { problems: vec![Problem::text(&text)], is_cut: *is_cut, has_more: false };
    }
    let has_more = *is_cut && problems.len() > 1;
    if has_more {
        // The cut may divide the last error, so only complete errors count.
        let of_whole = whole.as_ref().map(shapes::problems).unwrap_or_default();
        if of_whole.is_empty() {
            problems.pop();
        } else {
            problems = of_whole;
        }
    }
    Found { problems, is_cut: *is_cut, has_more }
}
