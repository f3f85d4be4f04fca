//! The errors of one response: the title for people, and the text that identifies the cause.
//!
//! Separate from reading the errors, because neither their order nor the place where a response was
//! cut off may influence the identity of the cause. Pure.
//!
//! Promises: errors with the same message form one part of the title, which lists their fields. The
//! title contains as many errors as fit, and a note about the others, such as `and 2 more`.

use super::problem::Line;
use super::templated::{TITLE_MAX_CHARS, Templated};

/// Number of characters reserved in a title for the status before the errors, and for the count
/// after them.
const RESERVED_CHARS: usize = 24;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    /// The errors in the order of the body, without repetitions.
    pub(super) lines: Vec<Line>,
    pub(super) is_cut: bool,
    /// True if there were further errors in a missing or broken end of the body.
    pub(super) has_more: bool,
}

/// One part of a title: a message, and the fields that have this error.
struct Part<'a> {
    message: &'a Templated,
    fields: Vec<&'a Templated>,
}

impl Errors {
    /// Returns a short summary, such as `Field required: body.email, body.name; must be positive:
    /// body.total and 2 more`.
    pub(super) fn title(&self) -> Option<Templated> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by_cached_key(|line| line.template());
        let mut title = Templated::default();
        let mut named = 0;
        for part in parts(&lines) {
            named += part.add_to(&mut title);
        }
        let rest = lines.len() - named;
        let end = match (rest, self.has_more) {
            (0, false) => String::new(),
            (rest, false) => format!(" and {rest} more"),
            (_, true) => " and more".to_owned(),
        };
        title.push("", &Templated::without_values(end));
        (!lines.is_empty()).then_some(title)
    }

    /// Returns the text that identifies the cause. For a cut body, only the first error counts,
    /// because the length of the values before the cut determines how many errors remain.
    pub(super) fn compared(&self) -> String {
        let kept = if self.is_cut { 1 } else { self.lines.len() };
        let mut lines: Vec<String> = self.lines.iter().take(kept).map(Line::template).collect();
        lines.sort_unstable();
        lines.join("\n")
    }
}

/// Groups the errors by message, in their order.
fn parts<'a>(lines: &[&'a Line]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for Line { message, field } in lines.iter().copied() {
        let of_message = parts.iter_mut().find(|part| part.message.template == message.template);
        match of_message {
            Some(part) => part.fields.push(field),
            None => parts.push(Part { message, fields: vec![field] }),
        }
    }
    parts
}

impl Part<'_> {
    /// Appends the message to the title, with as many fields as fit. Returns the number of these
    /// fields. The first part of a title is always appended.
    fn add_to(&self, title: &mut Templated) -> usize {
        let is_first = title.is_empty();
        let fits = |text: &Templated| is_first || text.chars() + RESERVED_CHARS <= TITLE_MAX_CHARS;
        let mut added = 0;
        for field in &self.fields {
            let mut longer = title.clone();
            if added == 0 {
                longer.push("; ", self.message);
            }
            if !field.is_empty() {
                let separator = if added > 0 { ", " } else { self.separator() };
                longer.push(separator, field);
            }
            if added > 0 && longer.chars() + RESERVED_CHARS > TITLE_MAX_CHARS || !fits(&longer) {
                return added;
            }
            *title = longer;
            added += 1;
        }
        added
    }

    fn separator(&self) -> &'static str {
        if self.message.is_empty() { "; " } else { ": " }
    }
}
