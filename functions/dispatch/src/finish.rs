//! How a delivery leaves: as an end, as its own message, or as a dead letter.
//!
//! Straight lines after the decision. Whatever could not leave is noted as stuck, and its record comes again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use adapters::{letters, telemetry};
use delivery::deadletter::{Letter, Reason};
use delivery::delivery::Delivery;
use delivery::ports::{Attribute, DispatchPorts, Message, QueueName};
use delivery::reply::Follow;
use delivery::step::{End, end_without_success};
use delivery::wire::{write_delivery, write_letter};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::Dispatch;
use crate::book::{Book, Place, Stage, Ticket};
use crate::late::Unfinished;

impl<P: DispatchPorts> Dispatch<P> {
    /// Carries out an end.
    pub(crate) async fn finish(&self, book: &Book, ticket: &Ticket, end: End) {
        match end {
            End::Retry { wait_ms } => self.pass_on(book, ticket, QueueName::Retry, wait_ms).await,
            End::DeadLetter(letter) => self.finish_letter(book, ticket.place, &letter).await,
            End::Done => {
                self.telemetry.delivered(&ticket.delivery, self.ports.now_ms());
                book.note(ticket.place, Stage::Gone);
            }
            End::Drop(reason) => {
                self.telemetry.dropped(&ticket.delivery, reason);
                book.note(ticket.place, Stage::Gone);
            }
        }
    }

    /// Carries out the ends of several. A panic in one is its own and nobody else's: what it left undone stands in the
    /// book.
    pub(crate) async fn finish_all(&self, book: &Book, unfinished: Vec<Unfinished>) {
        // At once, so that their messages share requests to the queue.
        let finish = async |Unfinished { ticket, end }| {
            if AssertUnwindSafe(self.finish(book, &ticket, end)).catch_unwind().await.is_err() {
                telemetry::panicked("finish");
            }
        };
        stream::iter(unfinished).for_each_concurrent(None, finish).await;
    }

    /// Ends a delivery that was taken, after everything that follows from its answer has left.
    pub(crate) async fn finish_with(&self, book: &Book, ticket: &Ticket, follows: Vec<Follow>) {
        for follow in follows {
            let gone = match follow {
                Follow::Deliver(next) if can_travel(&next) => {
                    let attribute = Attribute::Delivery(write_delivery(&next));
                    self.sent(QueueName::Events, message(&next, attribute, 0)).await
                }
                Follow::Deliver(next) => {
                    let (reason, now_ms) = (Reason::EventTooLargeToResend, self.ports.now_ms());
                    self.buried(&Letter::without_subscription(*next, reason, now_ms)).await
                }
                Follow::Bury(letter) => self.buried(&letter).await,
            };
            if !gone {
                return book.note(ticket.place, Stage::Stuck);
            }
        }
        self.finish(book, ticket, End::Done).await;
    }

    /// Sends a delivery on as its own message, to be received after about the wait.
    pub(crate) async fn pass_on(&self, book: &Book, ticket: &Ticket, queue: QueueName, wait_ms: u64) {
        let Ticket { place, subscription, delivery } = ticket;
        let message = message(delivery, Attribute::Delivery(write_delivery(delivery)), wait_ms);
        if message.fits() {
            let gone = self.sent(queue, message).await;
            book.note(*place, if gone { Stage::Gone } else { Stage::Stuck });
            return;
        }
        let reason = Reason::EventTooLargeToResend;
        match end_without_success(delivery, subscription, reason, self.ports.now_ms()) {
            End::DeadLetter(letter) => self.finish_letter(book, *place, &letter).await,
            End::Done | End::Retry { .. } | End::Drop(_) => {
                self.telemetry.dropped(delivery, reason);
                book.note(*place, Stage::Gone);
            }
        }
    }

    /// Sends a dead letter to its queue; one that does not fit into a message is stored from here.
    pub(crate) async fn finish_letter(&self, book: &Book, place: Place, letter: &Letter) {
        let gone = self.buried(letter).await;
        book.note(place, if gone { Stage::Gone } else { Stage::Stuck });
    }

    async fn buried(&self, letter: &Letter) -> bool {
        let wait_ms = letter.not_before_ms.saturating_sub(letter.decided_ms);
        let message = message(&letter.delivery, Attribute::DeadLetter(write_letter(letter)), wait_ms);
        let gone =
            if message.fits() { self.sent(QueueName::DeadLetter, message).await } else { self.stored(letter).await };
        if gone {
            telemetry::buried(letter);
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

    async fn stored(&self, letter: &Letter) -> bool {
        let stored = letters::store(&self.ports, &self.container, letter).await;
        match &stored {
            Ok(()) => self.telemetry.dead_lettered(letter),
            Err(error) => telemetry::unsent(&letter.delivery.subscription.to_string(), &error.to_string()),
        }
        stored.is_ok()
    }
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
