//! Turns each record into work items. Reads the subscriptions that the record needs.
//!
//! Separate from [`crate::decode`], which is pure and does no I/O. A name counts as missing only
//! after the newest subscriptions were read. A record that cannot be decided now waits as a
//! message.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

use adapters::telemetry::{self, Telemetry};
use delivery::ports::{DispatchPorts, Queue as _, QueueName, Record, SubscriptionSource as _};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::time::duration::SECOND_MS;
use delivery::waits::{hidden_seconds, isolated_seconds};

use crate::deadline::Deadline;
use crate::decode::{self, Decoded, WorkItem};
use crate::endings::Endings;
use crate::finished::FinishedDeliveries;
use crate::message::{deliverable_since_ms, is_published};
use crate::waiting::{RecordWait, Wait};

/// Delay between the end of the invocation and the next receive of an isolated record that crashes
/// this process.
const AFTER_END_MS: u64 = 5 * SECOND_MS;

/// Maximum time that an invocation waits for the topics of a part. Records that still need topics
/// are then re-enqueued. All records of a part share this limit, because one unreadable topic would
/// use up the invocation if each record had its own limit.
const READS_MAX_MS: u64 = 20 * SECOND_MS;

/// Records of a batch that are handled together, and the topics read so far.
pub(crate) struct Part<'r> {
    pub(crate) records: Cow<'r, [Record]>,
    pub(crate) catalogue: Result<Arc<Catalogue>, String>,
}

/// The reason why a record has no items now.
enum Unread {
    /// A subscription that the record needs cannot be read.
    Unknown(String),
    /// The attribute cannot be read; a newer version may have written it.
    Unreadable(String),
    /// The decoder panicked.
    Panicked,
}

/// Reads and acknowledges the records of this process.
#[derive(Debug)]
pub(crate) struct Records<P> {
    pub(crate) ports: Arc<P>,
    /// Topic of records that name no topic.
    pub(crate) default_topic: Option<TopicName>,
    pub(crate) finished: Mutex<FinishedDeliveries>,
    pub(crate) endings: Arc<Endings<P>>,
    pub(crate) telemetry: Arc<Telemetry>,
}

impl<P: DispatchPorts> Records<P> {
    /// True if this process finished the item after an earlier receive of its record.
    pub(crate) fn is_finished(&self, record: &Record, item: &WorkItem) -> bool {
        // A delivery in a separate message was re-enqueued for its next attempt, so it has not
        // ended.
        let Some(delivery) = item.delivery().filter(|_| is_published(record)) else { return false };
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.contains(&delivery.origin.message, delivery.id)
    }

    /// Shortens the visibility timeout of an isolated record to just after the end of this
    /// invocation. If the record crashes this process, it is then received again soon. The queue's
    /// own timeout is long, because a throttled invocation must not use up receives.
    async fn hide_isolated(&self, record: &Record, deadline: &Deadline) {
        let Some(ends_ms) = deadline.ends_ms().filter(|_| record.queue == QueueName::Isolation)
        else {
            return;
        };
        let left_ms = ends_ms.saturating_sub(self.ports.now_ms()).saturating_add(AFTER_END_MS);
        let seconds = hidden_seconds(left_ms);
        self.ports.queues().change_visibility(record.queue, &record.receipt, seconds).await;
    }

    /// Hides an isolated record that returns without a crash, for a longer time after each receive.
    /// Otherwise a queue that refuses messages for hours would use up the record's receives.
    pub(crate) async fn hide_returned(&self, record: &Record) {
        if record.queue == QueueName::Isolation {
            let seconds = isolated_seconds(record.receives);
            self.ports.queues().change_visibility(record.queue, &record.receipt, seconds).await;
        }
    }

    /// Returns the items of a record; `None` if the record returns to its queue. A record that
    /// waits as a message has that message as its item. While the newest subscriptions cannot be
    /// read, a record with a missing name waits.
    pub(crate) async fn read_record(
        &self,
        record: &Record,
        catalogue: &mut Result<Arc<Catalogue>, String>,
        deadline: &Deadline,
        reads_until_ms: u64,
    ) -> Option<Vec<WorkItem>> {
        self.hide_isolated(record, deadline).await;
        let now_ms = self.ports.now_ms();
        if let Some(Wait::Requeued(queue, message)) = RecordWait::Isolated.wait(record, now_ms) {
            telemetry::isolated(&record.message, message.receives);
            return Some(vec![WorkItem::Forward(queue, message)]);
        }
        let (wait, why) = match self.decode_record(record, catalogue, reads_until_ms).await {
            Ok(decoded) => {
                // Report only after the final decode; an earlier decode could report the same event
                // twice.
                for (name, event) in &decoded.unmatched {
                    self.telemetry.unmatched(&record.message, name, event);
                }
                let is_part = |item: &&WorkItem| matches!(item, WorkItem::Forward(..));
                let parts = decoded.items.iter().filter(is_part).count();
                if parts > 0 {
                    telemetry::divided(&record.message, parts);
                }
                return Some(decoded.items);
            }
            Err(Unread::Unknown(why)) => (RecordWait::Unknown, why),
            Err(Unread::Unreadable(why)) => {
                if record.waits_long_unread(now_ms) {
                    telemetry::unreadable_for_long(&record.message, &why);
                }
                (RecordWait::Unreadable, why)
            }
            // The queue redelivers the record, and then this function isolates it.
            Err(Unread::Panicked) => return None,
        };
        self.wait(record, wait, &why).await
    }

