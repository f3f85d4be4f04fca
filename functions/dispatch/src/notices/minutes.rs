//! Notices about dead letters: once a minute and cause, with their number.
//!
//! At the end of an invocation its dead letters are added to the item of the minute. If the process wrote a few seconds ago, they
//! are kept for a later invocation. Before the first write of a minute, a delayed message is sent: a published record that
//! announces the minute. When it is received, the counts in the item are published in its place. So every written minute is
//! published, and the message of an unwritten one finds nothing. While the table is unreachable, the record waits like one whose
//! topic cannot be read. At last it is delivered unchanged, as a notice without counts.

use std::sync::Arc;

use delivery::delivery::Publication;
use delivery::delivery::health::dead_letters::{Causes, Minute, MinuteOfDeadLetters};
use delivery::ports::{Attribute, DispatchPorts, Message, QueueName, Record};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::wire::{read_publication, write_publication};

use super::Notices;
use super::destinations::published;
use crate::dead_letter_counts::DeadLetterCounts;
use crate::deadline::Deadline;
use crate::decode::WorkItem;
use crate::invocation::Invocation;
use crate::message::same_message;
use crate::table::{NotUpdated, REQUEST_MS};

/// Maximum number of waits of a minute for the table, seven hours in all: its item expires after a day.
const HOLDS_MAX: u32 = 10;

/// The minute whose dead letters a record announces, unless it has waited for long enough.
pub(crate) fn announced(record: &Record) -> Option<Minute> {
    let Some(Attribute::Publication(text)) = record.trusted_attribute() else { return None };
    let publication = read_publication(text).ok()?;
    let at_ms = publication.dead_letters_ms.filter(|_| publication.hold.count < HOLDS_MAX)?;
    Some(Minute { at_ms })
}

impl<P: DispatchPorts> Notices<P> {
    /// Writes the counts, if a subscription wants notices. A failed write is repeated later.
    pub(crate) async fn share_dead_letters(&self, of: &Invocation<'_>) {
        let Some(topic) = of.catalogue.topic_of_notices() else { return };
        if self.table.is_unreachable() {
            return;
        }
        let now_ms = self.ports.now_ms();
        let Some(counted) = self.counts().take(now_ms) else { return };
        let minute = Minute::of(now_ms);
        let written = tokio::select! {
            biased;
            written = self.write_minute(minute, &counted, topic, of.deadline) => written,
            // The minute may be published before this write ends: the counts are for a later one.
            () = self.ports.sleep(minute.written_until_ms() - now_ms) => Err(NotUpdated::Unreachable),
        };
        if written.is_err() {
            self.counts().keep(&counted);
            self.counts().pause(self.ports.now_ms());
        }
    }

    fn counts(&self) -> &DeadLetterCounts {
        &self.sending.counts
    }

    async fn write_minute(
        &self,
        minute: Minute,
        counted: &Causes,
        topic: &TopicName,
        deadline: &Deadline,
    ) -> Result<(), NotUpdated> {
        let item = minute.item();
        if !self.counts().is_announced(minute) {
            let known = self.table.read::<MinuteOfDeadLetters>(&item, deadline).await?.document;
            if !known.is_some_and(|known| known.is_of(minute)) {
                let message = announcement(minute, counted, topic, self.ports.now_ms());
                let sent = tokio::select! {
                    biased;
                    sent = self.sending.send(QueueName::FanOut, message, deadline) => sent,
                    () = self.ports.sleep(REQUEST_MS) => false,
                };
                sent.then_some(()).ok_or(NotUpdated::Unreachable)?;
            }
            self.counts().note_announced(minute);
        }
        let add = |stored| (MinuteOfDeadLetters::with(stored, minute, counted), ());
        self.table.update(&item, add, deadline).await.map(|_| ())
    }

    /// The messages that follow from a record that announces a minute: one record for each cause, or the record again if it is
    /// too early.
    ///
    /// # Errors
    /// The reason why it has to wait.
    pub(crate) async fn tell_of_minute(
        &self,
        minute: Minute,
        record: &Record,
        catalogue: &Result<Arc<Catalogue>, String>,
        deadline: &Deadline,
    ) -> Result<Vec<WorkItem>, String> {
        let now_ms = self.ports.now_ms();
        let forward = |message| WorkItem::Forward(QueueName::FanOut, Box::new(message));
        if now_ms < minute.due_ms() {
            return Ok(vec![forward(same_message(record, minute.due_ms() - now_ms))]);
        }
        let catalogue = catalogue.as_ref().map_err(Clone::clone)?;
        let Some(topic) = catalogue.topic_of_notices() else { return Ok(Vec::new()) };
        let read = self.table.read::<MinuteOfDeadLetters>(&minute.item(), deadline).await;
        let read = read.map_err(|_| "the dead letters of a minute cannot be read")?;
        let document = read.document.filter(|document| document.is_of(minute));
        let messages = document.iter().flat_map(MinuteOfDeadLetters::events);
        let messages = messages.map(|(id, event)| published(id, now_ms, event, topic).1);
        Ok(messages.map(forward).collect())
    }
}

/// A record that announces a minute after its end. A process that cannot read the announcement delivers an event without counts.
fn announcement(minute: Minute, counted: &Causes, topic: &TopicName, now_ms: u64) -> Message {
    let (id, event) = minute.event(counted);
    let (publication, message) = published(id, now_ms, event, topic);
    let publication = Publication { dead_letters_ms: Some(minute.at_ms), ..publication };
    let wait_ms = minute.due_ms().saturating_sub(now_ms);
    Message {
        attribute: Attribute::Publication(write_publication(&publication)),
        wait_ms,
        ..message
    }
}
