//! Wraps a message for the queue engine: the whole message becomes one attribute of an otherwise
//! empty message.
//!
//! Separate because this is a workaround: the engine limits the size of the body, and drops the
//! message group and the trace header. It does not inspect attributes.
//!
//! Promises: a message is received as it was sent, with the checksums that AWS computes. Validates
//! nothing.

use std::collections::HashMap;

use rustack_sqs_core::message::{md5_of_body, md5_of_message_attributes};
use rustack_sqs_model::input::{ReceiveMessageInput, SendMessageInput};
use rustack_sqs_model::types::{Message, MessageAttributeValue};
use serde::{Deserialize, Serialize};

/// Name of the attribute that contains the message inside the engine.
const ATTRIBUTE: &str = "envelope";

/// Body of a message inside the engine, which rejects an empty body.
const BODY: &str = "-";

const TRACE_HEADER: &str = "AWSTraceHeader";
const GROUP: &str = "MessageGroupId";

#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    body: String,
    attributes: HashMap<String, MessageAttributeValue>,
    group: Option<String>,
    trace: Option<String>,
}

/// The checksums in a response, which the sender compares with its own.
#[derive(Debug)]
pub(super) struct Checksums {
    /// The checksum of the message body.
    pub(super) body: String,
    /// The checksum of the message attributes; `None` if there are no attributes.
    pub(super) attributes: Option<String>,
}

/// The attributes that a receive request asks for.
#[derive(Debug)]
pub(super) struct RequestedAttributes {
    system: Vec<String>,
    attributes: Vec<String>,
}

/// Wraps a message in an envelope, and returns the message's checksums.
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

/// Changes a receive request so that it requests the envelope. Returns the attributes that the
/// client requested.
pub(super) fn request_envelope(input: &mut ReceiveMessageInput) -> RequestedAttributes {
    let system =
        [input.attribute_names.clone(), input.message_system_attribute_names.clone()].concat();
    let attributes =
        std::mem::replace(&mut input.message_attribute_names, vec![ATTRIBUTE.to_owned()]);
    RequestedAttributes { system, attributes }
}

/// Unwraps a message from its envelope. Removes attributes that the client did not request.
pub(super) fn open(
    mut message: Message,
    requested: &RequestedAttributes,
) -> Result<Message, serde_json::Error> {
    let sealed = message.message_attributes.remove(ATTRIBUTE).and_then(|value| value.string_value);
    let envelope: Envelope = serde_json::from_str(&sealed.unwrap_or_default())?;
    let mut attributes = envelope.attributes;
    attributes.retain(|name, _| requested.has_attribute(name));
    message.md5_of_body = Some(md5_of_body(&envelope.body));
    message.body = Some(envelope.body);
    message.md5_of_message_attributes = md5_of_message_attributes(&attributes);
    message.message_attributes = attributes;
    for (name, value) in [(GROUP, envelope.group), (TRACE_HEADER, envelope.trace)] {
        if let Some(value) = value.filter(|_| requested.has_system(name)) {
            message.attributes.insert(name.to_owned(), value);
        }
    }
    Ok(message)
}

impl RequestedAttributes {
    fn has_system(&self, name: &str) -> bool {
        self.system.iter().any(|pattern| pattern == "All" || pattern == name)
    }

    /// True if the client requested this attribute: by its name, by `All` or `.*`, or by a prefix
    /// followed by `.*` (SQS `ReceiveMessage`).
    fn has_attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|pattern| {
            let prefix = pattern.strip_suffix(".*");
            pattern == "All"
                || pattern == name
                || prefix.is_some_and(|prefix| name.starts_with(prefix))
        })
    }
}