    /// Re-enqueues a record that cannot be handled now. Hides the record instead if it is too large
    /// for a message.
    async fn wait(&self, record: &Record, wait: RecordWait, why: &str) -> Option<Vec<WorkItem>> {
        let now_ms = self.ports.now_ms();
        match wait.wait(record, now_ms)? {
            Wait::Requeued(queue, message) => {
                self.telemetry.waited(deliverable_since_ms(record), now_ms);
                telemetry::record_held(&record.message, why, message.wait_ms);
                Some(vec![WorkItem::Forward(queue, message)])
            }
            Wait::Hidden { seconds } => {
                self.return_to_queue(record, why, seconds).await;
                None
            }
        }
    }

    /// Returns the time at which the records of a part stop waiting for topics.
    pub(crate) fn reads_until_ms(&self, deadline: &Deadline) -> u64 {
        let now_ms = self.ports.now_ms();
        let share_ms = deadline.share_ms(now_ms).unwrap_or(READS_MAX_MS);
        now_ms.saturating_add(share_ms.min(READS_MAX_MS))
    }

    /// Divides a batch by topic, so that no record waits for the topic of another record.
    pub(crate) fn parts<'r>(
        &self,
        records: &'r [Record],
        known: Result<Arc<Catalogue>, String>,
    ) -> Vec<Part<'r>> {
        let whole = |catalogue| vec![Part { records: records.into(), catalogue }];
        let known = match known {
            // A whole catalogue contains every topic, so nothing has to be read.
            Ok(known) if !known.is_whole() => known,
            other => return whole(other),
        };
        let mut parts = BTreeMap::<TopicName, Vec<&Record>>::new();
        for record in records {
            let topic = decode::topic_of_record(record, &known, self.default_topic.as_ref());
            parts.entry(topic).or_default().push(record);
        }
        if parts.len() == 1 {
            return whole(Ok(known));
        }
        let part = |records: Vec<&Record>| Part {
            records: records.into_iter().cloned().collect(),
            catalogue: Ok(Arc::clone(&known)),
        };
        parts.into_values().map(part).collect()
    }

    async fn decode_record(
        &self,
        record: &Record,
        catalogue: &mut Result<Arc<Catalogue>, String>,
        reads_until_ms: u64,
    ) -> Result<Decoded, Unread> {
        let left_ms = reads_until_ms.saturating_sub(self.ports.now_ms());
        let decoded = tokio::select! {
            // Cached topics are available immediately, even when no time is left.
            biased;
            decoded = self.decode_newest(record, catalogue) => decoded?,
            () = self.ports.sleep(left_ms) => {
                return Err(Unread::Unknown("the topics of the record were not read in time".to_owned()));
            }
        };
        match decoded.waits {
            Some(why) => Err(Unread::Unknown(why)),
            None => Ok(decoded),
        }
    }

    /// Decodes a record after reading every topic that it needs: its own topic, and the topics to
    /// which its deliveries may lead. The receivers of replies and dead letters are therefore known
    /// before the first attempt. If a name is missing, reads the newest subscriptions once.
    async fn decode_newest(
        &self,
        record: &Record,
        catalogue: &mut Result<Arc<Catalogue>, String>,
    ) -> Result<Decoded, Unread> {
        let mut is_newest = false;
        loop {
            let known = catalogue.as_ref().map_err(|problem| Unread::Unknown(problem.clone()))?;
            // The whole record is decoded again: a newer topic may match its other events
            // differently.
            let decoded = self.contained_decode(record, known)?;
            *catalogue = if !decoded.unread.is_empty() {
                Ok(self.ports.subscriptions().with_topics(Arc::clone(known), &decoded.unread).await)
            } else if !decoded.missing.is_empty() && !is_newest {
                is_newest = true;
                let newest =
                    self.ports.subscriptions().reread(Arc::clone(known), &decoded.missing).await;
                Ok(newest.map_err(Unread::Unknown)?)
            } else {
                return Ok(decoded);
            };
        }
    }

    fn contained_decode(&self, record: &Record, catalogue: &Catalogue) -> Result<Decoded, Unread> {
        let (default_topic, now_ms) = (self.default_topic.as_ref(), self.ports.now_ms());
        let read = || decode::decode_and_match(record, catalogue, default_topic, now_ms);
        match panic::catch_unwind(AssertUnwindSafe(read)) {
            Ok(decoded) => decoded.map_err(|error| Unread::Unreadable(error.to_string())),
            Err(_) => {
                telemetry::panicked("decode");
                Err(Unread::Panicked)
            }
        }
    }
}
