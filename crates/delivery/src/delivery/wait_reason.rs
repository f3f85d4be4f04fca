//! [`WaitReason`]: the reason why dispatch defers a delivery without an attempt. It is also a log
//! field.
//!
//! This module is separate because the reason of a wait determines how the wait changes the
//! delivery. Only [`Delivery::wait`] makes that change.

use super::Delivery;
use super::history::Entry;
use super::outcome::Outcome;

/// The reason why a delivery waits without an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The delivery has not started yet: its event or its subscription delays the start.
    Scheduled,
    /// The next attempt is not due yet.
    NotDue,
    /// An earlier response of the destination requested a pause, with `Retry-After`.
    RetryAfter,
    /// The destination is on probation.
    Probation,
    /// The destination is slow to respond, so the delivery waits for an attempt in the slow lane.
    Slow,
    /// This process already has the maximum number of requests in flight to the destination.
    InFlight,
    /// The destination has not consented to deliveries yet.
    Consent,
    /// The rate to which the destination consented is used up for now.
    ConsentRate,
    /// The delivery waits for its slot, a time that is reserved for it within the rate limit of the
    /// destination.
    Slot,
    /// No slot in the rate of the destination is free yet.
    NoSlot,
    /// The destination is recovering, and no slot in its rate is free. The next try is at a random
    /// time.
    Away,
    /// Other functions use all permits of the destination. The delivery waits for its turn, the
    /// time at which a permit is expected to be free.
    Turn,
    /// Other functions use all permits of the destination, and other deliveries have taken all
    /// turns so far.
    NoTurn,
    /// The invocation had no time left for an attempt.
    Time,
}

impl WaitReason {
    /// Returns the value of the log field `why`. Reasons have the same value if operators react to
    /// them in the same way.
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
    /// Returns the reason why a delivery that is not due waits: for its start, or for its next
    /// attempt.
    #[must_use]
    pub fn why_not_due(&self, now_ms: u64) -> WaitReason {
        if now_ms < self.starts_ms { WaitReason::Scheduled } else { WaitReason::NotDue }
    }

    /// Returns true if no log line has reported this wait yet. The log line of a failed attempt
    /// reports the wait for the retry. A long wait for the start takes several messages, and only
    /// the first is reported.
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

    /// Defers the delivery until this time. A wait is not an attempt.
    pub fn wait(&mut self, why: WaitReason, now_ms: u64, until_ms: u64) {
        match why {
            // These waits leave `due_ms` unchanged. The wait for consent grows with the time since
            // `due_ms`.
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

    /// Adds a deferral to the history; consecutive deferrals share one entry.
    fn note_deferral(&mut self, now_ms: u64) {
        // One entry for each deferral of a long outage would displace the attempts.
        if self.history.newest().is_none_or(|entry| entry.outcome != Outcome::Probation) {
            self.history.push(Entry::new(now_ms, Outcome::Probation, None, 0));
        }
    }
}
