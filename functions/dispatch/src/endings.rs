//! Executes the decision on a delivery: done, re-enqueue, dead-letter or drop.
//!
//! Separate from [`crate::settlement`], which makes the decision. If a message cannot be sent, SQS
//! redelivers the record.

use std::sync::Arc;

use adapters::runtime::contained;
use adapters::telemetry::{self, Telemetry};
use delivery::delivery::reason::Reason;
use delivery::delivery::replay::{ReplayEnd, ReplayOutcome};
use delivery::delivery::{DeadLetter, DeliveryTarget};
use delivery::machine::follow_up::{self, FollowUp};
use delivery::machine::forward::forward;
use delivery::machine::step::{End, end_without_success};
use delivery::ports::{DispatchPorts, QueueName};
use delivery::subscription::name::TopicName;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::invocation::Invocation;
use crate::message::delivery_message;
use crate::progress::{InFlightDelivery, ItemId, Stage, Unfinished};
use crate::sending::{Carried, Sending};

#[derive(Debug)]
pub(crate) struct Endings<P> {
    pub(crate) ports: Arc<P>,
    pub(crate) sending: Arc<Sending<P>>,
    pub(crate) telemetry: Arc<Telemetry>,
}

impl<P: DispatchPorts> Endings<P> {
    /// Executes the decision `end`. Futures that send are boxed: the futures of the clients are
    /// large, and most events need none of them.
    pub(crate) async fn finish(
        &self,
        invocation: &Invocation<'_>,
        in_flight: &InFlightDelivery,
        end: End,
    ) {
        let delivery = &in_flight.delivery;
        let carried = match &end {
            End::Retry { wait_ms } => {
                return self
                    .requeue(invocation, in_flight, QueueName::Retry, *wait_ms)
                    .boxed()
                    .await;
            }
            End::DeadLetter(letter) => {
                self.sending.send_dead_letter(letter, invocation).boxed().await
            }
            End::ToSink(letter) => self.send_to_sink(invocation, in_flight, letter).boxed().await,
            End::Done => {
                self.telemetry.delivered(delivery, self.ports.now_ms());
                Carried::Ended(None)
            }
            End::Drop(reason) => {
                self.telemetry.dropped(delivery, &(*reason).into());
                Carried::Ended(None)
            }
        };
        let replay_end = |stored, now_ms| end.of_replay(delivery, stored, now_ms);
        self.note_end(invocation, in_flight.id, carried, replay_end).await;
    }

    /// Records whether a decision was executed or failed. Before that, sends the result of a
    /// replayed delivery.
    async fn note_end(
        &self,
        invocation: &Invocation<'_>,
        id: ItemId,
        carried: Carried,
        replay_end: impl FnOnce(Option<(String, String)>, u64) -> Option<ReplayEnd>,
    ) {
        let is_failed = carried.is_failed();
        if let Carried::Ended(stored) = carried
            && let Some(end) = replay_end(stored, self.ports.now_ms())
        {
            self.sending.send_replay_end(end, invocation).boxed().await;
        }
        invocation.progress.set_sent(id, !is_failed);
    }

    /// Executes several decisions. Contains a panic in any of them; the delivery of that decision
    /// stays unfinished in the progress.
    pub(crate) async fn finish_all(
        &self,
        invocation: &Invocation<'_>,
        unfinished: Vec<Unfinished>,
    ) {
        // Most groups leave nothing unfinished, and then no future is created.
        if unfinished.is_empty() {
            return;
        }
        let finish = async |Unfinished { in_flight, end }| {
            contained("finish", self.finish(invocation, &in_flight, end)).await;
        };
        // Runs concurrently, so that the messages share requests to the queue.
        stream::iter(unfinished).for_each_concurrent(None, finish).await;
    }

    /// Ends deliveries that succeeded, concurrently.
    pub(crate) async fn finish_delivered(
        &self,
        delivered: Vec<(InFlightDelivery, Vec<FollowUp>)>,
        invocation: &Invocation<'_>,
    ) {
        let finish = async |(in_flight, follow_ups)| {
            self.finish_one_delivered(invocation, &in_flight, follow_ups).await;
        };
        // Each delivery may have a reply or the end of a replay to send. Most groups have one
        // delivery.
        if delivered.len() > 1 {
            stream::iter(delivered).for_each_concurrent(None, finish).boxed().await;
        } else {
            for ended in delivered {
                finish(ended).await;
            }
        }
    }

    /// Ends a successful delivery, after sending all messages that follow from its response.
    async fn finish_one_delivered(
        &self,
        invocation: &Invocation<'_>,
        in_flight: &InFlightDelivery,
        follow_ups: Vec<FollowUp>,
    ) {
        if follow_ups.is_empty() || !self.send_all(follow_ups, invocation).boxed().await.is_failed()
        {
            self.finish(invocation, in_flight, End::Done).await;
        } else {
            // The delivery will be repeated: a second request is better than a lost reply.
            telemetry::repeated(&in_flight.delivery);
            invocation.progress.set(in_flight.id, Stage::SendFailed);
        }
    }

