//! `deadLetter`: what becomes of a delivery that ends without success.
//!
//! Separate because `none` is a word with consequences: it stands in place of the mapping, is warned about, and is
//! undone by a Subscription that says anything else about dead letters.

use crate::deadletter::{Format, Layout};
use crate::duration::{DAY_MS, MINUTE_MS};
use crate::profile::Profile;
use crate::subscription::{DeadLetterPolicy, Sink};

use super::super::destinations::{Destinations, Resolved, Target};
use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Fields};

/// The longest delay of one message.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html>
const DELAY_MAX_MS: u64 = 15 * MINUTE_MS;
/// The longest time to keep trying: a try every five minutes, and a queue gives a message up after 1,000 receives.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>
const KEEP_TRYING_MAX_MS: u64 = 3 * DAY_MS;

/// What a document says about dead letters.
#[derive(Clone)]
pub(super) enum DeadLetterSettings {
    /// `none`: dropped.
    Dropped,
    /// Stored.
    Stored(Storing),
}

/// What a document says about how dead letters are stored.
#[derive(Clone, Default)]
pub(super) struct Storing {
    sink: Option<Sink>,
    format: Option<Format>,
    layout: Option<Layout>,
    delay_ms: Option<u64>,
    keep_trying_for_ms: Option<u64>,
}

impl Default for DeadLetterSettings {
    fn default() -> Self {
        Self::Stored(Storing::default())
    }
}

impl DeadLetterSettings {
    /// Reads `none` or the fields of the mapping.
    pub(super) fn read(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Self> {
        if cursor.is_mapping() {
            return cursor.mapping(|fields| Self::Stored(Storing::read(fields, destinations)));
        }
        match cursor.peek_text() {
            Some("none") => {
                let message = Message::new("events that cannot be delivered are dropped");
                cursor.warn(message.help("leave deadLetter out to keep them in the default container"));
                return Some(Self::Dropped);
            }
            Some(other) => cursor.error(format!("expected none or a mapping, found {}", quoted(other))),
            None => cursor.error("expected none or a mapping"),
        }
        None
    }

    /// These, and the other's where these say nothing.
    pub(super) fn over(self, base: &Self) -> Self {
        match (self, base) {
            (Self::Stored(own), Self::Stored(base)) => Self::Stored(own.over(base)),
            (own @ (Self::Dropped | Self::Stored(_)), Self::Dropped | Self::Stored(_)) => own,
        }
    }

    /// The policy, with defaults filled in.
    pub(super) fn complete(self, profile: &Profile) -> DeadLetterPolicy {
        let (storing, dropped) = match self {
            Self::Dropped => (Storing::default(), true),
            Self::Stored(storing) => (storing, false),
        };
        DeadLetterPolicy {
            sink: if dropped { Sink::None } else { storing.sink.unwrap_or(Sink::DefaultContainer) },
            format: storing.format.unwrap_or(Format::Namespace),
            layout: storing.layout.unwrap_or(Layout::Nested),
            delay_ms: storing.delay_ms.unwrap_or(0),
            keep_trying_for_ms: storing.keep_trying_for_ms.unwrap_or(profile.keep_trying_for_ms),
        }
    }
}

impl Storing {
    fn read(fields: &Fields<'_>, destinations: &Destinations<'_>) -> Self {
        if let Some(per_blob) = fields.get("eventsPerBlob")
            && per_blob.integer(1..=u32::MAX).is_some_and(|events| events > 1)
        {
            per_blob.unsupported("eventsPerBlob above 1");
        }
        if let Some(error_data) = fields.get("errorData") {
            error_data.choice("errorData", &[("text", Some(())), ("base64", None)]);
        }
        let formats = [
            ("namespace", Some(Format::Namespace)),
            ("eventgrid", None),
            ("cloudevents", None),
            ("custom", None),
            ("knative", None),
        ];
        let layouts = [("nested", Some(Layout::Nested)), ("flat", None)];
        let keep_trying = fields.get("keepTryingFor");
        Self {
            sink: fields.get("sink").and_then(|cursor| sink(&cursor, destinations)),
            format: fields.get("format").and_then(|cursor| cursor.choice("format", &formats)),
            layout: fields.get("layout").and_then(|cursor| cursor.choice("layout", &layouts)),
            delay_ms: fields.get("delay").and_then(|cursor| cursor.duration_ms(0..=DELAY_MAX_MS)),
            keep_trying_for_ms: keep_trying.and_then(|cursor| cursor.duration_ms(MINUTE_MS..=KEEP_TRYING_MAX_MS)),
        }
    }

    fn over(self, base: &Self) -> Self {
        Self {
            sink: self.sink.or_else(|| base.sink.clone()),
            format: self.format.or(base.format),
            layout: self.layout.or(base.layout),
            delay_ms: self.delay_ms.or(base.delay_ms),
            keep_trying_for_ms: self.keep_trying_for_ms.or(base.keep_trying_for_ms),
        }
    }
}

fn sink(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Sink> {
    if cursor.is_mapping() {
        cursor.unsupported("a sink that refers to an object");
        return None;
    }
    match destinations.resolve(cursor.text()?, cursor) {
        Resolved::Target(Target::Container(container)) => return Some(Sink::Container(container)),
        Resolved::Target(Target::Endpoint(_)) => cursor.unsupported("an HTTP address as a sink"),
        Resolved::Reported => {}
        Resolved::Unknown => {
            let message = Message::new("neither a container nor a key of a Destinations document");
            cursor.error(message.help("s3://bucket or s3://bucket/prefix"));
        }
    }
    None
}
