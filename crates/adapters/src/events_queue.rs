//! Sends the events of HTTP requests to the events queue.
//!
//! Separate from [`crate::queues`], whose messages carry state of lastmile. A published message has
//! a topic and no other attribute. Each message has its own call, because an HTTP request waits for
//! the result.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use delivery::ports::{PublishEvents, PublishingError};
use delivery::subscription::name::TopicName;
use delivery::wire::TOPIC_ATTRIBUTE;

use crate::aws_error::sentence;
use crate::queues::text_attribute;

/// Error codes for invalid characters or an invalid size. The queue would refuse the same message
/// again.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
const OF_THE_MESSAGE: [&str; 3] =
    ["InvalidMessageContents", "InvalidParameterValue", "InvalidParameterValueException"];

/// A client of the events queue that publishes the events of HTTP requests.
#[derive(Debug, Clone)]
pub struct EventsQueue {
    client: Client,
    url: String,
}

impl EventsQueue {
    /// Creates a client for the queue with this URL.
    #[must_use]
    pub fn new(client: Client, url: String) -> Self {
        Self { client, url }
    }

    /// Returns the URL of the events queue.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl PublishEvents for EventsQueue {
    async fn publish(&self, topic: &TopicName, body: &str) -> Result<String, PublishingError> {
        let send = self.client.send_message().queue_url(&self.url).message_body(body);
        let topic = text_attribute(&topic.to_string());
        match send.message_attributes(TOPIC_ATTRIBUTE, topic).send().await {
            Ok(sent) => Ok(sent.message_id().unwrap_or_default().to_owned()),
            Err(error) if error.code().is_some_and(|code| OF_THE_MESSAGE.contains(&code)) => {
                Err(PublishingError::Refused(sentence(&error)))
            }
            Err(error) => Err(PublishingError::Unavailable(sentence(&error))),
        }
    }
}
