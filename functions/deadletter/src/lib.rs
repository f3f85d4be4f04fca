//! deadletter: stores the dead letters of the dead-letter queue in object storage.
//!
//! This file is the flow of a batch, top to bottom: **decode → due? → store → record results →
//! done, retry later, or last resort**. The message contains the whole dead letter, so the function
//! reads no subscriptions. A record is acknowledged only after its dead letter is in storage or in
//! another message, so no dead letter is lost. The [results of replayed deliveries](replay_end) are
//! recorded last, grouped by job.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

mod decode;
mod replay_end;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use adapters::dead_letter_store::{self, BlobLocation};
use adapters::runtime::contained;
use adapters::telemetry::{self, Telemetry};
use delivery::delivery::DeadLetter;
use delivery::ports::{
    Attribute, Message, MessageGroup, PutError, Queue as _, QueueName, Record, StoragePorts,
};
use delivery::subscription::sink::Container;
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use delivery::waits::{hidden_seconds, storage_ms};
use delivery::wire::write_dead_letter;
use futures::stream::{self, StreamExt as _};

use crate::replay_end::{ReceivedEnd, ReplayEndRecord};

pub use crate::decode::dead_letter_of;

/// Minimum visibility timeout of a dead letter that storage refuses and that is too large to be
/// sent again. After 1,000 receives, SQS moves a message to the last-resort queue, where the
/// publisher's attributes would be trusted. At 30 minutes each, 1,000 receives take longer than
/// SQS keeps the message (14 days).
const TOO_LARGE_MS: u64 = 30 * MINUTE_MS;
/// Maximum number of blobs that are stored concurrently.
const AT_ONCE: usize = 50;

/// The deadletter function, generic over its ports.
#[derive(Debug)]
pub struct DeadLetters<P> {
    ports: P,
    container: Container,
    telemetry: Telemetry,
    /// True if dead letters are stored without waiting for their `delay`.
    ends_delays: bool,
}

impl<P: StoragePorts> DeadLetters<P> {
    /// Creates the function with the deployment's default container.
    pub fn new(ports: P, container: Container) -> Self {
        Self { ports, container, telemetry: Telemetry::default(), ends_delays: false }
    }

    /// Stores each dead letter without waiting for its `delay`. Used for a queue that is about to
    /// be deleted.
    #[must_use]
    pub fn ending_delays(self) -> Self {
        Self { ends_delays: true, ..self }
    }

    /// Sets the telemetry of this function.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// Returns the telemetry, for reporting the end of an invocation.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Returns the metrics recorded since the last call, as EMF lines.
    pub fn metrics(&self) -> Vec<String> {
        self.telemetry.metrics(self.ports.now_ms())
    }

