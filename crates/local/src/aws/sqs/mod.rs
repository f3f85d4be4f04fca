//! SQS in memory, with the limits of the real one.
//!
//! The queues are `rustack-sqs-core`'s. A thin layer stands before them because on their own they
//! differ where it would mislead: they take at most 256 KiB, accept a delay of 901 s, refuse a
//! group on a standard queue, lose the trace header, name errors as no client knows them, and break
//! when a timeout is negative. So every message travels through them in an [`envelope`], and
//! numbers are checked against the real [`limits`]. It promises standard queues that take 1 MiB and
//! refuse what AWS refuses. It does not keep messages over a restart, expire them, or know FIFO
//! queues.

mod envelope;
mod limits;
mod operations;
mod refusal;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::handler::RustackSqsHandler;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_http::dispatch::SqsHandler;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::{CreateQueueInput, GetQueueAttributesInput};
use rustack_sqs_model::operations::SqsOperation;

use super::{ACCOUNT, Error, QueueConfig, REGION};

/// The longest a queue keeps a message, 14 days (SQS quotas, message retention).
const RETENTION_SECONDS: u32 = 1_209_600;

/// The three counts that together are every message a queue holds.
const COUNTS: [&str; 3] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
];

/// Every queue of the local AWS.
#[derive(Debug)]
pub(super) struct Queues {
    provider: Arc<RustackSqs>,
    unchanged: RustackSqsHandler,
    port: u16,
    names: Vec<String>,
}

impl Queues {
    /// Creates the queues; their URLs name the port.
    pub(super) async fn create(port: u16, queues: &[QueueConfig]) -> Result<Self, Error> {
        let config = SqsConfig {
            skip_signature_validation: true,
            default_region: REGION.to_owned(),
            account_id: ACCOUNT.to_owned(),
            host: "127.0.0.1".to_owned(),
            port,
        };
        let provider = Arc::new(RustackSqs::new(config));
        for queue in queues {
            let made = provider.create_queue(creation(queue)).await;
            made.map_err(|error| broken(&queue.name, &error))?;
        }
        let unchanged = RustackSqsHandler::new(Arc::clone(&provider));
        let names = queues.iter().map(|queue| queue.name.clone()).collect();
        Ok(Self { provider, unchanged, port, names })
    }

    /// How many messages each of the first queues holds, by name.
    pub(super) async fn messages_held(&self) -> Result<BTreeMap<String, u64>, Error> {
        let mut held = BTreeMap::new();
        for name in &self.names {
            held.insert(name.clone(), self.count(name).await?);
        }
        Ok(held)
    }

    /// Ends every queue.
    pub(super) async fn shutdown(&self) {
        self.provider.shutdown_all().await;
    }

    async fn count(&self, name: &str) -> Result<u64, Error> {
        let input = GetQueueAttributesInput {
            queue_url: format!("http://127.0.0.1:{}/{ACCOUNT}/{name}", self.port),
            attribute_names: COUNTS.map(str::to_owned).to_vec(),
        };
        let output = self.provider.get_queue_attributes(input).await;
        let attributes = output.map_err(|error| broken(name, &error))?.attributes;
        Ok(COUNTS.iter().filter_map(|count| attributes.get(*count)?.parse::<u64>().ok()).sum())
    }
}

/// The request that creates a queue.
fn creation(queue: &QueueConfig) -> CreateQueueInput {
    let mut attributes = HashMap::from([
        ("VisibilityTimeout".to_owned(), queue.visibility_timeout_seconds.to_string()),
        ("MessageRetentionPeriod".to_owned(), RETENTION_SECONDS.to_string()),
    ]);
    if let Some(redrive) = &queue.redrive {
        let policy = serde_json::json!({
            "deadLetterTargetArn": format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{}", redrive.to),
            "maxReceiveCount": redrive.after_receives,
        });
        attributes.insert("RedrivePolicy".to_owned(), policy.to_string());
    }
    CreateQueueInput { queue_name: queue.name.clone(), attributes, ..CreateQueueInput::default() }
}

fn broken(queue: &str, error: &SqsError) -> Error {
    Error::Queue { queue: queue.to_owned(), reason: error.message.clone() }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<SqsResponseBody>, SqsError>> + Send>>;

impl SqsHandler for Queues {
    fn handle_operation(&self, operation: SqsOperation, body: Bytes) -> Answer {
        let answered = self.answer(operation, body);
        Box::pin(async move { Ok(answered.await.unwrap_or_else(|error| refusal::of(&error))) })
    }
}

impl Queues {
    /// Sends an operation to the layer or to the engine.
    fn answer(&self, operation: SqsOperation, body: Bytes) -> Answer {
        let provider = Arc::clone(&self.provider);
        match operation {
            SqsOperation::CreateQueue => {
                operations::answer(body, |input| operations::create(provider, input))
            }
            SqsOperation::GetQueueAttributes => {
                operations::answer(body, |input| operations::attributes(provider, input))
            }
            SqsOperation::SendMessage => {
                operations::answer(body, |input| operations::send(provider, input))
            }
            SqsOperation::SendMessageBatch => {
                operations::answer(body, |input| operations::send_batch(provider, input))
            }
            SqsOperation::ReceiveMessage => {
                operations::answer(body, |input| operations::receive(provider, input))
            }
            SqsOperation::ChangeMessageVisibility => {
                operations::answer(body, |input| operations::change_visibility(provider, input))
            }
            SqsOperation::ChangeMessageVisibilityBatch => {
                operations::answer(body, |input| operations::hide_batch(provider, input))
            }
            SqsOperation::DeleteQueue
            | SqsOperation::GetQueueUrl
            | SqsOperation::ListQueues
            | SqsOperation::SetQueueAttributes
            | SqsOperation::PurgeQueue
            | SqsOperation::DeleteMessage
            | SqsOperation::DeleteMessageBatch
            | SqsOperation::TagQueue
            | SqsOperation::UntagQueue
            | SqsOperation::ListQueueTags
            | SqsOperation::AddPermission
            | SqsOperation::RemovePermission
            | SqsOperation::ListDeadLetterSourceQueues
            | SqsOperation::StartMessageMoveTask
            | SqsOperation::CancelMessageMoveTask
            | SqsOperation::ListMessageMoveTasks => {
                self.unchanged.handle_operation(operation, body)
            }
        }
    }
}
