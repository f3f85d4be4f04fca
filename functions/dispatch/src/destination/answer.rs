//! The answer of a gate, for one delivery.

use delivery::delivery::WaitReason;
use delivery::delivery::reason::Reason;

use crate::progress::InFlightDelivery;

/// The answer of a gate, for one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This gate allows a request now.
    Open,
    /// The delivery waits until this time; then the gates are asked again.
    Wait {
        until_ms: u64,
        /// For the log, and for the change of the delivery by [`WaitReason`].
        why: WaitReason,
    },
    /// The delivery is attempted in the slow lane.
    Slow,
    /// The delivery ends without an attempt.
    End {
        /// Recorded with the end.
        reason: Reason,
    },
}

/// The deliveries of one request after the gates answered.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Deliveries with open gates.
    pub(crate) due: Vec<InFlightDelivery>,
    /// Deliveries with a closed gate.
    pub(crate) refused: Vec<(InFlightDelivery, Answer)>,
}

impl Asked {
    /// Removes the deliveries with a closed gate. `answers` has one answer for each delivery in `due`.
    pub(super) fn sort_out(&mut self, answers: Vec<Answer>) {
        for (in_flight, answer) in std::mem::take(&mut self.due).into_iter().zip(answers) {
            match answer {
                Answer::Open => self.due.push(in_flight),
                Answer::Wait { .. } | Answer::Slow | Answer::End { .. } => {
                    self.refused.push((in_flight, answer));
                }
            }
        }
    }
}
