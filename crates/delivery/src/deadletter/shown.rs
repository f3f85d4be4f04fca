//! Decides how the event of a dead letter is shown in its blob.
//!
//! This module is separate from the formats, because every blob has to be readable: one event that
//! a reader refuses would hide all dead letters of its folder. JSON is shown as it was published.
//! U+FFFD replaces unpaired surrogates, and the published bytes are then stored in base64 too, so
//! that a replay sends exactly these bytes.
//! Malformed events, text, and JSON that is nested too deeply are shown as one string.

use std::borrow::Cow;

use super::fields::{BlobFields, Original};
use crate::delivery::DeadLetter;
use crate::delivery::reason::Reason;
use crate::event::portable::portable;
use crate::event::{Event, Shape};

/// A dead letter whose event has the form in which the blob shows it.
pub(super) struct Shown<'a> {
    letter: Cow<'a, DeadLetter>,
    published: &'a Event,
    is_json: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn new(letter: &'a DeadLetter) -> Self {
        let published = &letter.delivery.event;
        let is_event =
            published.shape() != Shape::Opaque && letter.reason != Reason::MalformedEvent;
        let portable = is_event.then(|| portable(published.text())).flatten();
        let is_json = portable.is_some();
        let letter = match portable {
            Some(Cow::Owned(text)) => {
                let mut shown = letter.clone();
                shown.delivery.event = published.with_text(&text);
                Cow::Owned(shown)
            }
            Some(Cow::Borrowed(_)) | None => Cow::Borrowed(letter),
        };
        Self { letter, published, is_json }
    }

    /// Returns the fields that the formats write. `sink_error` is the reason why the dead letter is
    /// not in the container of its subscription.
    pub(super) fn fields<'s>(&'s self, sink_error: Option<&'s str>) -> BlobFields<'s> {
        let text = self.letter.delivery.event.text();
        let json = self.is_json.then(|| serde_json::from_str(text).ok()).flatten();
        let original = match self.letter {
            Cow::Owned(_) => Original::Base64,
            Cow::Borrowed(_) => Original::Shown,
        };
        BlobFields { letter: &self.letter, json, published: self.published, sink_error, original }
    }
}
