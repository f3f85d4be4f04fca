//! Reads the dead letter of a blob: finds its format, its event and the fields about the failure.
//!
//! This module is separate because only the members of a blob reveal its format. The nested layout
//! has the event in a member of its own, and the custom format has it in `data`. In all other
//! formats, the event's members come first in the object, and the added fields follow.

use serde_json::Value;

use super::key::KeyParts;
use super::letter::StoredDeadLetter;
use super::properties::{Properties, Published};
use crate::deadletter::{EVENT, HEADERS, IN_DATA, LASTMILE, PROPERTIES, RESERVED};
use crate::event::Members;
use crate::event::json::Object;
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{Format, Layout};

/// Accepted names of the properties object in the namespace format. Blobs are written with the
/// first name.
const SPELLINGS: [&str; 3] = [PROPERTIES, "deadLetterProperties", "brokerProperties"];

pub(super) struct Element<'a> {
    members: &'a Members<'a>,
    /// Names of the members that the format added to the event.
    added: Vec<&'static str>,
    format: Format,
    layout: Layout,
    fields: Properties<'a>,
}

impl<'a> Element<'a> {
    /// Determines the format of a blob with these members. `own` is the text of the member
    /// [`LASTMILE`].
    pub(super) fn from_members(members: &'a Members<'a>, own: &'a str) -> Result<Self, String> {
        // Searches from the end, because added members come after those of the event, which may
        // have the same names.
        let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        for name in names.into_iter().rev() {
            if let Some(spelling) = SPELLINGS.into_iter().find(|spelling| *spelling == name) {
                return Self::of_namespace(members, spelling);
            }
            let added = |names: &&(Format, &'static [&'static str])| names.1.contains(&name);
            if let Some((format, reserved)) =
                RESERVED.iter().filter(|_| name != LASTMILE).find(added)
            {
                // In Event Grid's custom schema the payload comes last, after the facts about the
                // failure.
                let is_custom = members.iter().last().is_some_and(|(name, _)| name == IN_DATA);
                return Ok(Self {
                    members,
                    added: reserved.to_vec(),
                    format: if is_custom { Format::Custom } else { *format },
                    layout: Layout::Nested,
                    fields: Properties::of_flat_event(members, reserved, own),
                });
            }
        }
        Err("the blob has neither deadletterProperties nor the fields of another dead-letter format"
            .to_owned())
    }

    fn of_namespace(members: &'a Members<'a>, fields: &'static str) -> Result<Self, String> {
        let added = vec![fields, HEADERS];
        let mut of_event = members.iter().filter(|(name, _)| !added.contains(name));
        let is_nested = members.get(EVENT).is_some() && of_event.all(|(name, _)| name == EVENT);
        Ok(Self {
            members,
            added,
            format: Format::Namespace,
            layout: if is_nested { Layout::Nested } else { Layout::Flat },
            fields: Properties::of_object(members.get(fields).unwrap_or_default())?,
        })
    }

    /// Returns the text of the published event. It is identical byte for byte if the blob preserves
    /// the published text.
    pub(super) fn event(&self) -> String {
        if let Some(text) = self.fields.original_text() {
            return text;
        }
        let data = || self.members.get(IN_DATA).unwrap_or_default();
        let event = match (self.format, self.layout, self.fields.published()) {
            (Format::Namespace, Layout::Nested, _) => self.nested(),
            (Format::Custom, _, _) | (_, _, Some(Published::InData)) => data().to_owned(),
            (_, _, Some(Published::AroundData(before, after))) => {
                format!("{before}{}{after}", data())
            }
            (_, _, None) => self.among_members(),
        };
        let [before, after] = self.fields.around();
        format!("{before}{event}{after}")
    }

    /// Returns the event of the nested layout: JSON in the publisher's spelling, or text that is
    /// not JSON.
    fn nested(&self) -> String {
        let event = self.members.get(EVENT).unwrap_or_default();
        match serde_json::from_str(event) {
            Ok(Value::String(text)) if !self.fields.event_is_json() => text,
            Ok(_) | Err(_) => event.to_owned(),
        }
    }

    /// Returns the JSON of an event that a flat layout mixes with members of the format. Omits these
    /// members.
    fn among_members(&self) -> String {
        let is_own = |name: &str| !self.added.contains(&name);
        let own = self.members.iter().take_while(|(name, _)| is_own(name)).count();
        let is_contiguous = self.members.iter().skip(own).all(|(name, _)| !is_own(name));
        if is_contiguous {
            return self.members.first(own);
        }
        let mut event = Object::default();
        let own = self.members.iter().filter(|(name, _)| is_own(name));
        own.for_each(|(name, value)| event.raw(name, Some(value)));
        event.finish()
    }

    pub(super) fn letter(&self, key_parts: &KeyParts<'_>) -> Result<StoredDeadLetter, String> {
        let mut letter = self.fields.letter(key_parts, self.event())?;
        let text = |name: &str| self.members.text(name).map(Into::into);
        if self.format == Format::Custom {
            [letter.event_id, letter.event_type, letter.source] =
                ["id", "eventType", "topic"].map(text);
        }
        if self.format == Format::Namespace {
            letter.headers = headers(self.members.get(HEADERS));
        }
        (letter.format, letter.layout, letter.mapped) = (self.format, self.layout, self.mapped());
        Ok(letter)
    }

    /// Returns the mapped attributes of a custom event; `None` if the blob does not contain them.
    fn mapped(&self) -> Option<Mapped> {
        let is_data = matches!(self.fields.published(), Some(Published::InData));
        let text = |name: &str| self.members.text(name).map(String::from);
        let mapped = |names: [&str; 6]| {
            let [id, topic, event_time, event_type, subject, data_version] = names.map(text);
            let (id, topic, event_time) = (id?, topic?, event_time?);
            Some(Mapped { id, topic, event_time, event_type, subject, data_version })
        };
        match self.format {
            Format::Custom => {
                mapped(["id", "topic", "eventTime", "eventType", "subject", "dataVersion"])
            }
            Format::EventGrid if is_data => {
                mapped(["id", "topic", "eventTime", "eventType", "subject", "dataVersion"])
            }
            Format::CloudEvents | Format::Knative if is_data => {
                mapped(["id", "source", "time", "type", "subject", "dataversion"])
            }
            Format::Namespace | Format::EventGrid | Format::CloudEvents | Format::Knative => None,
        }
    }
}

fn headers(raw: Option<&str>) -> Vec<(String, String)> {
    let members = raw.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let text = |name: &str, value: &str| {
        (name.to_owned(), members.text(name).map_or(value.to_owned(), Into::into))
    };
    members.iter().map(|(name, value)| text(name, value)).collect()
}
