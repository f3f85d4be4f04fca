//! The event source mapping: Lambda's poller between a queue and a function.
//!
//! Separate from the local AWS because the mapping works with any queue that a client reaches.
//!
//! Promises: Lambda's rules. Events have Lambda's format, and concurrent invocations are limited.
//! After a successful invocation, all messages are deleted except those that the function reports
//! as failed. An error or an unknown identifier fails the whole batch. Failed messages are
//! redelivered after their visibility timeout. Does not filter, wait to fill a batch, or read FIFO
//! queues. <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

pub mod event;
mod partial_batch;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// Long-polling time of a receive: the maximum of SQS (SQS quotas, long polling).
const WAIT_SECONDS: i32 = 20;

/// Pause before polling after the first failure. Each further consecutive failure doubles the
/// pause.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Maximum pause before polling.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A clock that returns milliseconds since 1970.
pub type NowMs = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The configuration of a mapping: a queue, and the limits for reading it.
#[derive(Clone)]
pub struct EventSourceMapping {
    /// The client with which the queue is read.
    pub client: Client,
    /// The URL of the queue, as SQS returns it.
    pub queue_url: String,
    /// The name of the queue, for the ARN in the events.
    pub queue_name: String,
    /// Maximum number of messages per invocation, from 1 to 10.
    pub batch_size: u8,
    /// Maximum number of concurrent invocations, at least 1.
    pub concurrency: u8,
    /// Timeout of an invocation. After this time, the invocation is cancelled and its batch fails.
    pub function_timeout: Duration,
    /// The clock from which deadlines of invocations are computed.
    pub now_ms: NowMs,
}

impl EventSourceMapping {
    /// Polls the queue and invokes `handler` with each batch and its deadline, in milliseconds
    /// since 1970. Stops when `shutdown` completes, and then waits for the running invocations.
    pub async fn run<H, F, E>(self, handler: H, shutdown: impl Future<Output = ()>)
    where
        H: Fn(SqsEvent, u64) -> F + Send + Sync + 'static,
        F: Future<Output = Result<SqsBatchResponse, E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let poller = Arc::new(Poller {
            permits: Arc::new(Semaphore::new(usize::from(self.concurrency.max(1)))),
            failures: AtomicU32::new(0),
            mapping: self,
            handler,
        });
        let mut invocations = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            // Biased, so that a queue that always has messages cannot delay a shutdown.
            let batch = tokio::select! {
                biased;
                () = &mut shutdown => break,
                batch = poller.next_batch() => batch,
            };
            if let Some((messages, permit)) = batch {
                invocations.spawn(Arc::clone(&poller).handle(messages, permit));
            }
            // Join finished invocations here, so that the set does not grow without limit.
            while let Some(ended) = invocations.try_join_next() {
                poller.record_outcome(ended);
            }
        }
        while let Some(ended) = invocations.join_next().await {
            poller.record_outcome(ended);
        }
    }
}

impl EventSourceMapping {
    /// Invokes `handler` with the messages of the queue, until no message is visible.
    pub async fn drain<H, F, E>(&self, handler: H)
    where
        H: Fn(SqsEvent, u64) -> F,
        F: Future<Output = Result<SqsBatchResponse, E>>,
        E: fmt::Display,
    {
        let poller = Arc::new(Poller {
            permits: Arc::new(Semaphore::new(1)),
            failures: AtomicU32::new(0),
            mapping: self.clone(),
            handler,
        });
        while let Some(messages) = self.receive(0).await.filter(|messages| !messages.is_empty())
            && let Ok(permit) = Arc::clone(&poller.permits).acquire_owned().await
        {
            Arc::clone(&poller).handle(messages, permit).await;
        }
    }
}

/// The state of a running mapping.
struct Poller<H> {
    mapping: EventSourceMapping,
    handler: H,
    permits: Arc<Semaphore>,
    /// Number of consecutive failed invocations and receives.
    failures: AtomicU32,
}

impl<H, F, E> Poller<H>
where
    H: Fn(SqsEvent, u64) -> F,
    F: Future<Output = Result<SqsBatchResponse, E>>,
    E: fmt::Display,
{
    /// Invokes the handler for one batch, and deletes the messages that succeeded.
    async fn handle(self: Arc<Self>, messages: Vec<Message>, permit: OwnedSemaphorePermit) {
        match self.invoke(&messages).await {
            Ok(done) => {
                self.failures.store(0, Ordering::Relaxed);
                self.mapping.delete(done).await;
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(queue = %self.mapping.queue_name, %error, "a batch failed and will be redelivered");
            }
        }
        drop(permit);
    }

    /// Invokes the handler for one batch. Returns the messages that succeeded.
    async fn invoke<'a>(&self, messages: &'a [Message]) -> anyhow::Result<Vec<&'a Message>> {
        let timeout = self.mapping.function_timeout;
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = (self.mapping.now_ms)().saturating_add(timeout_ms);
        let event = event::sqs_event(messages, &self.mapping.queue_name);
        let outcome = tokio::time::timeout(timeout, (self.handler)(event, deadline_ms)).await;
        let response = outcome.context("the function timed out")?;
        let response =
            response.map_err(|error| anyhow!("the function returned an error: {error}"))?;
        partial_batch::done(messages, &response)
    }
}

