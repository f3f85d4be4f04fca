//! How a message travels through the queue engine: whole, inside one attribute of a message that is
//! otherwise empty.
//!
//! It is separate because it is the one trick of the layer: the engine measures the body only and
//! keeps neither group nor trace header, so all of it goes where the engine does not look. It
//! promises that a message comes out as it went in, with the checksums AWS computes. It checks
//! nothing.

use std::collections::HashMap;

use rustack_sqs_core::message::{md5_of_body, md5_of_message_attributes};
use rustack_sqs_model::input::{ReceiveMessageInput, SendMessageInput};
use rustack_sqs_model::types::{Message, MessageAttributeValue};
use serde::{Deserialize, Serialize};

/// The one attribute of a message inside the engine.
const ATTRIBUTE: &str = "envelope";

/// The body of a message inside the engine, which wants one.
const BODY: &str = "-";

const TRACE_HEADER: &str = "AWSTraceHeader";
const GROUP: &str = "MessageGroupId";

/// A message as its sender gave it.
#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    body: String,
    attributes: HashMap<String, MessageAttributeValue>,
    group: Option<String>,
    trace: Option<String>,
}

/// The checksums the sender compares with its own.
#[derive(Debug)]
pub(super) struct Checksums {
    /// Of the body.
    pub(super) body: String,
    /// Of the attributes, if there are any.
    pub(super) attributes: Option<String>,
}

/// Which parts of a message a receiver asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    system: Vec<String>,
    attributes: Vec<String>,
}

/// Puts a message into an envelope.
pub(super) fn seal(
    mut input: SendMessageInput,
) -> Result<(SendMessageInput, Checksums), serde_json::Error> {
    let trace = input.message_system_attributes.remove(TRACE_HEADER);
    let envelope = Envelope {
        body: std::mem::replace(&mut input.message_body, BODY.to_owned()),
        attributes: std::mem::take(&mut input.message_attributes),
        group: input.message_group_id.take(),
        trace: trace.and_then(|value| value.string_value),
    };
    let checksums = Checksums {
        body: md5_of_body(&envelope.body),
        attributes: md5_of_message_attributes(&envelope.attributes),
    };
    let sealed = MessageAttributeValue {
        data_type: "String".to_owned(),
        string_value: Some(serde_json::to_string(&envelope)?),
        binary_value: None,
    };
    input.message_attributes.insert(ATTRIBUTE.to_owned(), sealed);
    Ok((input, checksums))
}

/// Makes a receive ask for the envelope, and says what its sender wanted from inside.
pub(super) fn want(input: &mut ReceiveMessageInput) -> Wanted {
    let system =
        [input.attribute_names.clone(), input.message_system_attribute_names.clone()].concat();
    let attributes =
        std::mem::replace(&mut input.message_attribute_names, vec![ATTRIBUTE.to_owned()]);
    Wanted { system, attributes }
}

/// Takes a message out of its envelope.
pub(super) fn open(mut message: Message, wanted: &Wanted) -> Result<Message, serde_json::Error> {
    let sealed = message.message_attributes.remove(ATTRIBUTE).and_then(|value| value.string_value);
    let envelope: Envelope = serde_json::from_str(&sealed.unwrap_or_default())?;
    let mut attributes = envelope.attributes;
    attributes.retain(|name, _| wanted.wants_attribute(name));
    message.md5_of_body = Some(md5_of_body(&envelope.body));
    message.body = Some(envelope.body);
    message.md5_of_message_attributes = md5_of_message_attributes(&attributes);
    message.message_attributes = attributes;
    for (name, value) in [(GROUP, envelope.group), (TRACE_HEADER, envelope.trace)] {
        if let Some(value) = value.filter(|_| wanted.wants_system(name)) {
            message.attributes.insert(name.to_owned(), value);
        }
    }
    Ok(message)
}

impl Wanted {
    fn wants_system(&self, name: &str) -> bool {
        self.system.iter().any(|wanted| wanted == "All" || wanted == name)
    }

    /// A name, `All`, `.*`, or the beginning of names followed by `.*` (SQS `ReceiveMessage`).
    fn wants_attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|wanted| {
            let prefix = wanted.strip_suffix(".*");
            wanted == "All"
                || wanted == name
                || prefix.is_some_and(|prefix| name.starts_with(prefix))
        })
    }
}
