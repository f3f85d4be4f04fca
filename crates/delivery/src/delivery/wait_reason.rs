//! [`WaitReason`]: the reason of a gate of dispatch for a wait without an attempt. It is also a log field.
//!
//! Separate because a wait changes the delivery by its reason alone: only [`Delivery::wait`] makes that change.

use super::Delivery;
use super::history::Entry;
use super::outcome::Outcome;

/// The reason of a wait without an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// It has not started: its event or its subscription states a later moment.
    Scheduled,
    /// Its next attempt is not due.
    NotDue,
    /// Its destination asked for a pause, by `Retry-After` of another response.
    RetryAfter,
    /// Its destination is on probation.
    Probation,
    /// Its destination is slow to respond, and the delivery is attempted in the slow lane.
    Slow,
    /// This process already makes as many requests as its destination allows.
    InFlight,
    /// Its destination has not consented yet.
    Consent,
    /// The rate that its destination consented to is used up.
    ConsentRate,
    /// The delivery has a slot of its destination's rate.
    Slot,
    /// No slot of its destination's rate is free yet.
    NoSlot,
    /// Its destination recovers and has no place for the delivery, which comes back at a random time.
    Away,
    /// Other functions use all permits of its destination; the delivery has a turn.
    Turn,
    /// Other functions use all permits of its destination, and no turn is free yet.
    NoTurn,
    /// The invocation had no time left.
    Time,
}

impl WaitReason {
    /// The log field `why`. Several reasons share a word if people react to them alike.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::NotDue => "due",
            Self::RetryAfter => "retryAfter",
            Self::Probation => "probation",
            Self::Slow => "slow",
            Self::Consent => "consent",
            Self::ConsentRate | Self::Slot | Self::NoSlot | Self::Away => "rate",
            Self::InFlight | Self::Turn | Self::NoTurn => "concurrency",
            Self::Time => "time",
        }
    }
}

impl Delivery {
    /// The reason why it waits until it is due.
    #[must_use]
    pub fn why_not_due(&self, now_ms: u64) -> WaitReason {
        if now_ms < self.starts_ms { WaitReason::Scheduled } else { WaitReason::NotDue }
    }

    /// True for a wait that no log line shows yet. The line of a failed attempt shows the wait for the retry. A long wait for the start is
    /// several messages, and the line of the first one shows it.
    #[must_use]
    pub fn is_news(&self, why: WaitReason) -> bool {
        match why {
            WaitReason::NotDue => false,
            WaitReason::Scheduled => self.hold.starts == 1,
            WaitReason::RetryAfter
            | WaitReason::Probation
            | WaitReason::Slow
            | WaitReason::InFlight
            | WaitReason::Consent
            | WaitReason::ConsentRate
            | WaitReason::Slot
            | WaitReason::NoSlot
            | WaitReason::Away
            | WaitReason::Turn
            | WaitReason::NoTurn
            | WaitReason::Time => true,
        }
    }

    /// Puts the delivery off until this time. A wait is not an attempt.
    pub fn wait(&mut self, why: WaitReason, now_ms: u64, until_ms: u64) {
        match why {
            // The wait for a consent grows with the time since it was due.
            WaitReason::NotDue
            | WaitReason::Slow
            | WaitReason::Consent
            | WaitReason::ConsentRate
            | WaitReason::Time => {}
            WaitReason::Scheduled => self.hold.starts = self.hold.starts.saturating_add(1),
            WaitReason::InFlight => self.hold.turns = self.hold.turns.saturating_add(1),
            WaitReason::Slot => {
                self.due_ms = until_ms;
                self.hold.slots = self.hold.slots.saturating_add(1);
                self.hold.away = 0;
            }
            WaitReason::Away => {
                self.wait_without_slot(until_ms);
                self.hold.away = self.hold.away.saturating_add(1);
            }
            WaitReason::Turn => {
                self.due_ms = until_ms;
                self.hold.permits = self.hold.permits.saturating_add(1);
                self.hold.away = 0;
            }
            WaitReason::NoTurn => (self.due_ms, self.hold.away) = (until_ms, 0),
            WaitReason::RetryAfter | WaitReason::NoSlot => self.wait_without_slot(until_ms),
            WaitReason::Probation => {
                self.wait_without_slot(until_ms);
                self.note_deferral(now_ms);
            }
        }
    }

    fn wait_without_slot(&mut self, until_ms: u64) {
        self.due_ms = until_ms;
        self.hold.slots = 0;
    }

    /// Adds one entry to the history for all deferrals in a row.
    fn note_deferral(&mut self, now_ms: u64) {
        // In a long outage they would remove the attempts from the history.
        if self.history.newest().is_none_or(|entry| entry.outcome != Outcome::Probation) {
            self.history.push(Entry::new(now_ms, Outcome::Probation, None, 0));
        }
    }
}