    /// Publishes the event of a delivery to its destination topic, and ends the delivery.
    pub(crate) async fn forward(
        &self,
        invocation: &Invocation<'_>,
        in_flight: &InFlightDelivery,
        to: &TopicName,
    ) {
        let InFlightDelivery { id, delivery, subscription } = in_flight;
        let now_ms = self.ports.now_ms();
        let end = match forward(delivery, subscription, to, &invocation.catalogue, now_ms) {
            Ok(message) => {
                match self.sending.send(QueueName::Retry, message, invocation.deadline).await {
                    true => End::Done,
                    false => return invocation.progress.set(*id, Stage::SendFailed),
                }
            }
            Err(end) => end,
        };
        self.finish(invocation, in_flight, end).await;
    }

    /// Sends a dead letter to its queue, and records the result. Stores the dead letter directly if
    /// the queue does not accept it.
    pub(crate) async fn finish_dead_letter(
        &self,
        invocation: &Invocation<'_>,
        id: ItemId,
        letter: &DeadLetter,
    ) {
        let carried = self.sending.send_dead_letter(letter, invocation).await;
        let end = |stored, now_ms| ReplayEnd::of_dead_letter(letter, stored, now_ms);
        self.note_end(invocation, id, carried, end).await;
    }

    /// Re-enqueues a delivery as a separate message, delayed by `wait_ms`.
    pub(crate) async fn requeue(
        &self,
        invocation: &Invocation<'_>,
        in_flight: &InFlightDelivery,
        queue: QueueName,
        wait_ms: u64,
    ) {
        let InFlightDelivery { id, subscription, delivery } = in_flight;
        let message = delivery_message(delivery, wait_ms);
        if message.fits() {
            return invocation
                .progress
                .set_sent(*id, self.sending.send(queue, message, invocation.deadline).await);
        }
        let reason = Reason::EventTooLargeToResend;
        let letter = match end_without_success(delivery, subscription, reason, self.ports.now_ms())
        {
            // The dead letter makes the message larger still, so the sink is skipped.
            End::ToSink(letter) => Box::new(too_large_for_sink(*letter)),
            End::DeadLetter(letter) => letter,
            // `Done` and `Retry` cannot happen, because this end is never a success.
            End::Done | End::Retry { .. } | End::Drop(_) => {
                self.telemetry.dropped(delivery, &reason.into());
                let end = |_, now_ms| ReplayEnd::new(delivery, ReplayOutcome::Dropped, now_ms);
                return self.note_end(invocation, *id, Carried::Ended(None), end).await;
            }
        };
        self.finish_dead_letter(invocation, *id, &letter).await;
    }

    /// Sends a dead letter to its sink.
    async fn send_to_sink(
        &self,
        invocation: &Invocation<'_>,
        in_flight: &InFlightDelivery,
        letter: &DeadLetter,
    ) -> Carried {
        let (subscription, now_ms) = (&in_flight.subscription, self.ports.now_ms());
        let follow_ups =
            follow_up::send_to_sink(letter.clone(), subscription, &invocation.catalogue, now_ms);
        let target = match follow_ups.first() {
            Some(FollowUp::Deliver(first)) => Some(first.target.clone()),
            Some(FollowUp::Publish(_)) => Some(DeliveryTarget::Destination),
            Some(FollowUp::DeadLetter(_) | FollowUp::Drop(_)) | None => None,
        };
        let carried = self.send_all(follow_ups, invocation).await;
        let Some(target) = target.filter(|_| !carried.is_failed()) else { return carried };
        self.telemetry.sent_to_sink(letter, &target);
        match target {
            // Not final, because the sink may refuse the dead letter.
            DeliveryTarget::Sink(_) => carried,
            // A publication to a topic is final.
            DeliveryTarget::Destination | DeliveryTarget::Reply => Carried::Ended(None),
        }
    }

    /// Sends all messages that follow from the end of a delivery, and stops at the first failure.
    async fn send_all(&self, follow_ups: Vec<FollowUp>, invocation: &Invocation<'_>) -> Carried {
        let mut last = Carried::Sent;
        // After a failure the record is redelivered, so further messages would only be duplicates.
        for follow_up in follow_ups {
            last = self.send_follow_up(follow_up, invocation).await;
            if last.is_failed() {
                break;
            }
        }
        last
    }

    async fn send_follow_up(&self, follow_up: FollowUp, invocation: &Invocation<'_>) -> Carried {
        let now_ms = self.ports.now_ms();
        match follow_up {
            FollowUp::Deliver(next) => {
                let wait_ms = next.due_ms.saturating_sub(now_ms);
                let message = delivery_message(&next, wait_ms);
                if !message.fits() {
                    let reason = Reason::EventTooLargeToResend;
                    let letter = DeadLetter::without_subscription(*next, reason, now_ms);
                    return self.sending.send_dead_letter(&letter, invocation).await;
                }
                Carried::sent(
                    self.sending.send(QueueName::Retry, message, invocation.deadline).await,
                )
            }
            FollowUp::Publish(message) => Carried::sent(
                self.sending.send(QueueName::Retry, *message, invocation.deadline).await,
            ),
            FollowUp::DeadLetter(letter) => {
                self.sending.send_dead_letter(&letter, invocation).await
            }
            FollowUp::Drop(letter) => {
                self.telemetry.dropped(&letter.delivery, &letter.reason);
                Carried::Sent
            }
        }
    }
}

fn too_large_for_sink(letter: DeadLetter) -> DeadLetter {
    letter.store_in_default("too large for a message to its sink")
}
