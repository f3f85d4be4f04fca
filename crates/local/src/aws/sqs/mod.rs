//! SQS in memory, with the limits of the real service.
//!
//! The engine is `rustack-sqs-core`. A thin layer corrects misleading differences from SQS: it
//! wraps every message in an [`envelope`], checks numbers against the real [`limits`], and waits
//! for [`arrivals`] itself. Before the queues stop, dead letters whose delay is not over are
//! released from copies ([`delayed`]). The README of this crate lists the differences.
//!
//! Promises: standard queues that accept 1 MiB and refuse the same requests as AWS. Loses messages
//! at a restart, does not expire them, and does not support FIFO queues.

mod arrivals;
mod delayed;
mod envelope;
mod error_response;
mod limits;
mod operations;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::handler::RustackSqsHandler;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_http::dispatch::SqsHandler;
use rustack_sqs_http::response;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::{CreateQueueInput, GetQueueAttributesInput};
use rustack_sqs_model::operations::SqsOperation;

use super::{ACCOUNT, QueueConfig, REGION};
use arrivals::Arrivals;
use delayed::Delayed;
use operations::handle;

/// Maximum retention of a message, 14 days (SQS quotas, message retention).
const RETENTION_SECONDS: u32 = 1_209_600;

/// Queue attributes whose sum is the number of messages in a queue.
const COUNTS: [&str; 3] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
];

/// Name of the queue whose delayed messages can be released.
const RELEASABLE: &str = "dead-letter";

/// All queues of the local AWS.
#[derive(Debug)]
pub(super) struct Queues {
    engine: Arc<Engine>,
    /// Handles the operations that this layer does not change.
    unchanged: RustackSqsHandler,
    port: u16,
    names: Vec<String>,
    /// Number of released messages. The engine counts each one twice, because the delayed original
    /// remains.
    released: AtomicU64,
}

/// The queue engine, with the waiting receives and the copies of delayed messages.
#[derive(Debug)]
struct Engine {
    provider: Arc<RustackSqs>,
    arrivals: Arrivals,
    delayed: Arc<Delayed>,
}

impl Queues {
    /// Creates the queues. The URLs of the queues contain `port`.
    pub(super) async fn create(port: u16, queues: &[QueueConfig]) -> anyhow::Result<Self> {
        let config = SqsConfig {
            skip_signature_validation: true,
            default_region: REGION.to_owned(),
            account_id: ACCOUNT.to_owned(),
            host: "127.0.0.1".to_owned(),
            port,
        };
        let provider = Arc::new(RustackSqs::new(config));
        for queue in queues {
            let created = provider.create_queue(create_request(queue)).await;
            created.map_err(|error| queue_error(&queue.name, &error))?;
        }
        let unchanged = RustackSqsHandler::new(Arc::clone(&provider));
        let engine =
            Arc::new(Engine { provider, arrivals: Arrivals::default(), delayed: Arc::default() });
        let names = queues.iter().map(|queue| queue.name.clone()).collect();
        Ok(Self { engine, unchanged, port, names, released: AtomicU64::new(0) })
    }

    /// Returns the number of messages in each configured queue, by the queue's name.
    pub(super) async fn messages_held(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let mut held = BTreeMap::new();
        for name in &self.names {
            let count = self.count(name).await?;
            let twice = if name == RELEASABLE { self.released.load(Ordering::Relaxed) } else { 0 };
            held.insert(name.clone(), count.saturating_sub(twice));
        }
        Ok(held)
    }

    /// Makes the delayed messages of the dead-letter queue visible now.
    pub(super) async fn release(&self) -> anyhow::Result<()> {
        for message in self.engine.delayed.take() {
            let sent = self.engine.provider.send_message(message).await;
            sent.map_err(|error| queue_error(RELEASABLE, &error))?;
            self.released.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) async fn shutdown(&self) {
        self.engine.provider.shutdown_all().await;
    }

    async fn count(&self, name: &str) -> anyhow::Result<u64> {
        let input = GetQueueAttributesInput {
            queue_url: format!("http://127.0.0.1:{}/{ACCOUNT}/{name}", self.port),
            attribute_names: COUNTS.map(str::to_owned).to_vec(),
        };
        let output = self.engine.provider.get_queue_attributes(input).await;
        let attributes = output.map_err(|error| queue_error(name, &error))?.attributes;
        Ok(COUNTS.iter().filter_map(|count| attributes.get(*count)?.parse::<u64>().ok()).sum())
    }
}

/// Returns the request that creates a queue.
fn create_request(queue: &QueueConfig) -> CreateQueueInput {
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

fn queue_error(queue: &str, error: &SqsError) -> anyhow::Error {
    anyhow::anyhow!("the queue {queue} cannot be used: {}", error.message)
}

/// Creates a response with a JSON body.
fn json_response(json: Vec<u8>) -> Response<SqsResponseBody> {
    let mut response = Response::new(SqsResponseBody::from_json(json));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(response::CONTENT_TYPE));
    response
}

type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<Response<SqsResponseBody>, SqsError>> + Send>>;

impl SqsHandler for Queues {
    fn handle_operation(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let handled = self.handle(operation, body);
        Box::pin(async move {
            Ok(handled.await.unwrap_or_else(|error| error_response::for_error(&error)))
        })
    }
}

impl Queues {
    /// Executes an operation that this layer changes. Passes every other operation to the engine.
    fn handle(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let engine = Arc::clone(&self.engine);
        match operation {
            SqsOperation::CreateQueue => handle(engine, body, operations::create),
            SqsOperation::GetQueueAttributes => handle(engine, body, operations::attributes),
            SqsOperation::SendMessage => handle(engine, body, operations::send),
            SqsOperation::SendMessageBatch => handle(engine, body, operations::send_batch),
            SqsOperation::ReceiveMessage => handle(engine, body, operations::receive),
            SqsOperation::ChangeMessageVisibility => {
                handle(engine, body, operations::change_visibility)
            }
            SqsOperation::ChangeMessageVisibilityBatch => {
                handle(engine, body, operations::change_visibility_batch)
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
