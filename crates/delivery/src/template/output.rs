//! [`Encoding`]: how rendered text is escaped for each type of output. No value can break the
//! structure of the output.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded::byte_serialize;

use super::budget::{BUILT, Bounded};
use super::error::Fault;
use super::escape::push_json_text;
use super::limits::RENDERED_MAX_BYTES;
use super::value::Value;

/// Characters that are percent-encoded in a segment of a path: all except the unreserved characters
/// of RFC 3986, 2.3.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The type of a template's output, which determines how values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// The output is a body that is not JSON. Text is not escaped.
    Text,
    /// The output is the inside of a JSON string.
    JsonString,
    /// The output is a header value, which is checked after rendering.
    Header,
    /// The output is encoded like a value of an HTML form.
    Query,
    /// The output is a URL. Values are encoded as segments; the literal text is part of the URL.
    Path,
}

impl Encoding {
    /// Appends literal text of the template.
    ///
    /// # Errors
    ///
    /// Fails if the output is full or the fuel is used up.
    pub(super) fn push_text(self, text: &str, out: &mut Bounded<'_>) -> Result<(), Fault> {
        match self {
            Self::Text | Self::Header | Self::Path => out.push(text),
            Self::JsonString => push_json_text(text, out),
            Self::Query => byte_serialize(text.as_bytes()).try_for_each(|part| out.push(part)),
        }
    }

    /// Returns true if this type of output can represent a value. Headers, queries and paths cannot
    /// represent lists, objects and null.
    fn accepts(self, value: &Value<'_>) -> bool {
        match self {
            Self::Text | Self::JsonString => true,
            Self::Header | Self::Query | Self::Path => matches!(
                value,
                Value::Text(_) | Value::Built(_) | Value::Number(_) | Value::Boolean(_)
            ),
        }
    }

    /// Appends the value of an expression. A text is written without quotes, and any other value as
    /// JSON.
    ///
    /// # Errors
    ///
    /// Fails if the output is full, the fuel is used up, or the output cannot represent the value.
    pub(super) fn push_value(self, value: &Value<'_>, out: &mut Bounded<'_>) -> Result<(), Fault> {
        // The type is checked first, to avoid building the JSON of a large value.
        if !self.accepts(value) {
            let kind = value.kind();
            return Err(Fault::new(format!(
                "the value is {kind}; only a string, a number, true or false is allowed here"
            )));
        }
        if let Some(text) = value.as_text() {
            return self.push_value_text(text, out);
        }
        let mut json = Bounded::new(RENDERED_MAX_BYTES, BUILT, out.budget());
        value.write_json(&mut json, 0)?;
        self.push_value_text(&json.finish(), out)
    }

    fn push_value_text(self, text: &str, out: &mut Bounded<'_>) -> Result<(), Fault> {
        match self {
            Self::Text | Self::JsonString | Self::Header | Self::Query => self.push_text(text, out),
            Self::Path if text.is_empty() => {
                Err(Fault::new("the value is empty, but a path segment cannot be empty"))
            }
            Self::Path => utf8_percent_encode(text, SEGMENT).try_for_each(|part| out.push(part)),
        }
    }
}
