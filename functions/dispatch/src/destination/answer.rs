//! The answer of a gate for one delivery, and deliveries sorted by the answers.

use delivery::delivery::WaitReason;
use delivery::delivery::reason::Reason;

use crate::progress::InFlightDelivery;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The gate allows a request now.
    Open,
    /// The delivery waits until `until_ms`; all gates are then asked again.
    Wait {
        until_ms: u64,
        /// Reason for the wait. It is logged, and determines how the wait changes the delivery.
        why: WaitReason,
    },
    /// The delivery is to be attempted in the slow lane.
    Slow,
    /// The delivery ends without an attempt.
    End {
        /// The reason, which is recorded with the end of the delivery.
        reason: Reason,
    },
}

/// The deliveries of one request, after the gates have answered.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Deliveries for which all gates are open.
    pub(crate) due: Vec<InFlightDelivery>,
    /// Deliveries with a closed gate, each with the answer of that gate.
    pub(crate) refused: Vec<(InFlightDelivery, Answer)>,
}

impl Asked {
    /// Moves deliveries with a closed gate from `due` to `refused`. `answers` has one answer for
    /// each delivery in `due`.
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
