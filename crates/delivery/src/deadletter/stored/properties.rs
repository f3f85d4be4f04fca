//! What is said about an event, whatever the names of its fields.
//!
//! Separate because a fact has a name per format (`deliveryresult`, `lastDeliveryOutcome`,
//! `lastdeliveryoutcome`), and because a field that is not there, or is not what it should be, must
//! not hide the letter.

use std::str::FromStr;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Place, StoredAttempt, StoredDeadLetter, StoredSink};
use crate::deadletter::{EVENT_IS, IN_DATA, JSON, ORIGINAL, PUBLISHED, SINK};
use crate::delivery::outcome::Outcome;
use crate::event::path::scalar;
use crate::event::{Event, Input, Members};
use crate::time::moment;

/// The fields of a letter, by name.
pub(super) struct Properties<'a> {
    /// Our own, and everything where the letter has an object of its own.
    own: Members<'a>,
    /// What the format adds beside the members of the event.
    added: Vec<(&'a str, &'a str)>,
}

/// How an event was published that is shown in another schema.
pub(super) enum Published<'a> {
    /// It is what stands in `data`.
    InData,
    /// These are its members beside `data`.
    Beside(&'a str),
}

impl<'a> Properties<'a> {
    /// The fields of an object that is about the letter alone.
    pub(super) fn of_object(text: &'a str) -> Result<Self, String> {
        if !text.starts_with('{') {
            return Err("what is said about the event is no object".to_owned());
        }
        let own = Members::parse(text).map_err(|error| error.to_string())?;
        Ok(Self { own, added: Vec::new() })
    }

    /// The added fields of an object that it shares with the event, and our own.
    pub(super) fn beside_event(members: &'a Members<'_>, reserved: &[&str], ours: &'a str) -> Self {
        let added = members.iter().filter(|(name, _)| reserved.contains(name)).collect();
        Self { own: Members::parse(ours).unwrap_or_default(), added }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let added = || self.added.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        self.own.get(name).or_else(added)
    }

    /// The text, number or boolean of the first of these names that has one.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name).and_then(scalar))
    }

    fn number<T: FromStr>(&self, names: &[&str]) -> Option<T> {
        self.first(names).and_then(|text| text.parse().ok())
    }

    fn moment(&self, names: &[&str]) -> Option<u64> {
        self.first(names).and_then(|text| moment::parse(&text))
    }

    /// The members of the event that were replaced.
    pub(super) fn original(&self) -> Members<'a> {
        self.own.get(ORIGINAL).and_then(|raw| Members::parse(raw).ok()).unwrap_or_default()
    }

    /// How the event was published, where it is shown in another schema.
    pub(super) fn published(&self) -> Option<Published<'a>> {
        let told = self.own.get(PUBLISHED)?;
        let in_data = self.own.text(PUBLISHED).as_deref() == Some(IN_DATA);
        let beside = || Some(told).filter(|told| told.starts_with('{')).map(Published::Beside);
        if in_data { Some(Published::InData) } else { beside() }
    }

    /// Whether an event that stands there as a string was published as one.
    pub(super) fn event_is_json(&self) -> bool {
        self.own.text(EVENT_IS).as_deref() == Some(JSON)
    }

    /// The letter about this event.
    pub(super) fn letter(
        &self,
        place: &Place<'_>,
        event: String,
    ) -> Result<StoredDeadLetter, String> {
        let id: Option<Uuid> = self.number(&["deadletterid"]);
        let id = id.or(place.guid).ok_or("neither a deadletterid nor a GUID in the key")?;
        let reason =
            ["deadletterreasoncode", "deadletterreason", "deadLetterReason", "errorreason"];
        let (history, omitted) = self.history();
        let newest =
            history.iter().rev().find(|attempt| attempt.outcome != Outcome::Probation.as_str());
        let told = ["deliveryresult", "lastDeliveryOutcome", "lastdeliveryoutcome"];
        let at = ["deliveryattemptutc", "lastDeliveryAttemptTime", "lastdeliveryattempttime"];
        let recalled = Event::recall(&event.as_str().into(), Input::Auto);
        let members = recalled.members();
        let [event_id, event_type, source] = [members.id(), members.event_type(), members.source()];
        Ok(StoredDeadLetter {
            id,
            key: place.key.to_owned(),
            subscription: place.subscription.clone(),
            reason: self.first(&reason).unwrap_or_default(),
            outcome: self.first(&told).or_else(|| newest.map(|attempt| attempt.outcome.clone())),
            status: self
                .number(&["lasthttpstatuscode", "lastHttpStatusCode"])
                .or_else(|| self.of_knative("knativeerrorcode")?.parse().ok()),
            attempts: self
                .number(&["deliveryattempts", "deliveryAttempts", "errorretry"])
                .unwrap_or(0),
            published_ms: self.moment(&["publishutc", "publishTime", "publishtime"]),
            last_attempt_ms: self.moment(&at).or_else(|| newest.map(|attempt| attempt.at_ms)),
            destination: self.first(&["destination", "errorsubscriberuri"]),
            last_response: self.last_response(),
            detail: self.first(&["deadletterdetail"]),
            sink_error: self.first(&["sinkerror"]),
            sink: self.sink(),
            traceparent: self.first(&["traceparent"]),
            headers: Vec::new(),
            event_id: event_id.map(Into::into),
            event_type: event_type.map(Into::into),
            source: source.map(Into::into),
            event,
            history,
            omitted,
        })
    }

    fn last_response(&self) -> Option<String> {
        let base64 =
            || self.first(&["lastresponse_base64"]).map(|base64| format!("base64:{base64}"));
        self.first(&["lastresponse"])
            .or_else(base64)
            .or_else(|| self.of_knative("knativeerrordata"))
    }

    /// What Knative tells of the last request, unless that went to a sink.
    fn of_knative(&self, name: &str) -> Option<String> {
        if self.own.get(SINK).is_some() { None } else { self.first(&[name]) }
    }

    /// How the letter fared at a sink that did not take it.
    fn sink(&self) -> Option<StoredSink> {
        let told = Properties::of_object(self.own.get(SINK)?).ok()?;
        let (history, omitted) = told.history();
        Some(StoredSink {
            destination: told.first(&["destination"]),
            reason: told.first(&["reason"]).unwrap_or_default(),
            detail: told.first(&["detail"]),
            attempts: told.number(&["deliveryattempts"]).unwrap_or(0),
            last_response: told.last_response(),
            history,
            omitted,
        })
    }

    /// The attempts, and how many were left out. What is no attempt is passed over.
    fn history(&self) -> (Vec<StoredAttempt>, u32) {
        let raw = self.own.get("history").unwrap_or("[]");
        let entries: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
        let (mut attempts, mut omitted) = (Vec::new(), 0);
        for entry in entries.into_iter().filter_map(|entry| Properties::of_object(entry.get()).ok())
        {
            omitted += entry.number(&["omitted"]).unwrap_or(0);
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
