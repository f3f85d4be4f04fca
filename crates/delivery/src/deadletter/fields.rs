//! The fields about a dead letter: our own, and those that several formats share.
//!
//! Separate because the namespace format has our fields in its `deadletterProperties`, and all
//! others in one string, `lastmile`: CloudEvents allows no objects as attributes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use url::Url;

use super::flat::{AROUND, ORIGINAL, ORIGINAL_BASE64, PUBLISHED};
use crate::delivery::{
    DeadLetter, DeliveryTarget, Entry, FailingDestination, History, Returned, trace,
    truncated_detail,
};
use crate::event::json::Object;
use crate::event::{Event, Input};
use crate::subscription::display;
use crate::time::moment;

/// The member with our own fields, as JSON in a string.
pub(crate) const LASTMILE: &str = "lastmile";

/// The member about the failed delivery to a sink.
pub(crate) const SINK: &str = "sink";

/// The member that says what the delivery was, if it was not that of a published event to its destination. The
/// log field of this name has the same words.
pub(crate) const LEG: &str = "leg";

/// The member with the schema of an event whose text alone would be read as one of another.
pub(crate) const SHAPE: &str = "shape";

/// A dead letter, and why it is stored where it is.
#[derive(Clone, Copy)]
pub(super) struct BlobFields<'a> {
    /// The dead letter, with its event as it is shown.
    pub(super) letter: &'a DeadLetter,
    /// The event as JSON in its own spelling; `None` where it is shown as text.
    pub(super) json: Option<&'a RawValue>,
    /// The event as it was published.
    pub(super) published: &'a Event,
    /// Why it is not in its own container.
    pub(super) sink_error: Option<&'a str>,
    /// The source from which a reader gets the published event.
    pub(super) original: Original,
}

/// The source from which a reader of a dead letter gets the published event.
#[derive(Clone, Copy)]
pub(super) enum Original {
    /// The event that it shows.
    Shown,
    /// The published text, once more: a member of the event was replaced.
    Text,
    /// The bytes of the published text, in base64: characters of the event were replaced.
    Base64,
}

/// The names of the five fields that all formats of Event Grid share.
pub(super) struct FieldNames {
    pub(super) reason: &'static str,
    pub(super) attempts: &'static str,
    pub(super) outcome: &'static str,
    pub(super) published: &'static str,
    pub(super) attempted: &'static str,
}

impl FieldNames {
    /// All names that a format adds: these, the status and our own fields.
    pub(super) const fn reserved(&self, status: &'static str) -> [&'static str; 7] {
        [self.reason, self.attempts, self.outcome, self.published, self.attempted, status, LASTMILE]
    }
}

impl BlobFields<'_> {
    /// The white space around an event that is written as JSON, if there is any.
    fn around(&self) -> Option<[&str; 2]> {
        let (text, json) = (self.letter.delivery.event.text(), self.json?.get());
        let (before, after) = text.split_once(json)?;
        (text.len() > json.len()).then_some([before, after])
    }

    /// The newest attempt, if there was one.
    pub(super) fn newest(&self) -> Option<&Entry> {
        self.letter.delivery.history.newest_attempt()
    }

    /// Writes the five common fields under these names; outcome and time of the last attempt only
    /// where there was one.
    pub(super) fn common(&self, object: &mut Object, names: &FieldNames, reason: &str) {
        let (delivery, newest) = (&self.letter.delivery, self.newest());
        object.text(names.reason, reason);
        object.put(names.attempts, &delivery.attempts);
        object.optional(names.outcome, newest.map(|attempt| attempt.outcome.to_string()));
        object.text(names.published, &moment::rfc3339(delivery.published_ms));
        object.optional(names.attempted, newest.map(|attempt| moment::rfc3339(attempt.at_ms)));
    }

    /// Writes the status of the last attempt, where there was an answer.
    pub(super) fn status(&self, object: &mut Object, name: &str) {
        object.optional(name, self.newest().and_then(|attempt| attempt.status));
    }

    /// Writes our own fields.
    pub(super) fn own(&self, object: &mut Object) {
        let DeadLetter { delivery, reason, detail, destination, decided_ms, .. } = self.letter;
        // A sink gets it without a key.
        object.put("deadletterid", &delivery.id);
        object.text("deadletterreasoncode", &reason.to_string());
        object.text("decidedutc", &moment::rfc3339(*decided_ms));
        object.text("subscription", &delivery.subscription.to_string());
        self.status(object, "lasthttpstatuscode");
        object.optional("destination", destination.as_deref());
        response(object, delivery.last_response.as_deref());
        if !delivery.last_headers.is_empty() {
            object.raw("lastresponseheaders", Some(&headers(&delivery.last_headers)));
        }
        object.raw("history", Some(&entries(&delivery.history)));
        if let Some(failing) = &delivery.failing {
            object.raw("destinationstate", Some(&destination_state(failing)));
        }
        object.optional("traceparent", trace::of_delivery(delivery).map(|trace| trace.parent));
        object.optional("deadletterdetail", detail.as_deref());
        if let Some(replay) = &delivery.replay {
            object.text("replayof", &replay.letter.to_string());
            object.text("replayjob", replay.job());
        }
        let sink_error = self.sink_error.or(self.letter.sink_error.as_deref());
        object.optional("sinkerror", sink_error.map(truncated_detail));
        if let Some(returned) = &self.letter.returned {
            object.raw(SINK, Some(&sink_failure(returned)));
        }
        match &delivery.target {
            DeliveryTarget::Reply => object.text(LEG, delivery.target.as_str()),
            DeliveryTarget::Destination | DeliveryTarget::Sink(_) => {}
        }
        let (text, shape) = (self.published.text(), self.published.shape());
        if Event::recall(text, Input::Auto).shape() != shape {
            object.text(SHAPE, shape.as_str());
        }
        match self.original {
            Original::Shown => object.optional(AROUND, self.around()),
            Original::Text => object.text(ORIGINAL, text),
            Original::Base64 => object.text(ORIGINAL_BASE64, &STANDARD.encode(text.as_bytes())),
        }
    }

    /// Adds the fields of the flat formats, and `lastmile` with what they have no name for; `published` says
    /// how an event was published that is shown in another schema.
    pub(super) fn flat(
        &self,
        object: &mut Object,
        names: &FieldNames,
        status: &str,
        published: Option<&str>,
    ) {
        self.common(object, names, &self.letter.reason.to_string());
        self.status(object, status);
        let mut own = Object::default();
        self.own(&mut own);
        own.raw(PUBLISHED, published);
        object.text(LASTMILE, &own.finish());
    }
}

