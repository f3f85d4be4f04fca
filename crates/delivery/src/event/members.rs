//! A view of the members of a JSON object. It borrows the text, so values keep their spelling.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::event::malformed::Malformed;

/// Initial capacity for members, which is enough for most events.
const USUAL_MEMBERS: usize = 10;

/// The top-level members of a JSON object, in the order of the text. Values are borrowed in the
/// publisher's spelling.
#[derive(Debug, Default)]
pub struct Members<'a> {
    text: &'a str,
    spans: Cow<'a, [Span]>,
}

/// The position of a member in its text. An event stores the positions of all of its members. For a
/// Lambda payload of maximum size with the shortest possible members, the positions need about
/// 30 MB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    name: Name,
    value: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// A name without escapes, as its range in the text.
    Plain(Range<usize>),
    /// A name that contains escapes. It is stored decoded, because a range of the text would
    /// contain the escapes.
    Escaped(Box<str>),
}

impl Name {
    /// Returns the length of the name. Lengths are compared first, because most names differ in
    /// length.
    fn len(&self) -> usize {
        match self {
            Self::Plain(range) => range.len(),
            Self::Escaped(name) => name.len(),
        }
    }
}

impl<'a> Members<'a> {
    /// Parses the members of a JSON object. Other JSON values have no members.
    ///
    /// # Errors
    /// [`Malformed`] if the text is not JSON, or has two members with the same name.
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        let not_json = |error: serde_json::Error| Malformed::NotJson(error.to_string());
        if !text.trim_start().starts_with('{') {
            // The text is parsed anyway, because text that is not JSON is malformed.
            return serde_json::from_str::<&RawValue>(text)
                .map(|_| Self::default())
                .map_err(not_json);
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let spans = deserializer.deserialize_map(Spans { text }).map_err(not_json)?;
        // No text may follow the object, because it would be sent to the destination too.
        deserializer.end().map_err(not_json)?;
        let members = Self { text, spans: Cow::Owned(spans) };
        // The names are sorted, because comparing all pairs would take too long for many members.
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Malformed::DuplicateMember(pair[0].to_owned())),
            None => Ok(members),
        }
    }

    /// Returns the view of a text that was parsed before, from the stored positions of its members.
    pub(super) fn known(text: &'a str, spans: &'a [Span]) -> Self {
        Self { text, spans: Cow::Borrowed(spans) }
    }

    /// Returns the positions of the members, for storage beside the text.
    pub(super) fn into_spans(self) -> Vec<Span> {
        self.spans.into_owned()
    }

    /// Returns the name and the raw value of each member, in the publisher's order and spelling.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.spans.iter().map(|span| (self.name(span), self.at(&span.value)))
    }

    /// Returns the raw value of a member, in the publisher's spelling.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let span = self
            .spans
            .iter()
            .find(|span| span.name.len() == name.len() && self.name(span) == name)?;
        Some(self.at(&span.value))
    }

    /// Returns the text of the object without these members. The other members keep their order and
    /// spelling.
    #[must_use]
    pub(super) fn without(&self, names: &[&str]) -> String {
        let (mut kept, mut end) = (Vec::new(), 0);
        for span in self.spans.iter() {
            let member = self.at(&(end..span.value.end)).trim_start();
            end = span.value.end;
            if !names.contains(&self.name(span)) {
                kept.push(member.strip_prefix(['{', ',']).unwrap_or(member));
            }
        }
        let rest = self.at(&(end..self.text.len())).trim();
        let open = if self.spans.is_empty() { "" } else { "{" };
        format!("{open}{}{rest}", kept.join(","))
    }

    /// Returns an object with only the first `count` members. Copies their text unchanged,
    /// including the white space after them. Returns `{}` if `count` is 0 or above the number of
    /// members.
    #[must_use]
    pub(crate) fn first(&self, count: usize) -> String {
        let last = count.checked_sub(1).and_then(|at| self.spans.get(at));
        let Some(Span { value, .. }) = last else { return "{}".to_owned() };
        // Only white space separates a value from the comma or brace after it.
        let rest = self.at(&(value.end..self.text.len()));
        let end = value.end + rest.find([',', '}']).unwrap_or(0);
        format!("{}}}", self.at(&(0..end)).trim_start())
    }

    /// Returns the text before and after the value of a member; `None` if the object has no member
    /// with this name.
    #[must_use]
    pub(crate) fn around(&self, name: &str) -> Option<(&'a str, &'a str)> {
        let span = self.spans.iter().find(|span| self.name(span) == name)?;
        Some((self.at(&(0..span.value.start)), self.at(&(span.value.end..self.text.len()))))
    }

    /// Returns the part of the text at a stored range. Every stored range is valid.
    fn at(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn name<'s>(&'s self, span: &'s Span) -> &'s str {
        match &span.name {
            Name::Plain(range) => self.at(range),
            Name::Escaped(name) => name,
        }
    }

    /// Returns the decoded value of a member that is a string; otherwise `None`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(json_text)
    }

    /// Returns the member `id`, which CloudEvents and the Event Grid schema share.
    #[must_use]
    pub fn id(&self) -> Option<Cow<'a, str>> {
        self.text("id")
    }

    /// Returns the event type: the member `type`, or `eventType` in the Event Grid schema.
    #[must_use]
    pub fn event_type(&self) -> Option<Cow<'a, str>> {
        self.text("type").or_else(|| self.text("eventType"))
    }

    /// Returns the source of the event: the member `source`, or `topic` in the Event Grid schema.
    #[must_use]
    pub fn source(&self) -> Option<Cow<'a, str>> {
        self.text("source").or_else(|| self.text("topic"))
    }
}

