//! How a delivery leaves: as an end, as its own message, or as a dead letter.
//!
//! Straight lines after the decision. Whatever could not leave is noted as stuck, and its record
//! comes again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use adapters::{letters, telemetry};
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget};
use delivery::machine::follow_up::{FollowUp, send_to_sink};
use delivery::machine::step::{End, end_without_success};
use delivery::ports::{Attribute, DispatchPorts, Message, QueueName};
use delivery::wire::{write_dead_letter, write_delivery};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::late::Unfinished;
use crate::progress::{BatchProgress, InFlightDelivery, ItemId, Stage};
use crate::{Dispatch, Invocation};

impl<P: DispatchPorts> Dispatch<P> {
    /// Carries out an end.
    pub(crate) async fn finish(&self, of: &Invocation<'_>, ticket: &InFlightDelivery, end: End) {
        match end {
            // Boxed, as all that sends: it is large for the clients in it, and most events need
            // none.
            End::Retry { wait_ms } => {
                self.requeue(&of.book, ticket, QueueName::Retry, wait_ms).boxed().await
            }
            End::DeadLetter(letter) => {
                self.finish_dead_letter(&of.book, ticket.place, &letter).boxed().await
            }
            End::ToSink(letter) => self.send_to_sink(of, ticket, &letter).boxed().await,
            End::Done => {
                self.telemetry.delivered(&ticket.delivery, self.ports.now_ms());
                of.book.note(ticket.place, Stage::Done);
            }
            End::Drop(reason) => {
                self.telemetry.dropped(&ticket.delivery, reason);
                of.book.note(ticket.place, Stage::Done);
            }
        }
    }

    /// Lets a dead letter leave for its sink.
    async fn send_to_sink(
        &self,
        of: &Invocation<'_>,
        ticket: &InFlightDelivery,
        letter: &DeadLetter,
    ) {
        let follow_ups =
            send_to_sink(letter.clone(), &ticket.subscription, &of.catalogue, self.ports.now_ms());
        let follow_ups =
            if follow_ups.iter().all(fits_on_the_way) { follow_ups } else { kept(letter) };
        let first = match follow_ups.first() {
            Some(FollowUp::Deliver(first)) => Some(first.target.clone()),
            Some(FollowUp::DeadLetter(_) | FollowUp::Drop(_)) | None => None,
        };
        if self.followed(&of.book, ticket.place, follow_ups).await
            && let Some(target) = first
        {
            self.telemetry.left_for_sink(letter, &target);
        }
    }

    /// Carries out the ends of several. A panic in one is its own and nobody else's: what it left
    /// undone stands in the book.
    pub(crate) async fn finish_all(&self, of: &Invocation<'_>, unfinished: Vec<Unfinished>) {
        // Of most groups nothing is: then nothing is made to wait for.
        if unfinished.is_empty() {
            return;
        }
        // At once, so that their messages share requests to the queue.
        let finish = async |Unfinished { ticket, end }| {
            if AssertUnwindSafe(self.finish(of, &ticket, end)).catch_unwind().await.is_err() {
                telemetry::panicked("finish");
            }
        };
        stream::iter(unfinished).for_each_concurrent(None, finish).await;
    }

    /// Ends a delivery that was taken, after everything that follows from its answer has left.
    pub(crate) async fn finish_with(
        &self,
        of: &Invocation<'_>,
        ticket: &InFlightDelivery,
        follow_ups: Vec<FollowUp>,
    ) {
        if follow_ups.is_empty() || self.followed(&of.book, ticket.place, follow_ups).boxed().await
        {
            self.finish(of, ticket, End::Done).await;
        }
    }

    /// Lets everything leave that follows from an end; says whether it did, and notes it in the
    /// book.
    async fn followed(
        &self,
        book: &BatchProgress,
        place: ItemId,
        follow_ups: Vec<FollowUp>,
    ) -> bool {
        for follow in follow_ups {
            let gone = match follow {
                FollowUp::Deliver(next) if can_travel(&next) => {
                    let wait_ms = next.due_ms.saturating_sub(self.ports.now_ms());
                    let queue = if wait_ms == 0 { QueueName::Events } else { QueueName::Retry };
                    self.sent(
                        queue,
                        message(&next, Attribute::Delivery(write_delivery(&next)), wait_ms),
                    )
                    .await
                }
                FollowUp::Deliver(next) => {
                    let (reason, now_ms) = (Reason::EventTooLargeToResend, self.ports.now_ms());
                    self.queue_dead_letter(&DeadLetter::without_subscription(*next, reason, now_ms))
                        .await
                }
                FollowUp::DeadLetter(letter) => self.queue_dead_letter(&letter).await,
                FollowUp::Drop(letter) => {
                    self.telemetry.dropped(&letter.delivery, letter.reason);
                    true
                }
            };
            if !gone {
                book.note(place, Stage::SendFailed);
                return false;
            }
        }
        book.note(place, Stage::Done);
        true
    }

