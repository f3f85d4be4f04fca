//! The slow lane: the queue of deliveries to slow destinations, and its state.

use std::sync::atomic::{AtomicU64, Ordering};

use delivery::ports::QueueName;
use delivery::time::duration::MINUTE_MS;

use crate::message::APART_MAX;

/// Pause of the slow lane after it refused a message. Otherwise a delivery could move from queue to queue without an attempt.
const REFUSED_MS: u64 = MINUTE_MS;

/// End of the pause after the lane refused a message.
#[derive(Debug, Default)]
pub(crate) struct SlowLane(AtomicU64);

impl SlowLane {
    /// True if an attempt with this many events from this queue may be left to the slow lane. In the lane itself it has time. A
    /// record in isolation has to be attempted there: if it moved on before it crashes us again, it would never use up its
    /// receives.
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

    /// Records that a queue refused a message.
    pub(crate) fn note_refusal(&self, queue: QueueName, now_ms: u64) {
        if queue == QueueName::Slow {
            self.0.store(now_ms.saturating_add(REFUSED_MS), Ordering::Relaxed);
        }
    }
}
