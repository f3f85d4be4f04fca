//! One thing that a response says went wrong.
//!
//! Separate because every shape of a body is read as these, and they become a title in one way.

use super::template;

/// A place in the sent event may have this many segments.
const SEGMENTS_MAX: usize = 12;
/// Names that frameworks use for errors of the whole request.
const NO_FIELDS: [&str; 8] =
    ["base", "non_field_errors", "__all__", "_errors", "detail", "_schema", "formerrors", "error"];
/// Names that frameworks put before the fields and that say nothing.
const ROOTS: [&str; 3] = ["$", "#", "."];

/// One thing that went wrong.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) code: Option<String>,
    /// The texts, the general ones first.
    pub(super) texts: Vec<String>,
    /// The segments of the place that the problem is about; empty without one.
    pub(super) field: Vec<String>,
}

impl Problem {
    pub(super) fn text(text: &str) -> Self {
        Self { texts: vec![text.to_owned()], ..Self::default() }
    }

    /// A line that names the problem, without what varies: `Field required: body.customer.email`.
    pub(super) fn line(&self, is_generic: impl Fn(&str) -> bool) -> String {
        let code = self.code.iter().map(|code| template::of_code(code));
        let texts = self.texts.iter().map(|text| template::of(&without_status(text, &is_generic)));
        let parts = code.chain(texts.map(|text| text.trim_end_matches('.').to_owned()));
        let mut kept: Vec<String> = Vec::new();
        for part in parts.filter(|part| !part.is_empty() && !is_generic(part)) {
            if kept.iter().any(|of| contains(of, &part)) {
                continue;
            }
            kept.retain(|of| !contains(&part, of));
            kept.push(part);
        }
        let field = field(&self.field);
        if !field.is_empty() && !kept.iter().any(|of| contains(of, &field)) {
            kept.push(field);
        }
        template::cut(kept.join(": "))
    }
}

/// The first line of a text, without the status where it begins with that: `503 Service Unavailable`.
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

/// Looks for a text in another as whole words, in either case.
fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.to_lowercase(), part.to_lowercase());
    let is_edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(&part).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + part.len()..).and_then(|after| after.chars().next());
        is_edge(before) && is_edge(after)
    })
}

/// A place in one text: `items.<number>.price`. Names stay as they are; ids and indexes vary.
fn field(segments: &[String]) -> String {
    let split = segments.iter().flat_map(|segment| segment.split(['.', '/', '[', ']']));
    let named = split.filter(|segment| !segment.is_empty() && !ROOTS.contains(segment));
    let named = named.filter(|segment| !NO_FIELDS.contains(&segment.to_lowercase().as_str()));
    let segments: Vec<String> = named.take(SEGMENTS_MAX).map(segment).collect();
    segments.join(".")
}

fn segment(name: &str) -> String {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && digits <= 2;
    if is_name { name.to_owned() } else { template::of_segment(name) }
}
