//! deadletter: from the dead-letter queue to object storage.
//!
//! This file is the flow of one record, top to bottom: **decode → due? → group → store → done,
//! again later, or last resort**. The letter in the message says everything: this function knows no
//! subscriptions. Letters that share a blob are stored together and answered for one by one. A
//! record is acknowledged only when its blob is in storage or its message in the last-resort queue,
//! so a dead letter is never lost.

mod blob_batch;
mod open;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adapters::dead_letter_store::store_batch;
use adapters::records::Record;
use adapters::telemetry::{self, Telemetry};
use delivery::delivery::DeadLetter;
use delivery::ports::{Attribute, Message, PutError, QueueName, StoragePorts};
use delivery::subscription::schedule::storage_wait_ms;
use delivery::subscription::sink::Container;
use delivery::time::duration::SECOND_MS;
use delivery::wire::write_dead_letter;
use futures::stream::StreamExt as _;
use futures::{FutureExt as _, stream};

use crate::blob_batch::{Opened, blob_batches};
use crate::open::open;

pub use crate::open::open as dead_letter_of;

/// Letters that are being stored at a time.
const AT_ONCE: usize = 50;
/// A record can be hidden no longer than this after its receive; an hour is left for the invocation
/// itself.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>
const HIDE_MAX_SECONDS: u64 = 43_200 - 3_600;

/// The deadletter function over its ports.
#[derive(Debug)]
pub struct DeadLetters<P> {
    ports: P,
    container: Container,
    telemetry: Telemetry,
}

impl<P: StoragePorts> DeadLetters<P> {
    /// The function with its ports and the deployment's container.
    pub fn new(ports: P, container: Container) -> Self {
        Self { ports, container, telemetry: Telemetry::default() }
    }

    /// The same, which counts what it does as this wants it.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// The metric lines about what it did since they were read last.
    pub fn metrics(&self) -> Vec<String> {
        self.telemetry.metrics(self.ports.now_ms())
    }

    /// Handles a batch and names the records, by message id, that have to come again.
    pub async fn handle(&self, records: &[Record]) -> Vec<String> {
        let (mut letters, mut again) = (Vec::new(), Vec::new());
        for record in records {
            match opened(record) {
                Some(one) => letters.push(one),
                None => again.push(record.message.clone()),
            }
        }
        let now_ms = self.ports.now_ms();
        let blob_batches = blob_batches(letters, now_ms);
        let answers: Vec<_> =
            blob_batches.iter().map(|batch| self.contained(batch, now_ms)).collect();
        again.extend(stream::iter(answers).buffer_unordered(AT_ONCE).concat().await);
        again
    }

    /// One parcel; a panic in it is its own and nobody else's. Names its records that have to come
    /// again.
    async fn contained(&self, batch: &[Opened<'_>], now_ms: u64) -> Vec<String> {
        let done = AssertUnwindSafe(self.store(batch, now_ms)).catch_unwind().await;
        done.unwrap_or_else(|_| {
            telemetry::panicked("deadletter");
            batch.iter().map(|one| one.record.message.clone()).collect()
        })
    }

    /// One parcel, to the end of it or until its records come again; names those.
    async fn store(&self, batch: &[Opened<'_>], now_ms: u64) -> Vec<String> {
        let mut again = Vec::new();
        let due: Vec<&DeadLetter> =
            batch.iter().map(|one| &one.letter).filter(|it| it.not_before_ms <= now_ms).collect();
        let stored = store_batch(&self.ports, &self.container, &due).await;
        for one in batch {
            if !self.is_done(one, stored.as_ref().err(), now_ms).await {
                again.push(one.record.message.clone());
            }
        }
        again
    }

    /// One record after its parcel was stored, or was not; says whether it is done.
    async fn is_done(
        &self,
        Opened { record, letter }: &Opened<'_>,
        error: Option<&PutError>,
        now_ms: u64,
    ) -> bool {
        if now_ms < letter.not_before_ms {
            return self.come_again(record, letter.not_before_ms - now_ms).await;
        }
        let Some(error) = error else {
            self.telemetry.dead_lettered(letter);
            return true;
        };
        let since_ms = now_ms.saturating_sub(letter.decided_ms);
        if since_ms >= letter.keep_trying_for_ms {
            return self.last_resort(letter, &error.to_string()).await;
        }
        let wait_ms = storage_wait_ms(since_ms);
        telemetry::refused(&letter.delivery, &error.to_string(), wait_ms);
        self.come_again(record, wait_ms).await
    }

    /// Hides the record for the wait and gives it back: a letter whose storage refuses waits by
    /// visibility.
    async fn come_again(&self, record: &Record, wait_ms: u64) -> bool {
        let seconds =
            u32::try_from(wait_ms.div_ceil(SECOND_MS).min(HIDE_MAX_SECONDS)).unwrap_or(u32::MAX);
        self.ports.change_visibility(&record.queue, &record.receipt, seconds).await;
        false
    }

    async fn last_resort(&self, letter: &DeadLetter, problem: &str) -> bool {
        let delivery = &letter.delivery;
        let message = Message {
            body: Arc::clone(delivery.event.text()),
            topic: Some(delivery.subscription.topic.clone()),
            attribute: Attribute::DeadLetter(write_dead_letter(letter)),
            subscription: delivery.subscription.clone(),
            wait_ms: 0,
        };
        match self.ports.send(QueueName::LastResort, message).await {
            Ok(()) => {
                self.telemetry.last_resort(letter, problem);
                true
            }
            Err(error) => {
                telemetry::unsent(&delivery.subscription.to_string(), &error.to_string());
                false
            }
        }
    }
}

/// The record with its letter; `None` when it has to be given back, or broke us.
fn opened(record: &Record) -> Option<Opened<'_>> {
    match catch_unwind(AssertUnwindSafe(|| open(record))) {
        Ok(Ok(letter)) => return Some(Opened { record, letter }),
        Ok(Err(error)) => telemetry::returned_to_queue(&record.message, &error.to_string()),
        Err(_) => telemetry::panicked("deadletter"),
    }
    None
}
