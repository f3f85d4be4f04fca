//! Sends messages to SQS, and batches concurrent sends.
//!
//! Each caller sends one message and gets its own result. Sends within a few milliseconds share one
//! `SendMessageBatch`, so ten failures in one batch of records cost one call. Messages that were
//! refused for a temporary reason ([`crate::resend`]) are sent again. All tries together end within
//! [`OPERATION_TIMEOUT`]. A message that has to wait is delayed by [`delay_seconds`]. If its wait
//! is longer than SQS can delay it, the message is received early and re-enqueued.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message_batch::{SendMessageBatchError, SendMessageBatchOutput};
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use delivery::ports::{
    JitterSource as _, MESSAGE_MAX_BYTES, Message, MessageGroup, Queue, QueueError, QueueName,
};
use delivery::waits::{delay_seconds, resend_ms};
use futures::FutureExt as _;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::aws_error::sentence;
use crate::machine::Machine;
use crate::resend::{self, Refusal};
use crate::timeouts::OPERATION_TIMEOUT;

/// Maximum number of messages in a batch. Their total size is at most 1 MiB, the limit of one
/// message.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
pub const BATCH_ENTRIES_MAX: usize = 10;
/// Time that the first message of a batch waits for others.
pub const BATCH_WINDOW: Duration = Duration::from_millis(10);
/// Maximum number of concurrent calls per queue. A process that sends to four queues makes at most
/// 32. Each call needs a socket and holds up to 1 MiB of messages; requests to destinations need
/// further sockets (`dispatch::destination`). At 20 ms per call, eight concurrent calls send 4,000
/// messages a second. The limit is per queue, so that a stuck queue cannot block another queue, to
/// which its messages are sent instead.
const CALLS_AT_ONCE: usize = 8;

/// Sends messages to the queues of a deployment.
#[derive(Debug, Clone)]
pub struct SqsQueues {
    client: Client,
    queues: Arc<HashMap<QueueName, KnownQueue>>,
    pending: Arc<Mutex<HashMap<QueueName, Vec<Pending>>>>,
}

/// A queue to which the function sends, and the permits for calls to that queue.
#[derive(Debug)]
struct KnownQueue {
    url: String,
    calls: Semaphore,
}

/// A message that waits for its batch, and the channel for its result.
#[derive(Debug)]
struct Pending {
    message: Message,
    result: oneshot::Sender<Result<(), QueueError>>,
    /// The reason why the last try failed.
    problem: String,
}

impl SqsQueues {
    /// Creates a sender to these queues, each with its URL.
    #[must_use]
    pub fn new(client: Client, urls: impl IntoIterator<Item = (QueueName, String)>) -> Self {
        let known = |url| KnownQueue { url, calls: Semaphore::new(CALLS_AT_ONCE) };
        let queues = Arc::new(urls.into_iter().map(|(name, url)| (name, known(url))).collect());
        Self { client, queues, pending: Arc::default() }
    }

    /// Adds a message to the waiting messages of a queue. Returns the batch that became full, if
    /// any, and true if the message is the first of a new batch.
    fn enqueue(&self, queue: QueueName, pending: Pending) -> (Vec<Pending>, bool) {
        // A std mutex is sufficient, because it is never held across an await.
        let mut queues = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = queues.entry(queue).or_default();
        // Recomputed each time, because at most nine messages wait.
        let bytes: usize = waiting.iter().map(|other| other.message.size_bytes()).sum();
        let mut full = Vec::new();
        if bytes + pending.message.size_bytes() > MESSAGE_MAX_BYTES {
            // The new message begins the next batch, because all messages together would exceed the
            // size of one call.
            full = std::mem::take(waiting);
        }
        waiting.push(pending);
        let first = waiting.len() == 1;
        if waiting.len() == BATCH_ENTRIES_MAX {
            full = std::mem::take(waiting);
        }
        (full, first)
    }

    fn take(&self, queue: QueueName) -> Vec<Pending> {
        let mut queues = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        queues.get_mut(&queue).map(std::mem::take).unwrap_or_default()
    }

