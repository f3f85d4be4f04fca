//! [`DeadLetterPolicy`]: the settings for deliveries that end without success.

use serde_json::{Map, Value as Json, json};

use crate::document::declaration::{Declaration, Shown};
use crate::document::findings::{Message, quoted};
use crate::document::kind::{Duration, Flag, Kind, Merged, Word};
use crate::document::reader::Cursor;
use crate::document::record::{Or, Record as _, Required};
use crate::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Layout, Response};
use crate::subscription::kinds::references::KeyOf;
use crate::subscription::kinds::sinks::Sinks;
use crate::subscription::profile::Profile;
use crate::subscription::shown::shown;
use crate::subscription::sink::Sink;
use crate::time::duration::{DAY_MS, MINUTE_MS};
use crate::waits::DELAY_MAX_MS;

/// Value of the field `deadLetter` that causes dead letters to be dropped.
const DROPPED: &str = "none";

record! {
    /// Storage of events that cannot be delivered.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DeadLetterPolicy {
        /// Destination of dead letters: an address (https://…, s3://bucket/prefix,
        /// sqs://host/account/name), a key of a Destinations document, or a topic. Without a sink,
        /// dead letters go to the default container.
        "sink" => pub sink: Sink = Or(Sinks, Sink::DefaultContainer),
        /// The key in a Destinations document from which `sink` was resolved. If a document maps
        /// the key, `sink` is resolved again.
        "reference" => pub reference: Option<String> = KeyOf("sink"),
        /// If `true`, the path of an address in `sink` is treated as a credential: it is never
        /// displayed, and it is masked in responses.
        "hidePath" => pub hide_path: bool = Required(Flag),
        /// Format of dead letters: one of Event Grid's formats, or Knative's. `byDeliverySchema`
        /// selects the format by `destination.schema`, or without it by the schema in which the
        /// event was published.
        "format" => pub format: DeadLetterFormat = Required(Word(&DeadLetterFormat::ALL, DeadLetterFormat::as_str)),
        /// For the `namespace` format: `nested` has the event as one member; `flat` has the members
        /// of the event beside `deadletterProperties`.
        "layout" => pub layout: Layout = Required(Word(&Layout::ALL, Layout::as_str)),
        /// For the `knative` format: encoding of the last response in `knativeerrordata`.
        "errorData" => pub error_data: ErrorData = Required(Word(&ErrorData::ALL, ErrorData::as_str)),
        /// Stored part of the last response: `beginning` stores the beginning of its body, with
        /// credentials masked; `none` stores nothing.
        "response" => pub response: Response = Required(Word(&Response::ALL, Response::as_str)),
        /// Time between the last attempt and storing the dead letter (Event Grid, "message delivery
        /// and retry"); at most PT15M.
        "delay" => pub delay_ms: u64 = Required(Duration(0..=DELAY_MAX_MS)),
        /// Time for which storing is retried if storage refuses the dead letter; PT1M to P3D.
        "keepTryingFor" => pub keep_trying_for_ms: u64 = Required(Duration(MINUTE_MS..=KEEP_TRYING_MAX_MS)),
    }
}

/// Maximum value of `keepTryingFor`. Storing is tried every five minutes, and a queue discards a
/// message after 1,000 receives.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>
const KEEP_TRYING_MAX_MS: u64 = 3 * DAY_MS;

impl DeadLetterPolicy {
    /// Returns the default policy of a profile. The sink is the default container.
    #[must_use]
    pub fn for_profile(profile: &Profile) -> Self {
        Self {
            sink: Sink::DefaultContainer,
            reference: None,
            hide_path: false,
            format: profile.dead_letter_format,
            layout: Layout::Nested,
            error_data: ErrorData::Text,
            response: Response::default(),
            delay_ms: profile.dead_letter_delay_ms,
            keep_trying_for_ms: profile.keep_trying_for_ms,
        }
    }
}

