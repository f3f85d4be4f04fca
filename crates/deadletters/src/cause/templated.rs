//! A text with placeholders, together with the values that they replaced.
//!
//! Separate because placeholders identify causes, and values are only shown. A title shows a value
//! that all dead letters of the cause share: the limit in `must be at most 100`, the port in
//! `refused: db:5432`. The title shows a placeholder where the dead letters differ. Pure.
//!
//! Promises: values never influence the id of a cause. A title does not depend on the order in
//! which dead letters are added.

use super::template::{self, HIDDEN_QUERY, NUMBER, PLACEHOLDERS, VALUE};

/// Maximum length of a value that is shown.
const VALUE_MAX_CHARS: usize = 60;
/// Maximum length of a title; longer titles are cut. The limit is above that of a template, because
/// values may be longer than their placeholders.
pub(super) const TITLE_MAX_CHARS: usize = 240;

/// A template, and the values of its placeholders.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Templated {
    pub(super) template: String,
    /// The value of each placeholder, in order; `None` if a value is unknown.
    values: Vec<Option<String>>,
}

impl Templated {
    pub(super) fn from_text(text: &str) -> Self {
        Self::with(template::generalize(text), text)
    }

    /// Creates a templated text from a template and its source text. The values are unknown if the
    /// text does not match the template.
    pub(super) fn with(template: String, text: &str) -> Self {
        let (literals, placeholders) = parts(&template);
        let found = values_between(&literals, &template::normalized(text));
        let values = found.map(|values| values.into_iter().map(Some).collect());
        let values = values.unwrap_or_else(|| vec![None; placeholders.len()]);
        Self { template, values }
    }

    /// Creates a templated text whose values are unknown.
    pub(super) fn without_values(template: String) -> Self {
        let count = parts(&template).1.len();
        Self { template, values: vec![None; count] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.template.is_empty()
    }

    pub(super) fn chars(&self) -> usize {
        self.template.chars().count()
    }

    /// Appends another templated text. The separator is omitted if this text is empty.
    pub(super) fn push(&mut self, separator: &str, other: &Self) {
        if !self.is_empty() {
            self.template.push_str(separator);
        }
        self.template.push_str(&other.template);
        self.values.extend_from_slice(&other.values);
    }

    pub(super) fn joined(texts: &[Self], separator: &str) -> Self {
        texts.iter().fold(Self::default(), |mut all, text| {
            all.push(separator, text);
            all
        })
    }

    /// Prepends a text that has no placeholders.
    pub(super) fn after(self, prefix: &str) -> Self {
        Self { template: format!("{prefix}{}", self.template), ..self }
    }

    /// Cuts the template to [`TITLE_MAX_CHARS`].
    pub(super) fn cut(self) -> Self {
        let template = template::cut(self.template, TITLE_MAX_CHARS);
        let count = parts(&template).1.len();
        Self { template, values: self.values.into_iter().take(count).collect() }
    }
}

/// The values that all dead letters of a cause share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The value of each placeholder, if all dead letters share it. `None` if their titles have
    /// different numbers of placeholders.
    values: Option<Vec<Option<String>>>,
    is_single: bool,
}

impl Shared {
    pub(super) fn new(title: &Templated) -> Self {
        Self { values: Some(title.values.clone()), is_single: true }
    }

    /// Drops the values that differ in the title of another dead letter.
    pub(super) fn add(&mut self, title: &Templated) {
        self.is_single = false;
        let shared = self.values.take().filter(|values| values.len() == title.values.len());
        self.values = shared.map(|values| {
            let both = values.into_iter().zip(&title.values);
            both.map(|(value, other)| value.filter(|value| Some(value) == other.as_ref())).collect()
        });
    }

    /// Returns the title with the shared values. For a single dead letter, ids, times and addresses
    /// remain placeholders, because there is no other dead letter that shares their values.
    pub(super) fn shown(&self, title: &Templated) -> String {
        let (literals, placeholders) = parts(&title.template);
        let values = self.values.as_deref().unwrap_or_default();
        let is_shown = |placeholder: &str, value: &str| {
            placeholder != HIDDEN_QUERY
                && (!self.is_single || matches!(placeholder, NUMBER | VALUE))
                && value.chars().count() <= VALUE_MAX_CHARS
        };
        let mut shown = String::new();
        for (at, literal) in literals.iter().enumerate() {
            shown.push_str(literal);
            let Some(placeholder) = placeholders.get(at) else { continue };
            let value = values.get(at).and_then(Option::as_deref);
            shown.push_str(
                value.filter(|value| is_shown(placeholder, value)).unwrap_or(placeholder),
            );
        }
        template::cut(shown, TITLE_MAX_CHARS)
    }
}

