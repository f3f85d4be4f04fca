//! Writes the fields that describe a dead letter: our own fields, and those that several formats
//! share.
//!
//! This module is separate because all formats have these fields, in two forms. The namespace
//! format has our own fields in the object `deadletterProperties`. All other formats have them in
//! one string, `lastmile`, because CloudEvents attributes cannot be objects.

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

/// Name of the member with our own fields, as JSON in a string.
pub(crate) const LASTMILE: &str = "lastmile";

/// Name of the member that describes the failed delivery to a sink.
pub(crate) const SINK: &str = "sink";

/// Name of the member that marks the failed delivery of a reply, with the value `reply`. Omitted
/// for a delivery to the subscription's destination. The log field `leg` has the same value.
pub(crate) const LEG: &str = "leg";

/// Name of the member with the schema of the event. Present only if a reader would derive a
/// different schema from the text of the event alone. Without it, a replay of a custom or opaque
/// event could deliver the event in a different form.
pub(crate) const SHAPE: &str = "shape";

/// The content of a blob: a dead letter, and the reason why it is stored in this container.
#[derive(Clone, Copy)]
pub(super) struct BlobFields<'a> {
    /// The dead letter. Its event has the form in which the blob shows it.
    pub(super) letter: &'a DeadLetter,
    /// The event as JSON in the publisher's spelling; `None` if the blob shows the event as text.
    pub(super) json: Option<&'a RawValue>,
    pub(super) published: &'a Event,
    /// The reason why the dead letter is not in the container of its subscription.
    pub(super) sink_error: Option<&'a str>,
    /// The field from which a reader of the blob restores the published event.
    pub(super) original: Original,
}

/// The field from which a reader of a blob restores the published event.
#[derive(Clone, Copy)]
pub(super) enum Original {
    /// The event that the blob shows.
    Shown,
    /// An additional member with the published text. It is needed because a member of the event was
    /// replaced.
    Text,
    /// An additional member with the published text in base64. It is needed because characters of
    /// the event were replaced.
    Base64,
}

/// Names of the five fields that all Event Grid formats share.
pub(super) struct FieldNames {
    pub(super) reason: &'static str,
    pub(super) attempts: &'static str,
    pub(super) outcome: &'static str,
    pub(super) published: &'static str,
    pub(super) attempted: &'static str,
}

impl FieldNames {
    /// Returns all member names that a format adds: these five, the status and [`LASTMILE`].
    pub(super) const fn reserved(&self, status: &'static str) -> [&'static str; 7] {
        [self.reason, self.attempts, self.outcome, self.published, self.attempted, status, LASTMILE]
    }
}

impl BlobFields<'_> {
    /// Returns the white space before and after an event that is written as JSON; `None` without
    /// white space.
    fn around(&self) -> Option<[&str; 2]> {
        let (text, json) = (self.letter.delivery.event.text(), self.json?.get());
        let (before, after) = text.split_once(json)?;
        (text.len() > json.len()).then_some([before, after])
    }

    /// Returns the newest attempt; `None` if no attempt was made.
    pub(super) fn newest(&self) -> Option<&Entry> {
        self.letter.delivery.history.newest_attempt()
    }

    /// Writes the five shared fields under these names. Without an attempt, it omits the outcome
    /// and the time of the last attempt.
    pub(super) fn common(&self, object: &mut Object, names: &FieldNames, reason: &str) {
        let (delivery, newest) = (&self.letter.delivery, self.newest());
        object.text(names.reason, reason);
        object.put(names.attempts, &delivery.attempts);
        object.optional(names.outcome, newest.map(|attempt| attempt.outcome.to_string()));
        object.text(names.published, &moment::rfc3339(delivery.published_ms));
        object.optional(names.attempted, newest.map(|attempt| moment::rfc3339(attempt.at_ms)));
    }

    /// Writes the HTTP status of the last attempt, if there was a response.
    pub(super) fn status(&self, object: &mut Object, name: &str) {
        object.optional(name, self.newest().and_then(|attempt| attempt.status));
    }

    pub(super) fn own(&self, object: &mut Object) {
        let DeadLetter { delivery, reason, detail, destination, decided_ms, .. } = self.letter;
        // A dead letter that is sent to a sink has no key, so it contains the id.
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

    /// Writes the shared fields, and [`LASTMILE`] with all other fields. `published` describes the
    /// published form of an event that is shown in a different schema.
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

/// Writes headers as a JSON list of pairs, because a name may occur twice.
fn headers(headers: &[(String, String)]) -> String {
    serde_json::to_string(headers).unwrap_or_default()
}

/// Writes the last failure of the destination, which other deliveries encountered, as a JSON
/// object.
fn destination_state(failing: &FailingDestination) -> String {
    let FailingDestination { since_ms, outcome, status, detail } = failing;
    let mut object = Object::default();
    object.text("since", &moment::rfc3339(*since_ms));
    object.text("outcome", outcome);
    object.optional("status", *status);
    object.optional("detail", detail.as_deref());
    object.finish()
}

/// Writes the failed delivery to the sink as a JSON object.
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

/// Writes the beginning of the last response body: as text if it is UTF-8, otherwise in base64.
fn response(object: &mut Object, last_response: Option<&[u8]>) {
    let Some(response) = last_response else { return };
    match std::str::from_utf8(whole_characters(response)) {
        Ok(text) => object.text("lastresponse", text),
        Err(_) => object.text("lastresponse_base64", &STANDARD.encode(response)),
    }
}

/// Removes an incomplete UTF-8 character at the end, which the size limit has split.
pub(super) fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        // An error without a length means that the text ends within a character.
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Writes a history as a JSON list.
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