impl<H> Poller<H> {
    /// Waits for the pause, then for a permit and for messages. Returns `None` if no message
    /// arrived.
    async fn next_batch(&self) -> Option<(Vec<Message>, OwnedSemaphorePermit)> {
        tokio::time::sleep(pause(self.failures.load(Ordering::Relaxed))).await;
        // Acquire the permit first: a received message is invisible and must not wait for an
        // invocation.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let messages = self.mapping.receive(WAIT_SECONDS).await;
        if messages.is_none() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        messages.filter(|messages| !messages.is_empty()).map(|messages| (messages, permit))
    }

    /// Logs an invocation that panicked, and counts it as a failure.
    fn record_outcome(&self, ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            self.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(queue = %self.mapping.queue_name, %error, "a function panicked");
        }
    }
}

impl EventSourceMapping {
    /// Receives at most one batch; returns `None` if the request to the queue fails.
    async fn receive(&self, wait_seconds: i32) -> Option<Vec<Message>> {
        let request = self.client.receive_message();
        let received = request
            .queue_url(&self.queue_url)
            .max_number_of_messages(i32::from(self.batch_size.clamp(1, 10)))
            .wait_time_seconds(wait_seconds)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await;
        match received {
            Ok(output) => Some(output.messages.unwrap_or_default()),
            Err(error) => {
                let error = DisplayErrorContext(&error);
                tracing::warn!(queue = %self.queue_name, %error, "messages cannot be received");
                None
            }
        }
    }

    /// Deletes messages. SQS redelivers a message that cannot be deleted.
    async fn delete(&self, messages: Vec<&Message>) {
        if messages.is_empty() {
            return;
        }
        let entries = messages.iter().enumerate().filter_map(|(position, message)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(position.to_string());
            entry.set_receipt_handle(message.receipt_handle.clone()).build().ok()
        });
        let request = self.client.delete_message_batch().queue_url(&self.queue_url);
        match request.set_entries(Some(entries.collect())).send().await {
            Ok(output) => {
                for failed in output.failed() {
                    tracing::warn!(queue = %self.queue_name, code = failed.code(), "a message was not deleted");
                }
            }
            Err(error) => {
                let error = DisplayErrorContext(&error);
                tracing::warn!(queue = %self.queue_name, %error, "messages were not deleted and will be redelivered");
            }
        }
    }
}

/// Returns the pause before polling after this many consecutive failures: none, 0.25, 0.5, 1, 2, 4,
/// then 8 s.
fn pause(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(further) => FIRST_PAUSE
            .saturating_mul(1_u32.checked_shl(further).unwrap_or(u32::MAX))
            .min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_pauses_longer_with_each_failure_in_a_row_up_to_a_bound() {
        let pauses_ms: Vec<u128> = (0..8).map(|failures| pause(failures).as_millis()).collect();
        assert_eq!(pauses_ms, [0, 250, 500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }

    #[tokio::test]
    async fn a_successful_invocation_ends_the_pause() {
        let calls = AtomicU32::new(0);
        let config = aws_sdk_sqs::Config::builder().behavior_version_latest().build();
        let poller = Arc::new(Poller {
            mapping: EventSourceMapping {
                client: Client::from_conf(config),
                queue_url: String::new(),
                queue_name: "events".to_owned(),
                batch_size: 10,
                concurrency: 1,
                function_timeout: Duration::from_secs(1),
                now_ms: Arc::new(|| 0),
            },
            handler: move |_, _| {
                let is_broken = calls.fetch_add(1, Ordering::Relaxed) < 2;
                std::future::ready(if is_broken {
                    Err("the function is broken")
                } else {
                    Ok(SqsBatchResponse::default())
                })
            },
            permits: Arc::new(Semaphore::new(1)),
            failures: AtomicU32::new(0),
        });
        for failures in [1, 2, 0] {
            let permit = Arc::clone(&poller.permits).acquire_owned().await.unwrap();
            Arc::clone(&poller).handle(Vec::new(), permit).await;
            assert_eq!(poller.failures.load(Ordering::Relaxed), failures);
        }
    }
}