    /// Handles a batch. Returns the message ids of the records that SQS must redeliver.
    pub async fn handle(&self, records: &[Record]) -> Vec<String> {
        let now_ms = self.ports.now_ms();
        let (mut received, mut waits, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for record in records {
            match ReplayEndRecord::read(record, now_ms) {
                Some(ReplayEndRecord::Read(end)) => {
                    ends.push((record, end));
                    continue;
                }
                Some(ReplayEndRecord::Lost(why)) => {
                    telemetry::replay_end_lost(&record.message, &why);
                    continue;
                }
                Some(ReplayEndRecord::Waits(why)) => {
                    waits.push(self.contained_wait(record, Unread::Unreadable(why)));
                    continue;
                }
                None => {}
            }
            match decode(record, now_ms) {
                Ok(entry) => {
                    received.push(if self.ends_delays { entry.due(now_ms) } else { entry });
                }
                Err(why) => waits.push(self.contained_wait(record, why)),
            }
        }
        let mut redeliver = stream::iter(waits).buffer_unordered(AT_ONCE).concat().await;
        let mut stored = Vec::new();
        for (entry, handled) in self.store_all(&received, now_ms).await {
            match handled {
                Handled::Stored(location) => {
                    let end = replay_end::end_of(&entry.letter, location, now_ms);
                    ends.extend(end.map(|end| (entry.record, end)));
                    stored.push(entry);
                }
                Handled::Sent => {}
                Handled::Redelivered => redeliver.push(entry.record.message.clone()),
            }
        }
        redeliver.extend(self.record_ends(ends).await);
        // Counted last, so that a record that is redelivered now is counted only once.
        let done = stored.into_iter().filter(|entry| !redeliver.contains(&entry.record.message));
        done.for_each(|entry| self.telemetry.dead_lettered(&entry.letter));
        redeliver
    }

    /// Records the results of replayed deliveries, grouped by job. Returns the message ids of the
    /// records that SQS must redeliver.
    async fn record_ends(&self, ends: Vec<ReceivedEnd<'_>>) -> Vec<String> {
        let ends = replay_end::by_job(ends);
        let recorded = ends
            .iter()
            .map(|of_job| replay_end::contained_record(&self.ports, &self.container, of_job));
        let recorded: Vec<_> = recorded.collect();
        stream::iter(recorded).buffer_unordered(AT_ONCE).concat().await
    }

    /// Re-enqueues an unreadable record and contains any panic. Returns its message id if SQS must
    /// redeliver the record.
    async fn contained_wait(&self, record: &Record, why: Unread) -> Vec<String> {
        let waits = match why {
            Unread::Unreadable(why) => {
                contained("deadletter", self.wait_unread(record, &why)).await
            }
            Unread::Panicked => None,
        };
        if waits.unwrap_or(false) { Vec::new() } else { vec![record.message.clone()] }
    }

    /// Re-enqueues a record unchanged, so that newer code may read it. Returns true if the record
    /// can be acknowledged. Otherwise the record stays hidden in its queue: it is too large to
    /// carry a counter of its waits, or the queue refused the message.
    async fn wait_unread(&self, record: &Record, why: &str) -> bool {
        if record.waits_long_unread(self.ports.now_ms()) {
            telemetry::unreadable_for_long(&record.message, why);
        }
        if let Some(message) = record.unread_message() {
            let wait_ms = message.wait_ms;
            if self.send(QueueName::DeadLetter, message).await {
                telemetry::record_held(&record.message, why, wait_ms);
                return true;
            }
        }
        telemetry::returned_to_queue(&record.message, why);
        self.leave_hidden(record, HOUR_MS).await;
        false
    }

    async fn store_all<'a>(
        &self,
        received: &'a [Received<'a>],
        now_ms: u64,
    ) -> Vec<(&'a Received<'a>, Handled)> {
        let stores: Vec<_> =
            received.iter().map(|entry| self.contained_store(entry, now_ms)).collect();
        stream::iter(stores).buffer_unordered(AT_ONCE).collect().await
    }

    /// Stores a dead letter. Contains any panic, after which SQS redelivers the record.
    async fn contained_store<'a>(
        &self,
        received: &'a Received<'a>,
        now_ms: u64,
    ) -> (&'a Received<'a>, Handled) {
        let handled = contained("deadletter", self.store(received, now_ms)).await;
        (received, handled.unwrap_or(Handled::Redelivered))
    }

    /// Stores a dead letter if it is due; otherwise re-enqueues it until it is due.
    async fn store(&self, received: &Received<'_>, now_ms: u64) -> Handled {
        let Received { record, letter } = received;
        let is_sent = if now_ms < letter.not_before_ms {
            self.retry_later(record, letter, letter.not_before_ms - now_ms).await
        } else {
            match dead_letter_store::store(&self.ports, &self.container, letter).await {
                Ok(location) => return Handled::Stored(location),
                Err(error) => self.is_done_without_storage(received, &error, now_ms).await,
            }
        };
        if is_sent { Handled::Sent } else { Handled::Redelivered }
    }

    /// Re-enqueues a dead letter that could not be stored, or moves an old one to the last-resort
    /// queue. Returns true if the record can be acknowledged.
    async fn is_done_without_storage(
        &self,
        Received { record, letter }: &Received<'_>,
        error: &PutError,
        now_ms: u64,
    ) -> bool {
        // Saturating, because another machine set `decided_ms`, and its clock may be ahead.
        let since_ms = now_ms.saturating_sub(letter.decided_ms);
        if since_ms >= letter.keep_trying_for_ms {
            return self.last_resort(record, letter, &error.to_string(), since_ms).await;
        }
        let wait_ms = storage_ms(since_ms);
        telemetry::refused(&letter.delivery, &error.to_string(), wait_ms);
        self.retry_later(record, letter, wait_ms).await
    }

    /// Re-enqueues a dead letter, so that its waits use up no receives. Returns true if the record
    /// can be acknowledged. Otherwise the record stays hidden in its queue: the dead letter does
    /// not fit a message, or the queue refused the message.
    async fn retry_later(&self, record: &Record, letter: &DeadLetter, wait_ms: u64) -> bool {
        let message = message(letter, wait_ms);
        if !message.fits() {
            self.leave_hidden(record, wait_ms.max(TOO_LARGE_MS)).await;
            return false;
        }
        if self.send(QueueName::DeadLetter, message).await {
            return true;
        }
        self.leave_hidden(record, wait_ms).await;
        false
    }

    async fn leave_hidden(&self, record: &Record, wait_ms: u64) {
        let seconds = hidden_seconds(wait_ms);
        // If this fails, the queue's own visibility timeout applies, and nothing is lost.
        self.ports.queues().change_visibility(record.queue, &record.receipt, seconds).await;
    }

    /// Moves a dead letter to the last-resort queue. If that queue refuses the dead letter, the
    /// record stays hidden in its own queue.
    async fn last_resort(
        &self,
        record: &Record,
        letter: &DeadLetter,
        problem: &str,
        since_ms: u64,
    ) -> bool {
        let message = message(letter, 0);
        let fits = message.fits();
        // A dead letter that is too large for a message stays in its own queue.
        let is_sent = fits && self.send(QueueName::LastResort, message).await;
        if is_sent {
            self.telemetry.last_resort(letter, problem);
        } else {
            let wait_ms = storage_ms(since_ms).max(if fits { 0 } else { TOO_LARGE_MS });
            // Log the dead letter each time: it is not in any other queue, and its own queue
            // deletes it after 14 days.
            telemetry::refused(&letter.delivery, problem, wait_ms);
            self.leave_hidden(record, wait_ms).await;
        }
        is_sent
    }

    async fn send(&self, queue: QueueName, message: Message) -> bool {
        let group = message.group.to_string();
        let sent = self.ports.queues().send(queue, message).await;
        if let Err(error) = &sent {
            telemetry::unsent(&group, &error.to_string());
        }
        sent.is_ok()
    }
}

