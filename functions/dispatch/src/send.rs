//! Sends what follows from an attempt. A queue that refuses or does not answer in time is replaced by
//! another way to the same end, and only when both fail a record is redelivered.
//!
//! Each try gets half of the time that is left for sending, so that something is always left for what
//! comes after it: a queue that is stuck never makes Lambda kill the invocation, which would repeat
//! every attempt of the batch. A message that was given up may still arrive, so it may be there twice.

use std::future::Future;

use adapters::{dead_letter_store, telemetry};
use delivery::delivery::DeadLetter;
use delivery::delivery::replay::ReplayEnd;
use delivery::ports::{DispatchPorts, Message, QueueError, QueueName};
use futures::FutureExt as _;

use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, Invocation};
use crate::finish::Carried;
use crate::message::dead_letter_message;

impl<P: DispatchPorts> Dispatch<P> {
    /// Sends a message to its queue, else to the one that may take its place; whether either has it.
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
                self.health.note_refusal(queue, self.ports.now_ms());
                // Boxed: it is rare, and would enlarge the future of every send.
                self.try_send(other, message, deadline).boxed().await
            }
            (first, _) => first,
        };
        sent.inspect_err(|error| telemetry::unsent(&group, &error.to_string())).is_ok()
    }

    /// Sends a dead letter to its queue. One that does not fit a message, or that its queue does not
    /// take, is stored from here.
    pub(crate) async fn send_dead_letter(
        &self,
        letter: &DeadLetter,
        of: &Invocation<'_>,
    ) -> Carried {
        let message = dead_letter_message(letter);
        let carried = match message.fits() && self.send_to_storage(message, of.deadline).await {
            true => Carried::Sent,
            false => self.store(letter, of).boxed().await,
        };
        match (&carried, &letter.returned) {
            (Carried::Failed, _) => {}
            (Carried::Sent | Carried::Ended(_), Some(returned)) => {
                telemetry::returned(letter, returned);
            }
            (Carried::Sent | Carried::Ended(_), None) => {
                telemetry::dead_letter_sent(letter);
                self.dead_letters.note(letter, &of.catalogue);
            }
        }
        carried
    }

    /// Does something for at most half of the time that is left; `None` when it did not end by then.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = T>,
        deadline: &Deadline,
    ) -> Option<T> {
        let Some(share_ms) = deadline.share_ms(self.ports.now_ms()) else {
            return Some(work.await);
        };
        tokio::select! {
            // What is done at once is done, even when no time is left.
            biased;
            done = work => Some(done),
            () = self.ports.sleep(share_ms) => None,
        }
    }

    /// Sends a dead letter on its way to storage; whether its queue has it.
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
        let sent = self.in_time(self.ports.send(queue, message), deadline).await;
        sent.unwrap_or_else(|| Err(QueueError(NO_ANSWER.to_owned())))
    }

    /// Sends the end of a replayed delivery on its way to storage. Where its queue refuses it, the log says so: a
    /// report is no reason to repeat a delivery.
    pub(crate) async fn send_replay_end(&self, end: ReplayEnd, of: &Invocation<'_>) {
        let message = Message::of_replay_end(&end, 0);
        if let Err(problem) = self.try_send(QueueName::DeadLetter, message, of.deadline).await {
            telemetry::replay_end_unsent(&end, &problem.to_string());
        }
    }

    async fn store(&self, letter: &DeadLetter, of: &Invocation<'_>) -> Carried {
        let letters = [letter];
        let storing = dead_letter_store::store(&self.ports, &self.container, &letters);
        let problem = match self.in_time(storing, of.deadline).await {
            Some(Ok(location)) => {
                self.telemetry.dead_lettered(letter);
                return Carried::Ended(location.map(|of| (of.container, of.key)));
            }
            Some(Err(error)) => error.to_string(),
            None => NO_ANSWER.to_owned(),
        };
        telemetry::unsent(&letter.delivery.subscription.to_string(), &problem);
        Carried::Failed
    }
}

/// The problem of a queue or a storage that is stuck.
pub(crate) const NO_ANSWER: &str = "it did not answer in its share of the time";

/// The queue that takes a message when its own does not. Dispatch reads both and treats a message of
/// either alike; in the other it only waits among retries, or among first attempts. What the slow lane
/// refuses is attempted among retries, which `Health::note_refusal` sees to.
fn substitute(queue: QueueName) -> Option<QueueName> {
    match queue {
        QueueName::Retry => Some(QueueName::FanOut),
        QueueName::FanOut => Some(QueueName::Retry),
        QueueName::Slow => Some(QueueName::Retry),
        // What may crash us must not meet other records again: it returns to its queue.
        QueueName::Isolation => None,
        // A dead letter is stored instead. Dispatch sends to no other queue.
        QueueName::DeadLetter
        | QueueName::Events
        | QueueName::Unprocessed
        | QueueName::LastResort => None,
    }
}
