//! Where dead letters go, and the mapping that says so.

use serde_json::{Value as Json, json};

use super::address::{ADDRESSES, address};
use crate::document::findings::{Message, quoted};
use crate::document::kind::{Kind, Merged};
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Declaration, Record as _, Shown};
use crate::subscription::name::TopicName;
use crate::subscription::policy::sink_text;
use crate::subscription::sink::Sink;
use crate::subscription::{DeadLetterPolicy, display};

/// The form of a sink that is a topic, for messages.
const TOPIC_RULE: &str = "a topic in the files is {topic: namespace/topic}";
/// The word that drops events.
const DROPPED: &str = "none";

/// The field `sink`: an address, or a topic of the files.
pub(crate) struct Sinks;

impl Kind for Sinks {
    type Value = Sink;

    fn read(&self, at: &Cursor<'_>) -> Option<Sink> {
        if at.is_mapping() {
            return at.mapping(topic)?.map(Sink::Topic);
        }
        let unknown = Message::new("neither an address nor a key of a Destinations document")
            .help(format!("{ADDRESSES}; {TOPIC_RULE}"));
        address(at.text()?, at).or_refuse(at, unknown).map(Sink::from)
    }

    fn write(&self, value: &Sink) -> Json {
        match value {
            Sink::Container(container) => json!(format!("s3://{container}")),
            Sink::Queue(queue) => json!(format!("sqs://{queue}")),
            Sink::Address(url) => json!(url.as_str()),
            Sink::Topic(topic) => json!({ "topic": topic.to_string() }),
            Sink::DefaultContainer | Sink::None => Json::Null,
        }
    }

    /// An address without credentials and query.
    fn shown(&self, value: &Sink) -> Json {
        match value {
            Sink::Address(url) => json!(display(url)),
            Sink::DefaultContainer
            | Sink::Container(_)
            | Sink::Queue(_)
            | Sink::Topic(_)
            | Sink::None => self.write(value),
        }
    }

    fn schema(&self) -> Json {
        json!({ "oneOf": [{ "type": "string", "minLength": 1 }, {
            "type": "object",
            "additionalProperties": false,
            "required": ["topic"],
            "properties": [["topic", {
                "description": "namespace/topic: its subscriptions receive the dead letters.",
                "type": "string",
                "pattern": "^[^/]+/[^/]+$",
            }]],
        }] })
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

/// The field `deadLetter`: `none`, or a mapping that is merged field by field.
pub(crate) struct DeadLetters;

impl Kind for DeadLetters {
    type Value = DeadLetterPolicy;

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
                at.warn(
                    message.help("leave deadLetter out to store them in the default container"),
                );
                let defaults = bases.last()?.mapping(DeadLetterPolicy::read)??;
                Some(DeadLetterPolicy { sink: Sink::None, ..defaults })
            }
            Some(other) => {
                // An address may hold credentials.
                let found =
                    if other.contains("://") { "an address".to_owned() } else { quoted(other) };
                let message = format!("expected none or a mapping, found {found}");
                at.refuse(Message::new(message).help("deadLetter: {sink: …}"))
            }
            None => at.refuse("expected none or a mapping"),
        }
    }

    fn write(&self, value: &DeadLetterPolicy) -> Json {
        match value.sink {
            Sink::None => json!(DROPPED),
            Sink::DefaultContainer
            | Sink::Container(_)
            | Sink::Queue(_)
            | Sink::Address(_)
            | Sink::Topic(_) => Json::Object(value.write()),
        }
    }

    fn schema(&self) -> Json {
        json!({ "oneOf": [{ "const": DROPPED }, Merged::<DeadLetterPolicy>::new().schema()] })
    }

    fn fields(&self) -> Vec<Declaration> {
        DeadLetterPolicy::declarations()
    }

    fn show(&self, path: String, value: &DeadLetterPolicy, shown: &mut Vec<Shown>) {
        let before = shown.len();
        value.show(&path, shown);
        // The sink is shown by what it is: its address may have a path that is a credential.
        if let Some(sink) = shown[before..].iter_mut().find(|of| of.path.ends_with(".sink")) {
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
