//! Waiting receives: long polls that end as soon as a message is visible.
//!
//! Separate because the engine checks delayed messages only once a second, so a delay of one second
//! may take two. Therefore this layer does the waiting. Each operation that makes a message visible
//! announces the message here, immediately or after its delay. Each waiting receive of the queue
//! then checks again.
//!
//! Promises: a delay has its requested length, to a few milliseconds. Holds no messages. A message
//! without an announcement (returned after its visibility timeout, or moved by a redrive policy) is
//! found within [`LOOK_EVERY`].

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::ReceiveMessageInput;
use rustack_sqs_model::output::ReceiveMessageOutput;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Maximum interval between two checks of a waiting receive.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Notifies waiting receives of new messages, by the name of the queue.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    queues: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Arrivals {
    /// Announces a message that becomes visible after `delay_seconds`.
    pub(super) fn announce(&self, queue_url: &str, delay_seconds: i32) {
        let queue = self.notifier(queue_url);
        let delay = Duration::from_secs(u64::try_from(delay_seconds).unwrap_or_default());
        if delay.is_zero() {
            queue.notify_waiters();
            return;
        }
        // The delay of the message began before this sleep, so the message is visible when the
        // sleep ends.
        tokio::spawn(async move {
            sleep(delay).await;
            queue.notify_waiters();
        });
    }

    /// Receives messages. Waits for at most the request's `WaitTimeSeconds`, or the wait time of
    /// the queue if the request has none.
    pub(super) async fn receive(
        &self,
        provider: &RustackSqs,
        input: ReceiveMessageInput,
    ) -> Result<ReceiveMessageOutput, SqsError> {
        let wait = input.wait_time_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let Some(wait) = wait.filter(|seconds| *seconds > 0).map(Duration::from_secs) else {
            // The wait time of the queue applies if the request has none.
            return provider.receive_message(input).await;
        };
        let look = ReceiveMessageInput { wait_time_seconds: Some(0), ..input };
        let output = provider.receive_message(look.clone()).await?;
        if !output.messages.is_empty() {
            return Ok(output);
        }
        let queue = self.notifier(&look.queue_url);
        let mut end = pin!(sleep(wait));
        loop {
            // Register before the check, or an arrival in between is missed.
            let arrival = queue.notified();
            let output = provider.receive_message(look.clone()).await?;
            if !output.messages.is_empty() {
                return Ok(output);
            }
            tokio::select! {
                () = &mut end => return Ok(output),
                () = arrival => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Returns the notifier of a queue. Uses only the name of the queue, because its URLs may have
    /// different hosts.
    fn notifier(&self, queue_url: &str) -> Arc<Notify> {
        let name = queue_url.rsplit('/').next().unwrap_or_default();
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(queues.entry(name.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use rustack_sqs_model::input::{ChangeMessageVisibilityInput, SendMessageInput};
    use tokio::time::Instant;

    use super::super::operations::{change_visibility, receive, send};
    use super::super::{Engine, Queues};
    use super::*;
    use crate::aws::QueueConfig;

    const URL: &str = "http://127.0.0.1:1/000000000000/retry";
    /// The most by which a delay may exceed the requested time.
    const TOLERANCE_MS: u128 = 50;

    async fn engine(visibility_timeout_seconds: u32) -> Arc<Engine> {
        let name = "retry".to_owned();
        let queue = QueueConfig { name, visibility_timeout_seconds, redrive: None };
        Queues::create(1, &[queue]).await.expect("a queue").engine
    }

    async fn sent(engine: &Arc<Engine>, delay_seconds: i32) {
        let (queue_url, message_body) = (URL.to_owned(), "a".to_owned());
        let delay_seconds = Some(delay_seconds);
        let input =
            SendMessageInput { queue_url, message_body, delay_seconds, ..Default::default() };
        send(Arc::clone(engine), input).await.expect("it is sent");
    }

    /// Returns the receipts, and the time until they arrived.
    async fn received(engine: &Arc<Engine>, wait_seconds: i32) -> (Vec<String>, u128) {
        let began = now();
        let (queue_url, wait_time_seconds) = (URL.to_owned(), Some(wait_seconds));
        let input = ReceiveMessageInput { queue_url, wait_time_seconds, ..Default::default() };
        let output = receive(Arc::clone(engine), input).await.expect("it is received");
        let receipts = output.messages.into_iter().filter_map(|message| message.receipt_handle);
        (receipts.collect(), began.elapsed().as_millis())
    }

    #[expect(clippy::disallowed_methods, reason = "the paused time of the test")]
    fn now() -> Instant {
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_lasts_as_long_as_it_was_asked_for_whenever_it_begins() {
        let engine = engine(600).await;
        for begins_ms in [1, 250, 500, 730, 999] {
            for delay_seconds in [1, 2, 7] {
                sleep(Duration::from_millis(begins_ms)).await;
                sent(&engine, delay_seconds).await;
                let (receipts, waited_ms) = received(&engine, 20).await;
                let late_ms = waited_ms.checked_sub(u128::try_from(delay_seconds).unwrap() * 1_000);
                assert_eq!(receipts.len(), 1, "{begins_ms} {delay_seconds}");
                assert!(
                    late_ms.is_some_and(|late_ms| late_ms <= TOLERANCE_MS),
                    "{delay_seconds} s lasted {waited_ms} ms"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_is_made_visible_again_is_received_at_that_time() {
        let engine = engine(600).await;
        sent(&engine, 0).await;
        for visibility_timeout in [3, 0] {
            let (receipts, waited_ms) = received(&engine, 0).await;
            assert_eq!((receipts.len(), waited_ms), (1, 0));
            sleep(Duration::from_millis(400)).await;
            let change = ChangeMessageVisibilityInput {
                queue_url: URL.to_owned(),
                receipt_handle: receipts[0].clone(),
                visibility_timeout,
            };
            change_visibility(Arc::clone(&engine), change).await.expect("it is changed");
            let (receipts, waited_ms) = received(&engine, 20).await;
            let asked_ms = u128::try_from(visibility_timeout).unwrap() * 1_000;
            assert!((asked_ms..=asked_ms + TOLERANCE_MS).contains(&waited_ms), "{waited_ms}");
            let change = ChangeMessageVisibilityInput {
                queue_url: URL.to_owned(),
                receipt_handle: receipts[0].clone(),
                visibility_timeout: 0,
            };
            change_visibility(Arc::clone(&engine), change).await.expect("it is changed");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_receive_of_an_empty_queue_ends_after_its_wait() {
        let engine = engine(600).await;
        assert_eq!(received(&engine, 5).await, (Vec::new(), 5_000));
        assert_eq!(received(&engine, 0).await, (Vec::new(), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_receive_gets_what_is_sent_meanwhile_and_what_nobody_announced() {
        let engine = engine(30).await;
        let waiting = tokio::spawn({
            let engine = Arc::clone(&engine);
            async move { received(&engine, 20).await }
        });
        sleep(Duration::from_millis(1_700)).await;
        sent(&engine, 0).await;
        let (receipts, waited_ms) = waiting.await.expect("it ends");
        assert_eq!((receipts.len(), waited_ms), (1, 1_700));
        // The visibility timeout of 30 s ends without a notification.
        let mut waited_ms = 0;
        while waited_ms < 60_000 {
            let (receipts, one_ms) = received(&engine, 20).await;
            waited_ms += one_ms;
            if !receipts.is_empty() {
                break;
            }
        }
        assert!((30_000..=31_000).contains(&waited_ms), "{waited_ms}");
    }
}
