//! `deadLetter`: what happens to a delivery that ends without success.
//!
//! Separate because of `none`: it replaces the mapping, causes a warning, and is undone by a
//! Subscription with any other setting for dead letters.

use super::super::access::SINK_ACCESS;
use super::super::destinations::{ADDRESSES, Destinations};
use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Fields};
use crate::subscription::dead_letter_format::{
    DeadLetterFormat, ErrorData, Format, Layout, Response,
};
use crate::subscription::name::TopicName;
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

/// Reads `deadLetter`, `none` or a mapping, over these values.
pub(super) fn read(
    fields: &Fields<'_>,
    destinations: &Destinations<'_>,
    base: DeadLetterPolicy,
) -> DeadLetterPolicy {
    let Some(cursor) = fields.get("deadLetter") else { return base };
    if cursor.is_mapping() {
        let of_topic = fields.of_base("deadLetter");
        let read = |of: &Fields<'_>| stored(of, destinations, base.clone());
        return cursor.mapping_over(of_topic, read).unwrap_or(base);
    }
    match cursor.peek_text() {
        Some("none") => {
            let message = Message::new("events that cannot be delivered are dropped");
            cursor
                .warn(message.help("leave deadLetter out to store them in the default container"));
            return DeadLetterPolicy { sink: Sink::None, ..base };
        }
        Some(other) => cursor.error(format!("expected none or a mapping, found {}", quoted(other))),
        None => cursor.error("expected none or a mapping"),
    }
    base
}

/// Reads the fields of the mapping.
fn stored(
    fields: &Fields<'_>,
    destinations: &Destinations<'_>,
    base: DeadLetterPolicy,
) -> DeadLetterPolicy {
    let integer = |name, range| fields.read(name, |at| at.integer(range));
    let duration_ms = |name, range_ms| fields.read(name, |at| at.duration_ms(range_ms));
    let format = fields.read("format", |at| at.word(&Format::ALL, Format::as_str));
    let layout = fields.read("layout", |at| at.word(&Layout::ALL, Layout::as_str));
    let response = fields.read("response", |at| at.word(&Response::ALL, Response::as_str));
    let hide_path = fields.read("hidePath", Cursor::boolean);
    let error_data = fields.read("errorData", |at| at.word(&ErrorData::ALL, ErrorData::as_str));
    DeadLetterPolicy {
        sink: fields.read("sink", |at| sink(at, destinations)).unwrap_or(base.sink),
        hide_path: hide_path.unwrap_or(base.hide_path),
        format: format.map_or(base.format, DeadLetterFormat::Fixed),
        layout: layout.unwrap_or(base.layout),
        error_data: error_data.unwrap_or(base.error_data),
        response: response.unwrap_or(base.response),
        events_per_blob: integer("eventsPerBlob", 1..=EVENTS_PER_BLOB_MAX)
            .unwrap_or(base.events_per_blob),
        delay_ms: duration_ms("delay", 0..=DELAY_MAX_MS).unwrap_or(base.delay_ms),
        keep_trying_for_ms: duration_ms("keepTryingFor", MINUTE_MS..=KEEP_TRYING_MAX_MS)
            .unwrap_or(base.keep_trying_for_ms),
    }
}

fn sink(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Sink> {
    if cursor.is_mapping() {
        return cursor.mapping(topic)?.map(Sink::Topic);
    }
    let unknown = Message::new("neither an address nor a key of a Destinations document")
        .help(format!("{ADDRESSES}; {TOPIC_RULE}"));
    let text = cursor.text()?;
    destinations.warn_unused_access(text, cursor, SINK_ACCESS);
    destinations.resolve(text, cursor).or_refuse(cursor, unknown).map(Sink::from)
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