    /// Sends a delivery on as its own message, to be received after about the wait.
    pub(crate) async fn requeue(
        &self,
        book: &BatchProgress,
        ticket: &InFlightDelivery,
        queue: QueueName,
        wait_ms: u64,
    ) {
        let InFlightDelivery { place, subscription, delivery } = ticket;
        let message = message(delivery, Attribute::Delivery(write_delivery(delivery)), wait_ms);
        if message.fits() {
            let gone = self.sent(queue, message).await;
            book.note(*place, if gone { Stage::Done } else { Stage::SendFailed });
            return;
        }
        let reason = Reason::EventTooLargeToResend;
        match end_without_success(delivery, subscription, reason, self.ports.now_ms()) {
            End::DeadLetter(letter) => self.finish_dead_letter(book, *place, &letter).await,
            End::ToSink(letter) => {
                let letter = letter.store_in_default("too large to travel to its sink");
                self.finish_dead_letter(book, *place, &letter).await;
            }
            End::Done | End::Retry { .. } | End::Drop(_) => {
                self.telemetry.dropped(delivery, reason);
                book.note(*place, Stage::Done);
            }
        }
    }

    /// Sends a dead letter to its queue; one that does not fit into a message is stored from here.
    pub(crate) async fn finish_dead_letter(
        &self,
        book: &BatchProgress,
        place: ItemId,
        letter: &DeadLetter,
    ) {
        let gone = self.queue_dead_letter(letter).await;
        book.note(place, if gone { Stage::Done } else { Stage::SendFailed });
    }

    async fn queue_dead_letter(&self, letter: &DeadLetter) -> bool {
        let wait_ms = letter.not_before_ms.saturating_sub(letter.decided_ms);
        let message =
            message(&letter.delivery, Attribute::DeadLetter(write_dead_letter(letter)), wait_ms);
        let gone = if message.fits() {
            self.sent(QueueName::DeadLetter, message).await
        } else {
            self.stored(letter).boxed().await
        };
        match &letter.returned {
            Some(returned) if gone => telemetry::returned(letter, returned),
            None if gone => telemetry::dead_letter_sent(letter),
            Some(_) | None => {}
        }
        gone
    }

    async fn sent(&self, queue: QueueName, message: Message) -> bool {
        let subscription = message.subscription.to_string();
        match self.ports.send(queue, message).await {
            Ok(()) => true,
            Err(error) => {
                telemetry::unsent(&subscription, &error.to_string());
                false
            }
        }
    }

    async fn stored(&self, letter: &DeadLetter) -> bool {
        let stored = letters::store(&self.ports, &self.container, letter).await;
        match &stored {
            Ok(()) => self.telemetry.dead_lettered(letter),
            Err(error) => {
                telemetry::unsent(&letter.delivery.subscription.to_string(), &error.to_string())
            }
        }
        stored.is_ok()
    }
}

/// Whether a delivery that follows from a letter can travel. One to an address may be too large: it
/// gives the letter back by itself. A publication would be a letter about a letter.
fn fits_on_the_way(follow: &FollowUp) -> bool {
    match follow {
        FollowUp::Deliver(next) => {
            matches!(next.target, DeliveryTarget::Sink(_)) || can_travel(next)
        }
        FollowUp::DeadLetter(_) | FollowUp::Drop(_) => true,
    }
}

fn kept(letter: &DeadLetter) -> Vec<FollowUp> {
    vec![FollowUp::DeadLetter(Box::new(
        letter.clone().store_in_default("too large to travel to its sink"),
    ))]
}

/// Whether a delivery fits into a message of its own, state and all.
pub(crate) fn can_travel(delivery: &Delivery) -> bool {
    message(delivery, Attribute::Delivery(write_delivery(delivery)), 0).fits()
}

fn message(delivery: &Delivery, attribute: Attribute, wait_ms: u64) -> Message {
    Message {
        body: Arc::clone(delivery.event.text()),
        topic: Some(delivery.subscription.topic.clone()),
        attribute,
        subscription: delivery.subscription.clone(),
        wait_ms,
    }
}
