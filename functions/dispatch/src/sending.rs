//! Sends all messages that follow from an attempt.
//!
//! A queue may refuse a message, or not respond in time. A message for the slow queue is then sent
//! to the retry queue, and a dead letter is stored directly. Other messages have no substitute. If
//! a message cannot be sent at all, SQS redelivers the record.
//!
//! Each try gets half of the time that is left, so that later sends have time too. A stuck queue
//! must not make Lambda kill the invocation, which would repeat every attempt of the batch. A
//! message may still arrive after a timeout, and is then duplicated.

use std::sync::Arc;

use adapters::telemetry::Telemetry;
use adapters::{dead_letter_store, telemetry};
use delivery::delivery::DeadLetter;
use delivery::delivery::replay::ReplayEnd;
use delivery::ports::{Message, Queue as _, QueueError, QueueName, StoragePorts};
use delivery::subscription::sink::Container;
use futures::FutureExt as _;

use crate::deadline::Deadline;
use crate::invocation::Invocation;
use crate::message::dead_letter_message;
use crate::slow_lane::SlowLane;

/// The result of executing the decision on a delivery.
pub(crate) enum Carried {
    /// A message could not be sent, so SQS must redeliver the record.
    Failed,
    /// The delivery continues as a message in a queue.
    Sent,
    /// The delivery has ended. For a stored dead letter, `Some` with its container and key.
    Ended(Option<(String, String)>),
}

impl Carried {
    pub(crate) fn sent(is_sent: bool) -> Self {
        if is_sent { Self::Sent } else { Self::Failed }
    }

    pub(crate) fn is_failed(&self) -> bool {
        match self {
            Self::Failed => true,
            Self::Sent | Self::Ended(_) => false,
        }
    }
}

/// Sends messages to the queues, and stores dead letters.
#[derive(Debug)]
pub(crate) struct Sending<P> {
    pub(crate) ports: Arc<P>,
    /// Container of the deployment for dead letters.
    pub(crate) container: Container,
    pub(crate) slow_lane: Arc<SlowLane>,
    pub(crate) telemetry: Arc<Telemetry>,
}

impl<P: StoragePorts> Sending<P> {
    /// Sends a message to its queue. If that fails, sends the message to the substitute queue, if
    /// there is one. Returns true if one of the queues accepted the message.
    pub(crate) async fn send(
        &self,
        queue: QueueName,
        message: Message,
        deadline: &Deadline,
    ) -> bool {
        let group = message.group.to_string();
        let first = self.try_send(queue, message.clone(), deadline).await;
        let sent = match (first, substitute(queue)) {
            (Err(error), Some(other)) => {
                telemetry::rerouted(&group, queue, &error.to_string());
                self.slow_lane.note_refusal(queue, self.ports.now_ms());
                // Boxed: this rare future would enlarge the future of every send.
                self.try_send(other, message, deadline).boxed().await
            }
            (first, _) => first,
        };
        sent.inspect_err(|error| telemetry::unsent(&group, &error.to_string())).is_ok()
    }

    /// Sends a dead letter to its queue. Stores the dead letter directly if it does not fit a
    /// message, or if the queue refuses it.
    pub(crate) async fn send_dead_letter(
        &self,
        letter: &DeadLetter,
        invocation: &Invocation<'_>,
    ) -> Carried {
        let message = dead_letter_message(letter);
        let carried =
            match message.fits() && self.send_to_storage(message, invocation.deadline).await {
                true => Carried::Sent,
                false => self.store(letter, invocation).boxed().await,
            };
        match (&carried, &letter.returned) {
            (Carried::Failed, _) => {}
            (Carried::Sent | Carried::Ended(_), Some(returned)) => {
                telemetry::returned(letter, returned);
            }
            (Carried::Sent | Carried::Ended(_), None) => telemetry::dead_letter_sent(letter),
        }
        carried
    }

    /// Sends a dead letter to the dead-letter queue. Returns true if the queue accepted it.
    async fn send_to_storage(&self, message: Message, deadline: &Deadline) -> bool {
        let (group, queue) = (message.group.to_string(), QueueName::DeadLetter);
        let sent = self.try_send(queue, message, deadline).await;
        sent.inspect_err(|error| telemetry::rerouted(&group, queue, &error.to_string())).is_ok()
    }

    async fn try_send(
        &self,
        queue: QueueName,
        message: Message,
        deadline: &Deadline,
    ) -> Result<(), QueueError> {
        let sent = deadline.in_time(&*self.ports, self.ports.queues().send(queue, message)).await;
        sent.unwrap_or_else(|| Err(QueueError(NO_ANSWER.to_owned())))
    }

    /// Sends the result of a replayed delivery to the dead-letter queue. A refusal is only logged:
    /// a lost report must not repeat a delivery.
    pub(crate) async fn send_replay_end(&self, end: ReplayEnd, invocation: &Invocation<'_>) {
        let message = Message::of_replay_end(&end, 0);
        if let Err(problem) =
            self.try_send(QueueName::DeadLetter, message, invocation.deadline).await
        {
            telemetry::replay_end_unsent(&end, &problem.to_string());
        }
    }

    async fn store(&self, letter: &DeadLetter, invocation: &Invocation<'_>) -> Carried {
        let storing = dead_letter_store::store(&*self.ports, &self.container, letter);
        let problem = match invocation.deadline.in_time(&*self.ports, storing).await {
            Some(Ok(location)) => {
                self.telemetry.dead_lettered(letter);
                return Carried::Ended(location.map(|blob| (blob.container, blob.key)));
            }
            Some(Err(error)) => error.to_string(),
            None => NO_ANSWER.to_owned(),
        };
        telemetry::unsent(&letter.delivery.subscription.to_string(), &problem);
        Carried::Failed
    }
}

/// Log text for a queue or storage that does not respond in time.
pub(crate) const NO_ANSWER: &str = "there was no response in the time available";

/// Returns the substitute of a queue. Only the slow queue has one: the retry queue. After a
/// refusal, [`SlowLane`] pauses, so that these deliveries are attempted from the retry queue.
fn substitute(queue: QueueName) -> Option<QueueName> {
    match queue {
        QueueName::Slow => Some(QueueName::Retry),
        // The record returns to its source queue. The slow queue is no substitute: deliveries in
        // the slow lane must be due, and those for the retry queue need not be. An isolated record
        // must not share a batch.
        QueueName::Retry | QueueName::Isolation => None,
        // A dead letter is stored instead. Dispatch sends nothing to the other queues.
        QueueName::DeadLetter | QueueName::Events | QueueName::LastResort => None,
    }
}
