//! Reads sinks of dead letters, as documents state them.

use serde_json::{Value as Json, json};

use super::address::{ADDRESSES, address};
use crate::document::findings::Message;
use crate::document::kind::Kind;
use crate::document::reader::{Cursor, Fields};
use crate::subscription::display;
use crate::subscription::name::TopicName;
use crate::subscription::sink::Sink;

/// The valid form of a sink that is a topic, for error messages.
const TOPIC_RULE: &str = "for a topic: {topic: namespace/topic}";

/// The field type of the field `sink`: an address, or a topic.
pub struct Sinks;

impl Kind for Sinks {
    type Value = Sink;

    fn read(&self, at: &Cursor<'_>) -> Option<Sink> {
        if at.is_mapping() {
            return at.mapping(topic)?.map(Sink::Topic);
        }
        let unknown = Message::new("not an address, and not a key of a Destinations document")
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

    /// Returns the sink. If it is an address, credentials and query are omitted.
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
                "description": "Topic whose subscriptions receive the dead letters, as namespace/topic.",
                "type": "string",
                "pattern": "^[^/]+/[^/]+$",
            }]],
        }] })
    }
}

/// Reads a sink that is a topic, whose subscriptions receive dead letters.
fn topic(fields: &Fields<'_>) -> Option<TopicName> {
    let Some(topic) = fields.get("topic") else {
        // Other fields probably name a sink in another form. One finding about that is enough.
        fields.accept_rest();
        return fields
            .parent()
            .refuse(Message::new("a sink must be an address or a topic").help(TOPIC_RULE));
    };
    topic.parsed("the name of a topic", TOPIC_RULE)
}