/// Returns the address of the sink. Returns `None` if the sink is the default container or a topic,
/// or if dead letters are dropped.
#[must_use]
pub fn sink_uri(dead_letter: &DeadLetterPolicy) -> Option<String> {
    match dead_letter.sink {
        Sink::Container(_) | Sink::Queue(_) | Sink::Address(_) => Some(sink_text(dead_letter)),
        Sink::DefaultContainer | Sink::Topic(_) | Sink::None => None,
    }
}

/// Returns the sink as text for people.
#[must_use]
pub fn sink_text(dead_letter: &DeadLetterPolicy) -> String {
    match &dead_letter.sink {
        Sink::DefaultContainer => "the default container of the deployment".to_owned(),
        Sink::Container(container) => format!("s3://{container}"),
        Sink::Queue(queue) => format!("sqs://{queue}"),
        Sink::Address(url) => shown(url, dead_letter.hide_path),
        Sink::Topic(topic) => format!("the subscriptions of topic {topic}"),
        Sink::None => "none: dropped".to_owned(),
    }
}

/// The field type of the field `deadLetter`: `none`, or a mapping that is merged field by field.
pub(super) struct DeadLetters;

impl Kind for DeadLetters {
    type Value = DeadLetterPolicy;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<DeadLetterPolicy> {
        self.read_over(at, &[])
    }

    fn read_over<'a>(&self, at: &Cursor<'a>, bases: &[Cursor<'a>]) -> Option<DeadLetterPolicy> {
        if at.is_mapping() {
            return at.mapping_over(bases, DeadLetterPolicy::read)?;
        }
        match at.peek_text() {
            Some(DROPPED) => {
                let message = Message::new("events that cannot be delivered are dropped");
                at.warn(message.help("omit deadLetter to store them in the default container"));
                let defaults = bases.iter().rev().find(|base| base.is_mapping());
                let Some(defaults) = defaults else {
                    return at.refuse("\"none\" cannot be a default; set it in spec");
                };
                let defaults = defaults.mapping(DeadLetterPolicy::read)??;
                Some(DeadLetterPolicy { sink: Sink::None, ..defaults })
            }
            Some(other) => {
                // The message quotes no address, because it may contain credentials.
                let found =
                    if other.contains("://") { "an address".to_owned() } else { quoted(other) };
                let message = format!("expected \"none\" or a mapping, found {found}");
                at.refuse(Message::new(message).help("deadLetter: {sink: …}"))
            }
            None => at.refuse("expected \"none\" or a mapping"),
        }
    }

    fn write(&self, value: &DeadLetterPolicy) -> Json {
        stated(value, value.write())
    }

    fn schema(&self) -> Json {
        json!({ "oneOf": [{ "const": DROPPED }, Merged::<DeadLetterPolicy>::KIND.schema()] })
    }

    fn shown(&self, value: &DeadLetterPolicy) -> Json {
        stated(value, value.shown())
    }

    fn fields(&self) -> Vec<Declaration> {
        DeadLetterPolicy::declarations()
    }

    fn show(&self, path: String, value: &DeadLetterPolicy, shown: &mut Vec<Shown>) {
        let before = shown.len();
        value.show(&path, shown);
        // If `hidePath` is set, the sink is shown without its path, because the path may be a
        // credential.
        if let Some(sink) =
            shown[before..].iter_mut().find(|setting| setting.path.ends_with(".sink"))
        {
            sink.value = json!(sink_word(value));
            sink.text = sink_text(value);
        }
    }
}

fn sink_word(policy: &DeadLetterPolicy) -> String {
    match &policy.sink {
        Sink::DefaultContainer => "default".to_owned(),
        Sink::Topic(topic) => format!("topic {topic}"),
        Sink::None => DROPPED.to_owned(),
        Sink::Container(_) | Sink::Queue(_) | Sink::Address(_) => sink_text(policy),
    }
}

/// Returns the policy as a document states it: `none` if dead letters are dropped, otherwise these
/// fields.
fn stated(policy: &DeadLetterPolicy, fields: Map<String, Json>) -> Json {
    match policy.sink {
        Sink::None => json!(DROPPED),
        Sink::DefaultContainer
        | Sink::Container(_)
        | Sink::Queue(_)
        | Sink::Address(_)
        | Sink::Topic(_) => Json::Object(fields),
    }
}