enum Handled {
    /// The dead letter is stored; `Some` with its location if it is in a container, `None` if it is
    /// in a queue.
    Stored(Option<BlobLocation>),
    /// The dead letter is in one of the internal queues.
    Sent,
    /// SQS must redeliver the record.
    Redelivered,
}

/// Writes a dead letter as a queue message that is delayed by `wait_ms`.
fn message(letter: &DeadLetter, wait_ms: u64) -> Message {
    let delivery = &letter.delivery;
    Message {
        body: Arc::clone(delivery.event.text()),
        topic: Some(delivery.subscription.topic.clone()),
        attribute: Attribute::DeadLetter(write_dead_letter(letter)),
        group: MessageGroup::Subscription(delivery.subscription.clone()),
        receives: 0,
        unread: 0,
        wait_ms,
    }
}

struct Received<'a> {
    record: &'a Record,
    letter: DeadLetter,
}

impl Received<'_> {
    /// Makes the dead letter due now, regardless of its `delay`.
    fn due(mut self, now_ms: u64) -> Self {
        self.letter.not_before_ms = self.letter.not_before_ms.min(now_ms);
        self
    }
}

/// The reason why a record has no readable dead letter.
enum Unread {
    /// The attribute cannot be read; a newer version may have written it.
    Unreadable(String),
    /// The decoder panicked.
    Panicked,
}

/// Reads the dead letter of a record and contains any panic.
fn decode(record: &Record, now_ms: u64) -> Result<Received<'_>, Unread> {
    match panic::catch_unwind(AssertUnwindSafe(|| dead_letter_of(record, now_ms))) {
        Ok(Ok(letter)) => Ok(Received { record, letter }),
        Ok(Err(error)) => Err(Unread::Unreadable(error.to_string())),
        Err(_) => {
            telemetry::panicked("deadletter");
            Err(Unread::Panicked)
        }
    }
}
