//! The body of a response, as the lines of its errors.
//!
//! Separate from the readers of each kind of body: this decides which of them reads it, and bounds the bytes. Pure.
//!
//! Promises: any text is read, also one that was cut anywhere, since only the beginning of a response is kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::problem::Problem;
use super::{cut_json, shapes, status, text};
use crate::facts::RESPONSE_MAX_CHARS;

const BASE64: &str = "base64:";

/// The errors in a body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// One line for each, in the order of the body; each line once.
    pub(super) lines: Vec<String>,
    /// True if the end of the body is missing.
    pub(super) is_cut: bool,
}

impl Said {
    /// The errors in a few words: the first in alphabetical order, so that the order of a body does not matter.
    pub(super) fn title(&self) -> Option<String> {
        let sorted = self.sorted();
        let first = sorted.first()?;
        Some(match sorted.len() - 1 {
            0 if self.is_cut && self.lines.len() > 1 => format!("{first} and more"),
            0 => (*first).to_owned(),
            more => format!("{first} and {more} more"),
        })
    }

    /// The errors as they are compared. Of a body that was cut only one error counts: the cut moves with the values before it.
    pub(super) fn compared(&self) -> String {
        self.sorted().join("\n")
    }

    fn sorted(&self) -> Vec<&str> {
        let kept = if self.is_cut { 1 } else { self.lines.len() };
        let mut sorted: Vec<&str> = self.lines.iter().take(kept).map(String::as_str).collect();
        sorted.sort_unstable();
        sorted
    }
}

/// Reads a kept response: text, or `base64:` and encoded bytes.
pub(super) fn read(response: &str, status: Option<u16>) -> Said {
    let decoded = response.strip_prefix(BASE64).and_then(decode);
    let body = decoded.as_deref().unwrap_or(response);
    let body: String = body.chars().take(RESPONSE_MAX_CHARS).collect();
    let body = body.trim_start_matches('\u{feff}').trim();
    // A cut within a character leaves a part of it, which is also why it was encoded.
    let body = body.trim_end_matches('\u{fffd}');
    let is_generic = |text: &str| status::is_generic(text, status);
    let (problems, is_cut) = problems(body, is_generic);
    let mut lines: Vec<String> = Vec::new();
    for line in problems.iter().map(|problem| problem.line(is_generic)) {
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    // The last of several errors may be a part of one.
    if is_cut && lines.len() > 1 {
        lines.pop();
    }
    Said { lines, is_cut }
}

/// The text of encoded bytes, as far as they are whole.
fn decode(base64: &str) -> Option<String> {
    let base64: &str = base64.get(..base64.len().min(RESPONSE_MAX_CHARS * 2))?;
    let whole = base64.get(..base64.len() / 4 * 4)?;
    STANDARD.decode(whole).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn problems(body: &str, is_generic: impl Fn(&str) -> bool) -> (Vec<Problem>, bool) {
    if let Some(cut_json::Read { value, is_cut }) = cut_json::read(body) {
        let found = shapes::problems(&value);
        if !found.is_empty() {
            return (found, is_cut);
        }
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty);
        let whole = if is_empty { String::new() } else { value.to_string() };
        return (vec![Problem::text(&whole)], is_cut);
    }
    let marked = body.starts_with('<').then(|| text::marked(body, is_generic)).flatten();
    let found = marked.or_else(|| text::plain(body));
    (found.into_iter().collect(), false)
}
