//! Dead letters into external queues.
//!
//! Separate from [`crate::queues`], which knows our own queues and what our messages carry: here a
//! message is a dead letter that an external consumer reads. One call per dead letter: they are
//! few, and batching would not pay.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message::SendMessageError;
use delivery::ports::{MESSAGE_MAX_BYTES, PutError, PutMessage, QueueName};
use delivery::subscription::sink::SinkQueue;
use uuid::Uuid;

use crate::aws_error::sentence;
use crate::queues::text_attribute;

/// The attribute with the id of the dead letter.
pub const ID_ATTRIBUTE: &str = "deadletterid";
/// What that attribute counts of a message's size: name, type and value.
const ATTRIBUTE_BYTES: usize = ID_ATTRIBUTE.len() + "String".len() + uuid::fmt::Hyphenated::LENGTH;

/// External queues, reached through this deployment's client: they are in its region.
#[derive(Debug, Clone)]
pub struct SqsSinks {
    client: Client,
    /// The URLs of the queues of this deployment, which are no sinks: a function would read the dead letter as a message of
    /// its own.
    own: Vec<String>,
}

impl SqsSinks {
    /// Sends to all queues but these.
    #[must_use]
    pub fn new(client: Client, own: &[(QueueName, String)]) -> Self {
        Self { client, own: own.iter().map(|(_, url)| url.clone()).collect() }
    }
}

impl PutMessage for SqsSinks {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        if self.own.iter().any(|url| queue.is_at(url)) {
            let why = "it is a queue of this deployment: name another queue as the sink";
            return Err(PutError::Permanent(why.to_owned()));
        }
        if json.len() + ATTRIBUTE_BYTES > MESSAGE_MAX_BYTES {
            let bytes = json.len();
            return Err(PutError::Permanent(format!(
                "a message of {bytes} bytes is larger than a queue accepts"
            )));
        }
        let message = self.client.send_message().queue_url(queue.url()).message_body(json);
        let id = text_attribute(&id.to_string());
        let sent = message.message_attributes(ID_ATTRIBUTE, id).send().await;
        sent.map(drop).map_err(|error| put_error(&error))
    }
}

/// A missing queue, denied access, a key that may not be used and an invalid message are permanent. Any other code, or no
/// answer, may pass.
fn put_error(error: &SdkError<SendMessageError>) -> PutError {
    let detail = sentence(error);
    let code = error.as_service_error().and_then(|error| error.code());
    match code.is_some_and(|code| PERMANENT.contains(&code)) {
        true => PutError::Permanent(detail),
        false => PutError::Unavailable(detail),
    }
}

/// Codes that will not pass by themselves, under each of their names: in the header of an answer, and in its body, which
/// counts where the header is missing, as with some emulators.
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
