//! The queue of reports and the topic of messages, on AWS.

use adapters::aws_error::sentence;
use adapters::machine::Machine;
use aws_config::SdkConfig;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use delivery::ports::Clock as _;

use crate::ports::{Ports, Refused};
use crate::report::Report;
use crate::settings::NotifySettings;

/// Maximum number of messages per receive.
const RECEIVED_MAX: i32 = 10;
/// Long-polling time of each receive. With long polling, SQS queries all its servers, so an empty
/// response means that no report is left.
const WAIT_SECONDS: i32 = 1;

/// The AWS clients for the queue of reports and the topic of messages.
#[derive(Debug)]
pub struct AwsPorts {
    queue: aws_sdk_sqs::Client,
    queue_url: String,
    topic: aws_sdk_sns::Client,
    topic_arn: String,
}

impl AwsPorts {
    /// Creates the clients for these settings.
    #[must_use]
    pub fn new(config: &SdkConfig, settings: &NotifySettings) -> Self {
        Self {
            queue: aws_sdk_sqs::Client::new(config),
            queue_url: settings.queue_url.clone(),
            topic: aws_sdk_sns::Client::new(config),
            topic_arn: settings.topic_arn.clone(),
        }
    }
}

impl Ports for AwsPorts {
    fn now_ms(&self) -> u64 {
        Machine.now_ms()
    }

    async fn receive(&self) -> Result<Vec<Report>, Refused> {
        let receive = self.queue.receive_message().queue_url(&self.queue_url);
        let receive = receive.max_number_of_messages(RECEIVED_MAX).wait_time_seconds(WAIT_SECONDS);
        let received = receive.send().await.map_err(|error| Refused(sentence(&error)))?;
        let report = |message: aws_sdk_sqs::types::Message| {
            Some(Report {
                receipt: message.receipt_handle?,
                body: message.body.unwrap_or_default(),
            })
        };
        Ok(received.messages.unwrap_or_default().into_iter().filter_map(report).collect())
    }

    async fn publish(&self, subject: &str, text: &str) -> Result<(), Refused> {
        let publish = self.topic.publish().topic_arn(&self.topic_arn);
        let published = publish.subject(subject).message(text).send().await;
        published.map(drop).map_err(|error| Refused(sentence(&error)))
    }

    async fn delete(&self, receipts: &[String]) -> Result<(), Refused> {
        let entry = |(place, receipt): (usize, &String)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string());
            entry.receipt_handle(receipt).build().expect("both required members are set")
        };
        let entries = receipts.iter().enumerate().map(entry).collect();
        let delete = self.queue.delete_message_batch().queue_url(&self.queue_url);
        let deleted = delete.set_entries(Some(entries)).send().await;
        let deleted = deleted.map_err(|error| Refused(sentence(&error)))?;
        let problem = |failed: &aws_sdk_sqs::types::BatchResultErrorEntry| {
            Refused(failed.message().unwrap_or(failed.code()).to_owned())
        };
        deleted.failed().first().map_or(Ok(()), |failed| Err(problem(failed)))
    }
}
