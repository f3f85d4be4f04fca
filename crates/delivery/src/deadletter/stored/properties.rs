//! Reads the fields about a dead letter, whatever their names.
//!
//! This module is separate because a field has a different name in each format (`deliveryresult`,
//! `lastDeliveryOutcome`, `lastdeliveryoutcome`). A missing or invalid field must not make the dead
//! letter unreadable.

use std::borrow::Cow;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::key::KeyParts;
use super::letter::{StoredAttempt, StoredDeadLetter, StoredSink};
use crate::deadletter::{
    AROUND, EVENT_IS, IN_DATA, JSON, LEG, ORIGINAL, ORIGINAL_BASE64, PUBLISHED, SHAPE, SINK,
};
use crate::delivery::outcome::Outcome;
use crate::delivery::replay::Replay;
use crate::delivery::{Addresses, DeliveryTarget, FailingDestination};
use crate::event::path::scalar;
use crate::event::{Event, Input, Members, Shape};
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::time::moment;

pub(super) struct Properties<'a> {
    /// Our own fields; if the format has a separate object for fields, all members of that object.
    own: Members<'a>,
    /// Name and value of each member that a flat format added to the event.
    added: Vec<(&'a str, &'a str)>,
}

/// The published form of an event that the blob shows in a different schema.
pub(super) enum Published {
    /// The published event is the value of `data`.
    InData,
    /// The published event is the first text, then the value of `data`, then the second text.
    AroundData(String, String),
}

impl<'a> Properties<'a> {
    /// Reads the fields of a format that has them in a separate object.
    pub(super) fn of_object(text: &'a str) -> Result<Self, String> {
        if !text.starts_with('{') {
            return Err("the properties of the dead letter are not an object".to_owned());
        }
        let own = Members::parse(text).map_err(|error| error.to_string())?;
        Ok(Self { own, added: Vec::new() })
    }

    /// Reads the fields of a flat format: those added to the event's object, and our own.
    pub(super) fn of_flat_event(members: &'a Members<'_>, reserved: &[&str], own: &'a str) -> Self {
        let added = members.iter().filter(|(name, _)| reserved.contains(name)).collect();
        Self { own: Members::parse(own).unwrap_or_default(), added }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let added = || self.added.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
        self.own.get(name).or_else(added)
    }