    /// Sends one batch, and passes the result of each message to the task that waits for it.
    async fn send_batch(&self, queue: QueueName, mut batch: Vec<Pending>) {
        // The batch may already have been sent because it was full.
        if batch.is_empty() {
            return;
        }
        match self.queues.get(&queue) {
            // Messages without a final result stay in the batch.
            Some(to) => drop(timeout(OPERATION_TIMEOUT, self.send_again(to, &mut batch)).await),
            None => batch.iter_mut().for_each(|pending| {
                pending.problem = format!("this function has no URL for the queue {queue:?}");
            }),
        }
        batch.into_iter().for_each(Pending::refuse);
    }

    /// Sends a batch repeatedly. Stops when each message was accepted or permanently refused, or
    /// when [`resend_ms`] permits no further try.
    async fn send_again(&self, to: &KnownQueue, batch: &mut Vec<Pending>) {
        for tries in 1.. {
            self.send_once(to, batch).await;
            // A sender that stopped waiting may have used another queue.
            batch.retain(|pending| !pending.result.is_closed());
            let wait_ms = resend_ms(tries, Machine.next_jitter());
            let Some(wait_ms) = wait_ms.filter(|_| !batch.is_empty()) else { return };
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// Sends a batch once. Leaves in the batch only messages that the queue may accept later.
    async fn send_once(&self, to: &KnownQueue, batch: &mut Vec<Pending>) {
        // The semaphore is never closed; if it were, the calls would not be limited.
        let _call = to.calls.acquire().await;
        let entry = |(index, pending): (usize, &Pending)| self.entry(index, &pending.message);
        let entries = batch.iter().enumerate().map(entry).collect();
        let send = self.client.send_message_batch().queue_url(&to.url).set_entries(Some(entries));
        // Disable the client's retries, because only this module retries.
        let once = Builder::new().retry_config(RetryConfig::disabled());
        let answer = send.customize().config_override(once).send().await;
        for (index, mut pending) in std::mem::take(batch).into_iter().enumerate() {
            let result = match &answer {
                Ok(output) => result_of_entry(output, &index.to_string()),
                Err(error) => Err(refusal_of_call(error)),
            };
            match result {
                Ok(()) => pending.accept(),
                Err((may_pass, problem)) => {
                    pending.problem = problem;
                    if may_pass { batch.push(pending) } else { pending.refuse() }
                }
            }
        }
    }

    fn entry(&self, index: usize, message: &Message) -> SendMessageBatchRequestEntry {
        let mut entry = SendMessageBatchRequestEntry::builder()
            // An id has to be unique only within its batch.
            .id(index.to_string())
            .message_body(message.body.as_ref())
            .delay_seconds(i32::try_from(delay_seconds(message.wait_ms)).expect("at most 900"));
        for (name, value) in message.attributes() {
            entry = entry.message_attributes(name, text_attribute(&value));
        }
        entry = entry.set_message_group_id(group_id(&message.group));
        entry.build().expect("id and body are set")
    }
}

impl Queue for SqsQueues {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        let (result, received) = oneshot::channel();
        let problem = "the queue did not respond in time".to_owned();
        let (full, first) = self.enqueue(queue, Pending { message, result, problem });
        // Spawned, because a batch belongs to all its senders and must outlive each of them.
        if !full.is_empty() {
            let queues = self.clone();
            tokio::spawn(async move { queues.send_batch(queue, full).await });
        }
        if first {
            let queues = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(BATCH_WINDOW).await;
                // If the batch became full, it has already been sent. Then this call sends the
                // messages that were added later, if any.
                queues.send_batch(queue, queues.take(queue)).await;
            });
        }
        received
            .await
            .unwrap_or_else(|_| Err(QueueError("the sending task stopped early".to_owned())))
    }

    async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
        let Some(KnownQueue { url, .. }) = self.queues.get(&queue) else {
            return tracing::warn!(
                ?queue,
                "record.not_hidden: this function has no URL for the queue"
            );
        };
        let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        let change = self.client.change_message_visibility().queue_url(url).receipt_handle(receipt);
        // Only a warning: the record is redelivered after the queue's own timeout instead.
        let changed = change.visibility_timeout(seconds).send();
        // Boxed, because the future is large and few records need it.
        if let Err(error) = changed.boxed().await {
            tracing::warn!(?queue, error = sentence(&error), "record.not_hidden");
        }
    }
}

