//! Sends dead letters to external queues.
//!
//! Separate from [`crate::queues`], which sends internal messages to the deployment's own queues.
//! Here a message is a dead letter for an external consumer. Each dead letter is sent in its own
//! call, because dead letters are too rare for batches.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message::SendMessageError;
use delivery::ports::{MESSAGE_MAX_BYTES, PutError, PutMessage, QueueName};
use delivery::subscription::sink::SinkQueue;
use uuid::Uuid;

use crate::aws_error::sentence;
use crate::queues::text_attribute;

/// Message attribute with the id of the dead letter.
pub const ID_ATTRIBUTE: &str = "deadletterid";
/// Size of the id attribute in a message: name, type and value.
const ATTRIBUTE_BYTES: usize = ID_ATTRIBUTE.len() + "String".len() + uuid::fmt::Hyphenated::LENGTH;

/// Sends dead letters to external queues in the deployment's region.
#[derive(Debug, Clone)]
pub struct SqsSinks {
    client: Client,
    /// URLs of this deployment's queues, which are not allowed as sinks: a function would treat the
    /// dead letter as an internal message.
    own: Vec<String>,
}

impl SqsSinks {
    /// Creates a sender to all queues except those in `own`.
    #[must_use]
    pub fn new(client: Client, own: &[(QueueName, String)]) -> Self {
        Self { client, own: own.iter().map(|(_, url)| url.clone()).collect() }
    }
}

impl PutMessage for SqsSinks {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        if self.own.iter().any(|url| queue.is_at(url)) {
            let why = "the sink is a queue of this deployment: use another queue";
            return Err(PutError::Permanent(why.to_owned()));
        }
        if json.len() + ATTRIBUTE_BYTES > MESSAGE_MAX_BYTES {
            let bytes = json.len();
            return Err(PutError::Permanent(format!(
                "the message has {bytes} bytes, which is more than a queue accepts"
            )));
        }
        let message = self.client.send_message().queue_url(queue.url()).message_body(json);
        let id = text_attribute(&id.to_string());
        let sent = message.message_attributes(ID_ATTRIBUTE, id).send().await;
        sent.map(drop).map_err(|error| put_error(&error))
    }
}

/// Classifies an error. A missing queue, denied access, an unusable key and an invalid message are
/// permanent errors. Any other code, or a missing response, is temporary.
fn put_error(error: &SdkError<SendMessageError>) -> PutError {
    let detail = sentence(error);
    let code = error.as_service_error().and_then(|error| error.code());
    match code.is_some_and(|code| PERMANENT.contains(&code)) {
        true => PutError::Permanent(detail),
        false => PutError::Unavailable(detail),
    }
}

/// Permanent error codes, under each of their names. The header and the body of a response use
/// different names. The body counts if the header is missing, as with some emulators.
///
/// Unlike in [`crate::resend`], the KMS codes are listed one by one, because some KMS errors are
/// temporary. A permanent error sends the dead letter to the default container, so the queue never
/// receives it, even when KMS works again.
const PERMANENT: [&str; 16] = [
    "AWS.SimpleQueueService.NonExistentQueue",
    "AWS.SimpleQueueService.UnsupportedOperation",
    "AccessDenied",
    "AccessDeniedException",
    "InvalidAddress",
    "InvalidMessageContents",
    "InvalidParameterValue",
    "InvalidParameterValueException",
    "KMS.AccessDeniedException",
    "KMS.DisabledException",
    "KMS.NotFoundException",
    "KmsAccessDenied",
    "KmsDisabled",
    "KmsNotFound",
    "QueueDoesNotExist",
    "UnsupportedOperation",
];