    /// Tries these field names in order, and converts the first value that is a string, a number or
    /// a boolean to text.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name).and_then(scalar)).map(Cow::into_owned)
    }

    fn number<T: FromStr>(&self, names: &[&str]) -> Option<T> {
        self.first(names).and_then(|text| text.parse().ok())
    }

    fn moment(&self, names: &[&str]) -> Option<u64> {
        self.first(names).and_then(|text| moment::parse(&text))
    }

    /// Returns the published event if the blob contains it separately.
    pub(super) fn original_text(&self) -> Option<String> {
        let base64 = self.own.text(ORIGINAL_BASE64);
        let bytes = base64.and_then(|base64| STANDARD.decode(base64.as_bytes()).ok());
        let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.or_else(|| self.own.text(ORIGINAL).map(Cow::into_owned))
    }

    /// Returns the white space before and after the published event.
    pub(super) fn around(&self) -> [String; 2] {
        let around = self.own.get(AROUND).and_then(|raw| serde_json::from_str(raw).ok());
        around.unwrap_or_default()
    }

    /// Returns the published form of an event that the blob shows in a different schema.
    pub(super) fn published(&self) -> Option<Published> {
        let reported = self.own.get(PUBLISHED)?;
        if self.own.text(PUBLISHED).as_deref() == Some(IN_DATA) {
            return Some(Published::InData);
        }
        let [before, after]: [String; 2] = serde_json::from_str(reported).ok()?;
        Some(Published::AroundData(before, after))
    }

    /// True if a string in `event` was published as a JSON string. False if the string contains
    /// text that is not JSON.
    pub(super) fn event_is_json(&self) -> bool {
        self.own.text(EVENT_IS).as_deref() == Some(JSON)
    }

    /// Creates the stored dead letter with this event.
    pub(super) fn letter(
        &self,
        key_parts: &KeyParts<'_>,
        event: String,
    ) -> Result<StoredDeadLetter, String> {
        let reason =
            ["deadletterreasoncode", "deadletterreason", "deadLetterReason", "errorreason"];
        let (history, omitted) = self.history();
        let newest =
            history.iter().rev().find(|attempt| attempt.outcome != Outcome::Probation.as_str());
        let reported = ["deliveryresult", "lastDeliveryOutcome", "lastdeliveryoutcome"];
        let at = ["deliveryattemptutc", "lastDeliveryAttemptTime", "lastdeliveryattempttime"];
        let recalled = Event::recall(&event.as_str().into(), Input::Auto);
        let members = recalled.members();
        let [event_id, event_type, source] = [members.id(), members.event_type(), members.source()];
        Ok(StoredDeadLetter {
            id: key_parts.id,
            key: key_parts.key.to_owned(),
            subscription: key_parts.subscription.clone(),
            reason: self.first(&reason).unwrap_or_default(),
            outcome: self
                .first(&reported)
                .or_else(|| newest.map(|attempt| attempt.outcome.clone())),
            status: self
                .number(&["lasthttpstatuscode", "lastHttpStatusCode"])
                .or_else(|| self.of_knative("knativeerrorcode")?.parse().ok()),
            attempts: self
                .number(&["deliveryattempts", "deliveryAttempts", "errorretry"])
                .unwrap_or(0),
            published_ms: self.moment(&["publishutc", "publishTime", "publishtime"]),
            decided_ms: self.moment(&["decidedutc"]),
            last_attempt_ms: self.moment(&at).or_else(|| newest.map(|attempt| attempt.at_ms)),
            destination: self.first(&["destination", "errorsubscriberuri"]),
            last_response: self.last_response(),
            last_headers: self.last_headers(),
            failing: self.failing(),
            detail: self.first(&["deadletterdetail"]),
            sink_error: self.first(&["sinkerror"]),
            sink: self.sink(),
            traceparent: self.first(&["traceparent"]),
            replay: self.replay(),
            shape: self
                .own
                .text(SHAPE)
                .and_then(|word| Shape::ALL.into_iter().find(|shape| shape.as_str() == word)),
            is_reply: self.own.text(LEG).as_deref() == Some(DeliveryTarget::Reply.as_str()),
            format: Format::Namespace,
            layout: Layout::Nested,
            mapped: None,
            addresses: self.addresses(),
            headers: Vec::new(),
            event_id: event_id.map(Into::into),
            event_type: event_type.map(Into::into),
            source: source.map(Into::into),
            event,
            history,
            omitted,
        })
    }

    fn replay(&self) -> Option<Replay> {
        Replay::new(&self.first(&["replayjob"])?, self.number(&["replayof"])?)
    }

    fn last_response(&self) -> Option<String> {
        let base64 =
            || self.first(&["lastresponse_base64"]).map(|base64| format!("base64:{base64}"));
        self.first(&["lastresponse"])
            .or_else(base64)
            .or_else(|| self.of_knative("knativeerrordata"))
    }

    fn last_headers(&self) -> Vec<(String, String)> {
        let raw = self.own.get("lastresponseheaders");
        raw.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    /// Returns the last failure of the destination, found by other deliveries.
    fn failing(&self) -> Option<FailingDestination> {
        let state = Properties::of_object(self.own.get("destinationstate")?).ok()?;
        Some(FailingDestination {
            since_ms: state.moment(&["since"])?,
            outcome: state.first(&["outcome"])?,
            status: state.number(&["status"]),
            detail: state.first(&["detail"]),
        })
    }

    /// Returns the addresses that the Knative format contains. After a failure of the sink, the
    /// failed address has no query.
    fn addresses(&self) -> Option<Addresses> {
        let subscriber = self.first(&["errorsubscriberuri"])?;
        let failed = self.of_knative("knativeerrordest").or_else(|| self.first(&["destination"]));
        Some(Addresses { failed: failed.unwrap_or_else(|| subscriber.clone()), subscriber })
    }

    /// Returns a Knative field about the last request; `None` if that request went to a sink.
    fn of_knative(&self, name: &str) -> Option<String> {
        if self.own.get(SINK).is_some() { None } else { self.first(&[name]) }
    }

    /// Returns the failed delivery to the sink; `None` if there was none.
    fn sink(&self) -> Option<StoredSink> {
        let reported = Properties::of_object(self.own.get(SINK)?).ok()?;
        let (history, omitted) = reported.history();
        Some(StoredSink {
            destination: reported.first(&["destination"]),
            reason: reported.first(&["reason"]).unwrap_or_default(),
            detail: reported.first(&["detail"]),
            attempts: reported.number(&["deliveryattempts"]).unwrap_or(0),
            last_response: reported.last_response(),
            history,
            omitted,
        })
    }

    /// Returns the attempts and the number of omitted attempts. Invalid entries are ignored.
    fn history(&self) -> (Vec<StoredAttempt>, u32) {
        let raw = self.own.get("history").unwrap_or("[]");
        let entries: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
        let (mut attempts, mut omitted) = (Vec::new(), 0_u32);
        for entry in entries.into_iter().filter_map(|entry| Properties::of_object(entry.get()).ok())
        {
            omitted = omitted.saturating_add(entry.number(&["omitted"]).unwrap_or(0));
            attempts.extend(entry.attempt());
        }
        (attempts, omitted)
    }

    fn attempt(&self) -> Option<StoredAttempt> {
        Some(StoredAttempt {
            at_ms: self.moment(&["at"])?,
            outcome: self.first(&["outcome"])?,
            status: self.number(&["status"]),
            duration_ms: self.number(&["durationms"]).unwrap_or(0),
        })
    }
}