/// Names and values of headers, as a JSON list of pairs: a name may occur twice.
fn headers(headers: &[(String, String)]) -> String {
    serde_json::to_string(headers).unwrap_or_default()
}

/// What the destination did to others, as a JSON object.
fn destination_state(failing: &FailingDestination) -> String {
    let FailingDestination { since_ms, outcome, status, detail } = failing;
    let mut object = Object::default();
    object.text("since", &moment::rfc3339(*since_ms));
    object.text("outcome", outcome);
    object.optional("status", *status);
    object.optional("detail", detail.as_deref());
    object.finish()
}

/// The failed delivery to the sink, as a JSON object.
fn sink_failure(returned: &Returned) -> String {
    let Returned { address, reason, detail, attempts, history, last_response } = returned;
    let mut object = Object::default();
    let url = address.as_deref().and_then(|address| Url::parse(address).ok());
    object.optional("destination", url.as_ref().map(display));
    object.text("reason", &reason.to_string());
    object.put("deliveryattempts", attempts);
    response(&mut object, last_response.as_deref());
    object.raw("history", Some(&entries(history)));
    object.optional("detail", detail.as_deref());
    object.finish()
}

/// Writes the beginning of the last answer's body: as text if it is UTF-8, else in base64.
fn response(object: &mut Object, last_response: Option<&[u8]>) {
    let Some(response) = last_response else { return };
    match std::str::from_utf8(whole_characters(response)) {
        Ok(text) => object.text("lastresponse", text),
        Err(_) => object.text("lastresponse_base64", &STANDARD.encode(response)),
    }
}

/// The bytes without a last character that the limit has split.
pub(super) fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        // Without a length the text ends within a character, as it does where the limit cuts.
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// A history as a JSON list.
fn entries(history: &History) -> String {
    let made = |entry: &Entry| {
        let mut attempt = Object::default();
        attempt.text("at", &moment::rfc3339(entry.at_ms));
        attempt.text("outcome", &entry.outcome.to_string());
        attempt.optional("status", entry.status);
        attempt.put("durationms", &entry.duration_ms);
        attempt.finish()
    };
    let omitted =
        (history.omitted() > 0).then(|| format!(r#"{{"omitted":{}}}"#, history.omitted()));
    let entries = history.first().iter().map(made).chain(omitted).chain(history.last().map(made));
    format!("[{}]", entries.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_cut_within_a_character_is_still_text() {
        assert_eq!(whole_characters("aö".as_bytes()), "aö".as_bytes());
        assert_eq!(whole_characters(&"aö".as_bytes()[..2]), b"a");
        assert_eq!(whole_characters(b"a\xffb"), b"a\xffb");
    }
}
