//! notify: sends one message per cause and minute about new dead letters.
//!
//! This file is the flow of an invocation, top to bottom: **receive → read → group → publish →
//! delete**. EventBridge sends S3's report of each new blob to a queue. Once a minute, this
//! function empties the queue, reads the blobs and publishes a message for each cause. The function
//! receives the reports itself, because an event source mapping would divide a busy minute among
//! invocations.
//!
//! A report is deleted last, after the messages about its dead letters were published. A failure
//! therefore repeats messages and loses none. Every report is counted, even if its blob cannot be
//! read.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

mod aws;
mod cause;
mod group;
mod message;
mod ports;
mod read;
mod report;
pub mod settings;

use std::collections::BTreeSet;

use adapters::storage::Storage;
use delivery::subscription::sink::Container;
use delivery::time::duration::SECOND_MS;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use thiserror::Error;

pub use crate::aws::AwsPorts;
use crate::cause::Letter;
use crate::group::{Group, Groups};
use crate::message::Message;
pub use crate::ports::{Ports, Refused};
pub use crate::report::Report;
use crate::report::{Blob, blobs_of};

/// Maximum number of reports per invocation. Further reports wait for the next minute.
const REPORTS_MAX: usize = 20_000;
/// Number of concurrent receives. Each receive returns at most ten reports.
const RECEIVES_AT_ONCE: usize = 16;
/// Maximum time for receiving reports.
const RECEIVES_MS: u64 = 10 * SECOND_MS;
/// Maximum time for receiving reports and reading blobs. The remaining blobs are then counted
/// without being read.
const READS_MS: u64 = 25 * SECOND_MS;
/// Maximum number of messages that are published concurrently.
const MESSAGES_AT_ONCE: usize = 8;
/// Maximum number of concurrent deletions, of ten reports each.
const DELETES_AT_ONCE: usize = 16;
/// Maximum number of reports that one request deletes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessageBatch.html>
const DELETED_MAX: usize = 10;

/// The part of an invocation's work that failed. A later invocation repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotifyError {
    /// No report could be received.
    #[error("the queue cannot be read: {0}")]
    Receive(Refused),
    /// Some messages were not published. Their reports return to the queue.
    #[error("{failed} of {all} messages were not published; later invocations retry them: {why}")]
    Publish {
        /// Number of messages that were not published.
        failed: usize,
        /// Number of all messages of the invocation.
        all: usize,
        /// The reason for the first failure.
        why: Refused,
    },
    /// Some reports were not deleted. Messages about them will repeat.
    #[error("reports were not deleted, so their messages will be sent again: {0}")]
    Delete(Refused),
}

/// The notify function, generic over its ports.
#[derive(Debug)]
pub struct Notify<P> {
    ports: P,
    storage: Storage,
    container: Container,
}

impl<P: Ports> Notify<P> {
    /// Creates the function for the dead letters of a container in this storage.
    pub fn new(ports: P, storage: Storage, container: Container) -> Self {
        Self { ports, storage, container }
    }

    /// Publishes a message for each cause of the dead letters since the last invocation.
    ///
    /// # Errors
    /// [`NotifyError`] if some of the work is left for a later invocation.
    pub async fn notify(&self) -> Result<(), NotifyError> {
        let began_ms = self.ports.now_ms();
        let reports = self.receive_all(began_ms + RECEIVES_MS).await?;
        let blobs = blobs_of(reports);
        let found = self.read_all(&blobs, began_ms + READS_MS).await;
        let groups = Groups::new(&found).into_groups();
        let (unpublished, result) = self.publish_all(&groups).await;
        let published = blobs.iter().enumerate().filter(|(place, _)| !unpublished.contains(place));
        let receipts = published.flat_map(|(_, blob)| blob.receipts.iter().cloned());
        let deleted = self.delete_all(receipts.collect()).await;
        result.and(deleted)
    }

    async fn receive_all(&self, until_ms: u64) -> Result<Vec<Report>, NotifyError> {
        let mut reports = self.ports.receive().await.map_err(NotifyError::Receive)?;
        if !reports.is_empty() {
            let receivers = (0..RECEIVES_AT_ONCE).map(|_| self.receive_some(until_ms));
            reports.extend(join_all(receivers).await.concat());
        }
        Ok(reports)
    }

    /// Receives reports until `until_ms`, or until the queue is empty or refuses. Stops earlier if
    /// this receiver has received its share of [`REPORTS_MAX`].
    async fn receive_some(&self, until_ms: u64) -> Vec<Report> {
        let mut reports = Vec::new();
        while reports.len() < REPORTS_MAX / RECEIVES_AT_ONCE && self.ports.now_ms() < until_ms {
            match self.ports.receive().await {
                Ok(more) if !more.is_empty() => reports.extend(more),
                Ok(_) | Err(Refused(_)) => break,
            }
        }
        reports
    }

    /// Reads the blobs in their order. Blobs beyond the limits of number and time are counted
    /// without being read.
    async fn read_all(&self, blobs: &[Blob], until_ms: u64) -> Vec<Option<Letter>> {
        let read = async |(place, blob): (usize, &Blob)| {
            let has_room = place < read::BLOBS_MAX && self.ports.now_ms() < until_ms;
            match has_room {
                true => read::read(&self.storage, &self.container.prefix, blob).await,
                false => Some(read::uncounted(&self.container.prefix, blob)),
            }
        };
        stream::iter(blobs.iter().enumerate())
            .map(read)
            .buffered(read::READS_AT_ONCE)
            .collect()
            .await
    }

    /// Publishes a message for each group. Returns the indexes of the blobs whose messages were not
    /// published.
    async fn publish_all(&self, groups: &[Group]) -> (BTreeSet<usize>, Result<(), NotifyError>) {
        let publish = async |group: &Group| {
            let Message { subject, text } = Message::new(group, &self.container);
            self.ports.publish(&subject, &text).await
        };
        let results: Vec<Result<(), Refused>> =
            stream::iter(groups).map(publish).buffered(MESSAGES_AT_ONCE).collect().await;
        let failures: Vec<(&Group, Refused)> = groups
            .iter()
            .zip(results)
            .filter_map(|(group, result)| Some((group, result.err()?)))
            .collect();
        let unpublished = failures.iter().flat_map(|(group, _)| group.blobs.iter().copied());
        let unpublished = unpublished.collect();
        let Some((_, why)) = failures.first() else { return (unpublished, Ok(())) };
        let (failed, all) = (failures.len(), groups.len());
        (unpublished, Err(NotifyError::Publish { failed, all, why: why.clone() }))
    }

    async fn delete_all(&self, receipts: Vec<String>) -> Result<(), NotifyError> {
        let deletes =
            stream::iter(receipts.chunks(DELETED_MAX)).map(|some| self.ports.delete(some));
        let results: Vec<_> = deletes.buffer_unordered(DELETES_AT_ONCE).collect().await;
        results.into_iter().collect::<Result<(), Refused>>().map_err(NotifyError::Delete)
    }
}

#[cfg(test)]
mod tests;
