//! Dead letters into queues of others.
//!
//! Separate from [`crate::queues`], which knows our own queues and what a message of ours carries:
//! here a message is a dead letter for somebody else to read. One call a letter: letters are few,
//! and a sink is nobody's hot path.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message::SendMessageError;
use aws_sdk_sqs::types::MessageAttributeValue;
use delivery::ports::{MESSAGE_MAX_BYTES, PutError, PutMessage};
use delivery::subscription::sink::SinkQueue;
use uuid::Uuid;

/// The attribute with the id of the dead letter.
pub const ID_ATTRIBUTE: &str = "deadletterid";
/// What an attribute with an id takes of a message: name, type and value.
const ATTRIBUTE_BYTES: usize = ID_ATTRIBUTE.len() + "String".len() + uuid::fmt::Hyphenated::LENGTH;

/// Queues of others, reached through this deployment's client: they are in its region.
#[derive(Debug, Clone)]
pub struct SqsSinks {
    client: Client,
}

impl SqsSinks {
    /// Queues reached through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl PutMessage for SqsSinks {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        if json.len() + ATTRIBUTE_BYTES > MESSAGE_MAX_BYTES {
            let bytes = json.len();
            return Err(PutError::NoSuchContainer(format!(
                "a message of {bytes} bytes is more than a queue takes"
            )));
        }
        let value =
            MessageAttributeValue::builder().data_type("String").string_value(id.to_string());
        let value = value.build().expect("type and value are set");
        let message = self.client.send_message().queue_url(queue.url()).message_body(json);
        match message.message_attributes(ID_ATTRIBUTE, value).send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(put_error(&error)),
        }
    }
}

/// A queue that is missing or denied will be so tomorrow, and a message it calls wrong will not get
/// better.
fn put_error(error: &SdkError<SendMessageError>) -> PutError {
    let why = why(error);
    let is_for_good = match error.as_service_error() {
        Some(
            SendMessageError::QueueDoesNotExist(_) | SendMessageError::InvalidMessageContents(_),
        ) => true,
        Some(SendMessageError::InvalidAddress(_) | SendMessageError::UnsupportedOperation(_)) => {
            true
        }
        Some(SendMessageError::KmsAccessDenied(_) | SendMessageError::KmsDisabled(_)) => true,
        Some(SendMessageError::KmsNotFound(_)) => true,
        Some(other) => other.code().is_some_and(|code| DENIED.contains(&code)),
        None => false,
    };
    if is_for_good { PutError::NoSuchContainer(why) } else { PutError::Refused(why) }
}

/// What the service says in a few words, else what happened on the way to it.
fn why(error: &SdkError<SendMessageError>) -> String {
    let told = error
        .as_service_error()
        .and_then(|error| Some(format!("{}: {}", error.code()?, error.message()?)));
    told.unwrap_or_else(|| DisplayErrorContext(error).to_string())
}

/// Codes of errors that the service's own list does not name.
const DENIED: [&str; 4] = [
    "AccessDenied",
    "AccessDeniedException",
    "InvalidParameterValue",
    "AWS.SimpleQueueService.NonExistentQueue",
];
