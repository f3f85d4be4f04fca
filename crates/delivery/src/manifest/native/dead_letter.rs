//! `deadLetter`: what happens to a delivery that ends without success.
//!
//! Separate because of `none`: it replaces the mapping, causes a warning, and is undone by a
//! Subscription with any other setting for dead letters.

use super::super::destinations::{ADDRESSES, Destinations, Resolved};
use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Fields};
use crate::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Format, Layout};
use crate::subscription::name::TopicName;
use crate::subscription::profile::Profile;
use crate::subscription::sink::Sink;
use crate::subscription::{DeadLetterPolicy, EVENTS_PER_BLOB_MAX};
use crate::time::duration::{DAY_MS, MINUTE_MS};

/// The longest delay of one message.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html>
const DELAY_MAX_MS: u64 = 15 * MINUTE_MS;
/// The longest time to retry: there is a try every five minutes, and a queue gives up a message
/// after 1,000 receives.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>
const KEEP_TRYING_MAX_MS: u64 = 3 * DAY_MS;

/// The form of a sink that is a topic, for messages.
const TOPIC_RULE: &str = "a topic in the files is {topic: namespace/topic}";

/// The dead-letter settings of a document.
#[derive(Clone)]
pub(super) enum DeadLetterSettings {
    /// `none`: dropped.
    Dropped,
    /// Stored.
    Stored(StorageSettings),
}

/// How a document wants dead letters to be stored.
#[derive(Clone, Default)]
pub(super) struct StorageSettings {
    sink: Option<Sink>,
    format: Option<Format>,
    layout: Option<Layout>,
    events_per_blob: Option<u32>,
    error_data: Option<ErrorData>,
    delay_ms: Option<u64>,
    keep_trying_for_ms: Option<u64>,
}

impl Default for DeadLetterSettings {
    fn default() -> Self {
        Self::Stored(StorageSettings::default())
    }
}

impl DeadLetterSettings {
    /// Reads `none` or the fields of the mapping.
    pub(super) fn read(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Self> {
        if cursor.is_mapping() {
            return cursor
                .mapping(|fields| Self::Stored(StorageSettings::read(fields, destinations)));
        }
        match cursor.peek_text() {
            Some("none") => {
                let message = Message::new("events that cannot be delivered are dropped");
                cursor.warn(
                    message.help("leave deadLetter out to store them in the default container"),
                );
                return Some(Self::Dropped);
            }
            Some(other) => {
                cursor.error(format!("expected none or a mapping, found {}", quoted(other)));
            }
            None => cursor.error("expected none or a mapping"),
        }
        None
    }

    /// These settings, with `base` where they say nothing.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        match (self, base) {
            (Self::Stored(own), Self::Stored(base)) => Self::Stored(own.with_fallback(base)),
            (own @ (Self::Dropped | Self::Stored(_)), Self::Dropped | Self::Stored(_)) => own,
        }
    }

    /// The policy, with defaults filled in.
    pub(super) fn complete(self, profile: &Profile) -> DeadLetterPolicy {
        let (storage, dropped) = match self {
            Self::Dropped => (StorageSettings::default(), true),
            Self::Stored(storage) => (storage, false),
        };
        let of_profile = DeadLetterPolicy::of(profile);
        DeadLetterPolicy {
            sink: if dropped { Sink::None } else { storage.sink.unwrap_or(of_profile.sink) },
            format: storage.format.map_or(of_profile.format, DeadLetterFormat::Fixed),
            layout: storage.layout.unwrap_or(of_profile.layout),
            error_data: storage.error_data.unwrap_or(of_profile.error_data),
            events_per_blob: storage.events_per_blob.unwrap_or(of_profile.events_per_blob),
            delay_ms: storage.delay_ms.unwrap_or(of_profile.delay_ms),
            keep_trying_for_ms: storage.keep_trying_for_ms.unwrap_or(of_profile.keep_trying_for_ms),
        }
    }
}

impl StorageSettings {
    fn read(fields: &Fields<'_>, destinations: &Destinations<'_>) -> Self {
        Self {
            sink: fields.read("sink", |at| sink(at, destinations)),
            format: fields.read("format", |at| at.word(&Format::ALL, Format::as_str)),
            layout: fields.read("layout", |at| at.word(&Layout::ALL, Layout::as_str)),
            events_per_blob: fields.read("eventsPerBlob", |at| at.integer(1..=EVENTS_PER_BLOB_MAX)),
            error_data: fields.read("errorData", |at| at.word(&ErrorData::ALL, ErrorData::as_str)),
            delay_ms: fields.read("delay", |at| at.duration_ms(0..=DELAY_MAX_MS)),
            keep_trying_for_ms: fields
                .read("keepTryingFor", |at| at.duration_ms(MINUTE_MS..=KEEP_TRYING_MAX_MS)),
        }
    }

    fn with_fallback(self, base: &Self) -> Self {
        Self {
            sink: self.sink.or_else(|| base.sink.clone()),
            format: self.format.or(base.format),
            layout: self.layout.or(base.layout),
            events_per_blob: self.events_per_blob.or(base.events_per_blob),
            error_data: self.error_data.or(base.error_data),
            delay_ms: self.delay_ms.or(base.delay_ms),
            keep_trying_for_ms: self.keep_trying_for_ms.or(base.keep_trying_for_ms),
        }
    }
}

fn sink(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Sink> {
    if cursor.is_mapping() {
        return cursor.mapping(topic)?.map(Sink::Topic);
    }
    match destinations.resolve(cursor.text()?, cursor) {
        Resolved::Target(target) => Some(target.into()),
        Resolved::Reported => None,
        Resolved::Unknown => {
            let message = Message::new("neither an address nor a key of a Destinations document");
            cursor.refuse(message.help(format!("{ADDRESSES}; {TOPIC_RULE}")))
        }
    }
}

/// The topic whose subscriptions receive dead letters.
fn topic(fields: &Fields<'_>) -> Option<TopicName> {
    let Some(topic) = fields.get("topic") else {
        // Other fields are probably an attempt to name a sink: one finding shows the right form.
        fields.accept_rest();
        return fields
            .parent()
            .refuse(Message::new("a sink is an address, or names a topic").help(TOPIC_RULE));
    };
    topic.parsed("the name of a topic", TOPIC_RULE)
}
