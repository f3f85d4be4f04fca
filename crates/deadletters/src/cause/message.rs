//! What a response says went wrong: the few texts in its body that name the cause, as they were written.
//!
//! Separate from [`super::template`], which decides what in a text varies from one response to the next;
//! this decides which text counts. Pure.
//!
//! Promises: any text is read, also one that was cut anywhere, since only the beginning of a response is kept.
//! Does not interpret what it finds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a response says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The code of a JSON body.
    pub(super) code: Option<String>,
    /// Its other texts, or the title of a page, or a first line; none of an empty body.
    pub(super) texts: Vec<String>,
}

/// Reads a kept response: text, or `base64:` and encoded bytes.
pub(super) fn read(response: &str) -> Message {
    let decoded = response.strip_prefix("base64:").and_then(|text| STANDARD.decode(text).ok());
    let decoded = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let body = decoded.as_deref().unwrap_or(response).trim_start_matches('\u{feff}').trim();
    // A cut within a character leaves a part of it, which is also why it was encoded.
    let body = body.trim_end_matches('\u{fffd}');
    let json = || body.starts_with(['{', '[', '"']).then(|| json(body)).filter(Message::is_any);
    let page = || body.starts_with('<').then(|| page(body)).flatten().map(Message::text);
    json().or_else(page).or_else(|| first_line(body).map(Message::text)).unwrap_or_default()
}

/// The first line that is not empty.
pub(super) fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(ToOwned::to_owned)
}

impl Message {
    fn text(text: String) -> Self {
        Self { code: None, texts: vec![text] }
    }

    fn is_any(&self) -> bool {
        self.code.is_some() || !self.texts.is_empty()
    }
}

/// The title of a page, else its first line of text, without markup. XML is read alike.
fn page(body: &str) -> Option<String> {
    // Only ASCII changes, so positions are the same.
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let at = at + lower.get(at..)?.find('>')? + 1;
        let rest = lower.get(at..)?;
        body.get(at..at + rest.find("</title").unwrap_or(rest.len()))
    });
    title.and_then(first_line).or_else(|| first_line(&without_tags(body)))
}

fn without_tags(body: &str) -> String {
    let mut is_tag = false;
    let text = body.chars().filter_map(|c| {
        is_tag = (is_tag || c == '<') && c != '>';
        (!is_tag).then_some(if c == '>' { ' ' } else { c })
    });
    text.collect()
}

/// The members that say what went wrong, in the order in which they are shown: those of RFC 9457 and of
/// what common frameworks write, at the top or in `error`.
const MEMBERS: [&str; 5] = ["code", "title", "error", "message", "detail"];
const CODE: usize = 0;
const MESSAGE: usize = 3;

type Found = [Option<String>; MEMBERS.len()];

fn json(body: &str) -> Message {
    let mut found = Found::default();
    // The quotation mark ends a string that was cut; behind a whole value it is not looked at.
    let closed = format!("{body}\"");
    let mut json = serde_json::Deserializer::from_str(&closed);
    // The end may be missing: what was found before counts.
    let _ = Value { found: &mut found, member: MESSAGE }.deserialize(&mut json);
    let [code, texts @ ..] = found;
    Message { code, texts: texts.into_iter().flatten().collect() }
}

/// The index in [`MEMBERS`] of a member of a body; `None` of one that says nothing.
fn member(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "errors" | "msg" => Some(MESSAGE), // GraphQL and JSON:API, FastAPI
        name => MEMBERS.iter().position(|member| *member == name),
    }
}

/// Keeps the texts of a value, and of the objects in it, that are not known yet.
struct Value<'a> {
    found: &'a mut Found,
    member: usize,
}

impl Value<'_> {
    fn keep(self, text: &str) {
        if let (Some(text), Some(kept)) = (first_line(text), self.found.get_mut(self.member)) {
            kept.get_or_insert(text);
        }
    }

    fn keep_number(self, number: impl ToString) {
        if self.member == CODE {
            self.keep(&number.to_string());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.keep(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.keep_number(number);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.keep_number(number);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.keep_number(number);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    /// Of several errors the first counts.
    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        elements.next_element_seed(self)?;
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            match member(&name) {
                Some(member) => {
                    members.next_value_seed(Value { found: &mut *self.found, member })?;
                }
                None => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}