impl Pending {
    fn accept(self) {
        // A sender that no longer waits was dropped with its invocation; its record is redelivered.
        let _ = self.result.send(Ok(()));
    }

    fn refuse(self) {
        let _ = self.result.send(Err(QueueError(self.problem)));
    }
}

/// A refusal by the queue. The first value is true if the queue may accept the message later; the
/// second is the reason.
type Refused = (bool, String);

fn result_of_entry(output: &SendMessageBatchOutput, id: &str) -> Result<(), Refused> {
    if let Some(entry) = output.failed().iter().find(|entry| entry.id() == id) {
        let refusal = Refusal::Answered { code: entry.code(), sender_fault: entry.sender_fault() };
        let problem = format!("{}: {}", entry.code(), entry.message().unwrap_or_default());
        return Err((resend::may_pass(refusal), problem));
    }
    if output.successful().iter().any(|entry| entry.id() == id) {
        return Ok(());
    }
    let problem = "the response does not mention the message".to_owned();
    Err((resend::may_pass(Refusal::Unanswered), problem))
}

/// Returns the reason why a whole call failed, and whether a later call may succeed.
fn refusal_of_call(error: &SdkError<SendMessageBatchError>) -> Refused {
    let refusal = match error.raw_response() {
        Some(response) if error.as_service_error().is_some() => Refusal::Answered {
            code: error.code().unwrap_or_default(),
            sender_fault: response.status().is_client_error(),
        },
        Some(_) | None => Refusal::Unanswered,
    };
    (resend::may_pass(refusal), sentence(error))
}

/// Creates a message attribute with a text value.
#[must_use]
pub fn text_attribute(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type("String")
        .string_value(value)
        .build()
        .expect("the type is set")
}

/// Returns the id of a message group in a fair queue. The id of a subscription is the SHA-256 of
/// its name in hex, because names may contain characters that a group id must not contain.
fn group_id(group: &MessageGroup) -> Option<String> {
    match group {
        MessageGroup::Subscription(name) => Some(hex::encode(Sha256::digest(name.to_string()))),
        MessageGroup::Publisher(group) => {
            group.as_ref().map(|group| hex::encode(Sha256::digest(format!("publisher {group}"))))
        }
        MessageGroup::Received(group) => group.clone(),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::config::{BehaviorVersion, Config};
    use delivery::ports::Attribute;

    use super::*;

    #[test]
    fn the_group_of_a_subscription_is_its_sha256() {
        let group = |name: &str| group_id(&MessageGroup::Subscription(name.parse().unwrap()));
        let sha256_of_a_b_c = "d76a7b72669c9cec266b566bdec68efbc8d4f22d1f2689bbf0146bf0b88fdbe9";
        assert_eq!(group("a/b/c").as_deref(), Some(sha256_of_a_b_c));
        assert_eq!(group_id(&MessageGroup::Publisher(None)), None);
        // The group of a publisher never equals that of a subscription.
        let of_publisher = group_id(&MessageGroup::Publisher(group("a/b/c")));
        assert!(of_publisher.is_some() && of_publisher != group("a/b/c"));
        assert_eq!(group_id(&MessageGroup::Received(group("a/b/c"))), group("a/b/c"));
    }

    #[test]
    fn the_size_of_a_batch_includes_the_attributes_of_its_messages() {
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).build();
        let queues = SqsQueues::new(Client::from_conf(config), []);
        let enqueue = || {
            let message = Message {
                body: "{}".into(),
                topic: None,
                attribute: Attribute::Delivery("x".repeat(MESSAGE_MAX_BYTES * 2 / 3)),
                group: MessageGroup::Received(None),
                receives: 0,
                unread: 0,
                wait_ms: 0,
            };
            let (result, problem) = (oneshot::channel().0, String::new());
            let (full, _) = queues.enqueue(QueueName::Retry, Pending { message, result, problem });
            full.len()
        };
        assert_eq!([enqueue(), enqueue(), enqueue()], [0, 1, 1]);
    }
}