/// Returns the decoded content of a JSON string; `None` for other JSON.
pub(crate) fn json_text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Deserializes an object into the positions of its members. `text` is the text that is
/// deserialized.
struct Spans<'a> {
    text: &'a str,
}

impl<'a> Visitor<'a> for Spans<'a> {
    type Value = Vec<Span>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Vec<Span>, A::Error> {
        let mut spans = Vec::with_capacity(USUAL_MEMBERS);
        while let Some((key, value)) = map.next_entry::<Key<'a>, &RawValue>()? {
            let name = match key.0 {
                Cow::Borrowed(name) => Name::Plain(self.range(name)),
                Cow::Owned(name) => Name::Escaped(name.into()),
            };
            spans.push(Span { name, value: self.range(value.get()) });
        }
        Ok(spans)
    }
}

impl Spans<'_> {
    /// Returns the byte range of a slice that `serde_json` borrowed from the text.
    fn range(&self, part: &str) -> Range<usize> {
        let begin = part.as_ptr().addr() - self.text.as_ptr().addr();
        debug_assert!(
            self.text.get(begin..begin + part.len()) == Some(part),
            "the slice must belong to the text"
        );
        begin..begin + part.len()
    }
}

/// A member name, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_some_members_is_otherwise_the_same() {
        let text = " { \"a\" : 1.50 ,\n  \"b\":{\"a\":[1, 2]}, \"\\u0063\":\"x\"  , \"d\":null} ";
        for (names, expected) in [
            (&["z"][..], "{ \"a\" : 1.50,\n  \"b\":{\"a\":[1, 2]}, \"\\u0063\":\"x\", \"d\":null}"),
            (&["a"], "{\n  \"b\":{\"a\":[1, 2]}, \"\\u0063\":\"x\", \"d\":null}"),
            (&["c", "d"], "{ \"a\" : 1.50,\n  \"b\":{\"a\":[1, 2]}}"),
            (&["a", "b", "c", "d"], "{}"),
        ] {
            let members = Members::parse(text).expect("an object");
            assert_eq!(members.without(names), expected, "{names:?}");
        }
        for text in ["{}", " { } "] {
            assert_eq!(Members::parse(text).expect("JSON").without(&["a"]), text.trim(), "{text}");
        }
    }
}
