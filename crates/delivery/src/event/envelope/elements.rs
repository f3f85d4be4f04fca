//! Splits the body of a record into the texts of its elements.
//!
//! This module is separate from decoding, because a large record is divided before its events are
//! decoded. An undecoded element needs little memory, because it usually borrows its text from the
//! body; a decoded event needs much more.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::s3;
use super::service::decode_text;
use crate::event::json::{array, without_mark};
use crate::event::{Element, Input, Malformed};

/// The undecoded elements of a record's body, in order. Each value of a JSON array is an element,
/// and so is each record of an S3 notification. Any other body, and every body of an opaque topic,
/// is one element.
#[derive(Debug)]
pub struct Elements<'a> {
    body: &'a Arc<str>,
    input: Input,
    texts: Vec<Cow<'a, str>>,
}

impl<'a> Elements<'a> {
    /// Splits a body into its elements. A byte order mark before JSON is skipped.
    ///
    /// # Errors
    /// [`Malformed::NotJson`] if the body begins like an array but is not valid JSON.
    pub fn parse(body: &'a Arc<str>, input: Input) -> Result<Self, Malformed> {
        let text = if input == Input::Opaque { body } else { without_mark(body) };
        let texts: Vec<&str> = if input != Input::Opaque && text.trim_start().starts_with('[') {
            let elements: Vec<&RawValue> = serde_json::from_str(text)
                .map_err(|error| Malformed::NotJson(error.to_string()))?;
            elements.into_iter().map(RawValue::get).collect()
        } else {
            vec![text]
        };
        let texts = match input {
            Input::S3 => texts.into_iter().flat_map(s3::records_of).collect(),
            Input::Auto
            | Input::CloudEvents
            | Input::EventGrid
            | Input::Custom
            | Input::Opaque
            | Input::Sns
            | Input::SnsWhole
            | Input::EventBridge => texts.into_iter().map(Cow::Borrowed).collect(),
        };
        Ok(Self { body, input, texts })
    }

    /// Returns the number of elements. It is always 1 for an opaque topic, and for a body that is
    /// neither an array nor an S3 notification.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns true if the body is an empty array.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Decodes the element with this index.
    ///
    /// # Panics
    /// If the index is out of range.
    #[must_use]
    pub fn decode(&self, index: usize) -> Element {
        let text = &self.texts[index];
        // Most records contain one event, whose text is not copied.
        let is_whole = text.len() == self.body.len();
        let text = if is_whole { Arc::clone(self.body) } else { text.as_ref().into() };
        decode_text(&text, self.input)
    }

    /// Returns a body with the elements of this range, byte for byte. For the range of all
    /// elements, it is the original body.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn body_of(&self, range: Range<usize>) -> Arc<str> {
        if range == (0..self.len()) {
            return Arc::clone(self.body);
        }
        array(&self.texts[range]).into()
    }
}