/// Splits a template into its literal parts, and the placeholders between these parts.
fn parts(template: &str) -> (Vec<&str>, Vec<&'static str>) {
    let (mut literals, mut placeholders) = (Vec::new(), Vec::new());
    let (mut rest, mut from) = (template, 0);
    while let Some(at) = rest.get(from..).and_then(|text| text.find(['<', '?'])) {
        let (literal, after) = rest.split_at(from + at);
        match PLACEHOLDERS
            .iter()
            .find_map(|placeholder| Some((*placeholder, after.strip_prefix(placeholder)?)))
        {
            Some((placeholder, after)) => {
                literals.push(literal);
                placeholders.push(placeholder);
                (rest, from) = (after, 0);
            }
            None => from += at + 1,
        }
    }
    literals.push(rest);
    (literals, placeholders)
}

/// Returns the texts between the literal parts; `None` if the text does not contain these parts in
/// this order.
fn values_between(literals: &[&str], text: &str) -> Option<Vec<String>> {
    let (first, others) = literals.split_first()?;
    let mut rest = text.strip_prefix(first)?;
    let mut values = Vec::new();
    for (at, literal) in others.iter().enumerate() {
        let is_last = at + 1 == others.len();
        let least = rest.chars().next()?.len_utf8();
        let end = match literal.strip_suffix('…') {
            // The template was cut here.
            Some(literal) if is_last => least + rest.get(least..)?.find(literal)?,
            _ if is_last => {
                rest.len() - rest.get(least..)?.strip_suffix(literal).map(|_| literal.len())?
            }
            _ => least + rest.get(least..)?.find(literal)?,
        };
        values.push(rest.get(..end)?.to_owned());
        rest = rest.get(end + literal.len()..).unwrap_or_default();
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::template::TEMPLATE_MAX_CHARS;

    fn shown(texts: &[&str]) -> String {
        let titles: Vec<Templated> = texts.iter().map(|text| Templated::from_text(text)).collect();
        let mut shared = Shared::new(&titles[0]);
        for title in &titles[1..] {
            shared.add(title);
        }
        shared.shown(&titles[0])
    }

    #[test]
    fn values_that_all_letters_share_are_shown_and_the_others_are_placeholders() {
        for (texts, title) in [
            (
                vec!["order 7: at most 100 lines", "order 8: at most 100 lines"],
                "order <number>: at most 100 lines",
            ),
            (vec!["at most 100", "at most 5", "at most 100"], "at most <number>"),
            (vec!["limit of 2 GB at 07:03", "limit of 2 GB at 07:03"], "limit of 2 GB at 07:03"),
            (vec!["request 7f3a9c1d: \"a b\" after 3s"], "request <id>: \"a b\" after <duration>"),
            (vec!["GET /a?token=x: 7", "GET /a?token=x: 7"], "GET /a?…: 7"),
            (vec!["a  12 \t b", "a 12 b"], "a 12 b"),
        ] {
            assert_eq!(shown(&texts), title, "{texts:?}");
            let reversed: Vec<&str> = texts.iter().rev().copied().collect();
            assert_eq!(shown(&reversed), title, "{texts:?}");
        }
    }

    #[test]
    fn titles_with_different_numbers_of_placeholders_show_no_values() {
        let (longer, shorter) = (Templated::from_text("7 of 8"), Templated::from_text("7 of"));
        for others in [[&longer, &shorter], [&shorter, &longer]] {
            let mut shared = Shared::new(&longer);
            others.into_iter().for_each(|other| shared.add(other));
            assert_eq!(shared.shown(&longer), "<number> of <number>");
        }
    }

    #[test]
    fn a_cut_title_keeps_the_values_before_the_cut() {
        let long = format!("at most 7 {}8", "x, ".repeat(TEMPLATE_MAX_CHARS));
        let title = shown(&[&long, &long]);
        assert!(title.starts_with("at most 7 x, ") && title.ends_with('…'), "{title}");
    }
}
