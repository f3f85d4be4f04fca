//! Dead letters into external queues.
//!
//! Separate from [`crate::queues`], which knows our own queues and what our messages carry: here a
//! message is a dead letter that an external consumer reads. One call per dead letter: they are
//! few, and batching would not pay.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message::SendMessageError;
use delivery::ports::{MESSAGE_MAX_BYTES, PutError, PutMessage};
use delivery::subscription::sink::SinkQueue;
use uuid::Uuid;

use crate::queues::text_attribute;

/// The attribute with the id of the dead letter.
pub const ID_ATTRIBUTE: &str = "deadletterid";
/// What that attribute counts of a message's size: name, type and value.
const ATTRIBUTE_BYTES: usize = ID_ATTRIBUTE.len() + "String".len() + uuid::fmt::Hyphenated::LENGTH;

/// External queues, reached through this deployment's client: they are in its region.
#[derive(Debug, Clone)]
pub struct SqsSinks(pub Client);

impl PutMessage for SqsSinks {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        if json.len() + ATTRIBUTE_BYTES > MESSAGE_MAX_BYTES {
            let bytes = json.len();
            return Err(PutError::Permanent(format!(
                "a message of {bytes} bytes is larger than a queue accepts"
            )));
        }
        let message = self.0.send_message().queue_url(queue.url()).message_body(json);
        let id = text_attribute(&id.to_string());
        let sent = message.message_attributes(ID_ATTRIBUTE, id).send().await;
        sent.map(drop).map_err(|error| put_error(&error))
    }
}

/// A missing queue or denied access is permanent, and so is a message that the queue calls invalid.
fn put_error(error: &SdkError<SendMessageError>) -> PutError {
    let detail = detail(error);
    let is_permanent = match error.as_service_error() {
        Some(
            SendMessageError::QueueDoesNotExist(_) | SendMessageError::InvalidMessageContents(_),
        ) => true,
        Some(SendMessageError::InvalidAddress(_) | SendMessageError::UnsupportedOperation(_)) => {
            true
        }
        Some(SendMessageError::KmsAccessDenied(_) | SendMessageError::KmsDisabled(_)) => true,
        Some(SendMessageError::KmsNotFound(_)) => true,
        Some(other) => other.code().is_some_and(|code| DENIED.contains(&code)),
        // SQS did not answer: it may do so next time.
        None => false,
    };
    if is_permanent { PutError::Permanent(detail) } else { PutError::Unavailable(detail) }
}

/// The service's error code and message; without one, what happened on the way to it.
fn detail(error: &SdkError<SendMessageError>) -> String {
    let answer = error
        .as_service_error()
        .and_then(|error| Some(format!("{}: {}", error.code()?, error.message()?)));
    answer.unwrap_or_else(|| DisplayErrorContext(error).to_string())
}

/// Codes of permanent errors that the SDK has no variant for.
const DENIED: [&str; 4] = [
    "AccessDenied",
    "AccessDeniedException",
    "InvalidParameterValue",
    "AWS.SimpleQueueService.NonExistentQueue",
];
