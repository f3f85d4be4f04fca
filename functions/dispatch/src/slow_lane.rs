//! The slow lane: the queue of deliveries to slow destinations, and the pauses after it refused a
//! message.

use std::sync::atomic::{AtomicU64, Ordering};

use delivery::ports::QueueName;
use delivery::time::duration::MINUTE_MS;

use crate::message::APART_MAX;

/// Pause after the slow queue refused a message. Without the pause, a delivery could move between
/// queues and never be attempted.
const REFUSED_MS: u64 = MINUTE_MS;

/// End of the current pause, in milliseconds since 1970; zero before the first pause.
#[derive(Debug, Default)]
pub(crate) struct SlowLane(AtomicU64);

impl SlowLane {
    /// True if an attempt of this many events from this queue may be moved to the slow lane.
    /// Returns false for deliveries that are already in the slow lane. Returns false for the
    /// isolation queue: the receive count of a re-enqueued record restarts at zero, and would never
    /// reach its maximum.
    pub(crate) fn may_move(&self, queue: QueueName, events: usize, now_ms: u64) -> bool {
        let leads_there = match queue {
            QueueName::Slow | QueueName::Isolation => false,
            QueueName::Events
            | QueueName::Retry
            | QueueName::DeadLetter
            | QueueName::LastResort => true,
        };
        leads_there && events <= APART_MAX && now_ms >= self.0.load(Ordering::Relaxed)
    }

    /// Starts a pause if `queue` is the slow queue.
    pub(crate) fn note_refusal(&self, queue: QueueName, now_ms: u64) {
        if queue == QueueName::Slow {
            self.0.store(now_ms.saturating_add(REFUSED_MS), Ordering::Relaxed);
        }
    }
}
