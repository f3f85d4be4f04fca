//! The answer of a gate for one delivery, and the deliveries sorted by their answers.

use delivery::delivery::WaitReason;
use delivery::delivery::reason::Reason;

use crate::progress::InFlightDelivery;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This gate allows a request now.
    Open,
    /// The delivery waits until this time, and then the gates are asked again.
    Wait {
        until_ms: u64,
        /// Logged, and decides how the wait changes the delivery.
        why: WaitReason,
    },
    /// The delivery is attempted in the slow lane.
    Slow,
    /// The delivery ends without an attempt.
    End {
        /// Written into the dead letter.
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
