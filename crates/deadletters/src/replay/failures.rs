//! Decides whether a replay stops because its deliveries fail. Pure.
//!
//! Separate from the run, which sends, and from [`super::new_ends`], which reads the results of
//! deliveries.

use delivery::delivery::replay::ReplayOutcome;

use super::sender::SendResult;

/// Number of dead letters that a run sends first, as a probe. The run stops if they fail.
/// Otherwise it would send all dead letters to a destination whose fault is not repaired.
pub const PROBED: usize = 5;
/// Number of consecutive failures at which a run stops.
pub(super) const IN_A_ROW: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Continue,
    Stop,
}

/// Decides whether a run stops. `ends` are the results of its deliveries so far, oldest first.
pub(super) fn judge_ends(ends: &[ReplayOutcome]) -> Verdict {
    match ends.iter().rev().take_while(|end| is_failure(**end)).count() {
        IN_A_ROW.. => Verdict::Stop,
        _ => Verdict::Continue,
    }
}

/// The decision after the results of the probe were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeVerdict {
    /// Wait, because too few deliveries have ended.
    Wait,
    /// Continue, because at least one dead letter was delivered, or none was sent.
    Continue,
    /// Continue, because no delivery has failed, although none has ended in time.
    ContinueUnproved,
    /// Stop, because at least one delivery has failed, and none has succeeded.
    Stop,
}

/// Decides how a run continues after its probe. `sent` is the number of dead letters sent, and
/// `ends` are the results so far. `is_time_over` is true if the run must not wait for more results.
pub(super) fn judge_probe(sent: usize, ends: &[ReplayOutcome], is_time_over: bool) -> ProbeVerdict {
    let failed = ends.iter().filter(|end| is_failure(**end)).count();
    if sent == 0 || failed < ends.len() {
        ProbeVerdict::Continue
    } else if failed == sent {
        ProbeVerdict::Stop
    } else if !is_time_over {
        ProbeVerdict::Wait
    } else if failed > 0 {
        ProbeVerdict::Stop
    } else {
        ProbeVerdict::ContinueUnproved
    }
}

pub(super) fn is_failure(end: ReplayOutcome) -> bool {
    match end {
        ReplayOutcome::DeadAgain | ReplayOutcome::Dropped => true,
        ReplayOutcome::Delivered => false,
    }
}

/// The failures to send dead letters in a run, according to the responses of the queue or the URL.
#[derive(Debug, Default)]
pub(super) struct SendFailures {
    in_a_row: usize,
    is_any_accepted: bool,
    /// The problem of the last refused dead letter.
    problem: Option<String>,
}

impl SendFailures {
    /// Adds the results of a chunk. Returns a reason if the run must stop: after [`IN_A_ROW`]
    /// consecutive failures, or after [`PROBED`] if nothing was accepted so far.
    pub(super) fn add(&mut self, results: &[SendResult]) -> Option<String> {
        for result in results {
            match result {
                SendResult::Sent => {
                    *self = Self { is_any_accepted: true, ..Self::default() };
                }
                SendResult::Refused(why) | SendResult::Uncertain(why) => {
                    (self.in_a_row, self.problem) = (self.in_a_row + 1, Some(why.clone()));
                }
                // This result depends on the dead letter, not on the target.
                SendResult::Unfit(_) => {}
            }
        }
        if self.in_a_row >= PROBED && !self.is_any_accepted {
            return self.nothing_accepted();
        }
        let problem = self.problem.as_ref().filter(|_| self.in_a_row >= IN_A_ROW)?;
        Some(format!("stopped: the last {IN_A_ROW} deliveries failed: {problem}"))
    }

    /// Returns a reason if there were failures and no dead letter was accepted.
    pub(super) fn nothing_accepted(&self) -> Option<String> {
        let problem = self.problem.as_ref().filter(|_| !self.is_any_accepted)?;
        Some(format!("stopped: no delivery was accepted: {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: ReplayOutcome = ReplayOutcome::Delivered;
    const DEAD: ReplayOutcome = ReplayOutcome::DeadAgain;
    const DROPPED: ReplayOutcome = ReplayOutcome::Dropped;

    #[test]
    fn ten_failures_in_a_row_at_the_end_stop_a_run() {
        for (ends, verdict) in [
            (vec![], Verdict::Continue),
            (vec![DEAD; 9], Verdict::Continue),
            (vec![DEAD; 10], Verdict::Stop),
            ([vec![DEAD; 5], vec![DROPPED; 5]].concat(), Verdict::Stop),
            ([vec![OK], vec![DEAD; 10]].concat(), Verdict::Stop),
            ([vec![DEAD; 10], vec![OK]].concat(), Verdict::Continue),
            ([vec![DEAD; 5], vec![OK], vec![DEAD; 9]].concat(), Verdict::Continue),
        ] {
            assert_eq!(judge_ends(&ends), verdict, "{ends:?}");
        }
    }

    #[test]
    fn a_probe_stops_unless_one_was_delivered_or_none_has_ended() {
        for (sent, ends, in_time, late) in [
            (0, vec![], ProbeVerdict::Continue, ProbeVerdict::Continue),
            (5, vec![], ProbeVerdict::Wait, ProbeVerdict::ContinueUnproved),
            (5, vec![DEAD; 4], ProbeVerdict::Wait, ProbeVerdict::Stop),
            (5, vec![DEAD, DEAD, DROPPED, DEAD, DEAD], ProbeVerdict::Stop, ProbeVerdict::Stop),
            (5, vec![DEAD, OK], ProbeVerdict::Continue, ProbeVerdict::Continue),
            (5, vec![DEAD, DEAD, DEAD, DEAD, OK], ProbeVerdict::Continue, ProbeVerdict::Continue),
            (2, vec![DEAD, DEAD], ProbeVerdict::Stop, ProbeVerdict::Stop),
        ] {
            let judged = (judge_probe(sent, &ends, false), judge_probe(sent, &ends, true));
            assert_eq!(judged, (in_time, late), "{sent} {ends:?}");
        }
    }

    #[test]
    fn results_of_sending_stop_a_run_if_five_and_no_other_or_the_last_ten_are_failures() {
        let (sent, unfit) = (SendResult::Sent, SendResult::Unfit("too long".to_owned()));
        let refused = |count| vec![SendResult::Refused("no".to_owned()); count];
        let stopped = |chunks: &[Vec<SendResult>]| {
            let mut failures = SendFailures::default();
            let stop = chunks.iter().filter_map(|chunk| failures.add(chunk)).last();
            (stop, failures.nothing_accepted())
        };
        let nothing = Some("stopped: no delivery was accepted: no".to_owned());
        assert_eq!(stopped(&[refused(4)]), (None, nothing.clone()));
        assert_eq!(stopped(&[refused(4), vec![unfit.clone()]]), (None, nothing.clone()));
        assert_eq!(stopped(&[refused(4), refused(1)]), (nothing.clone(), nothing));
        assert_eq!(stopped(&[vec![unfit.clone(); 10]]), (None, None));
        let begun = |then: Vec<SendResult>| [vec![sent.clone()], then].concat();
        let uncertain = vec![SendResult::Uncertain("no answer".to_owned())];
        let last_ten = Some("stopped: the last 10 deliveries failed: no answer".to_owned());
        assert_eq!(stopped(&[begun(refused(9))]), (None, None));
        assert_eq!(stopped(&[begun(refused(9)), vec![unfit]]), (None, None));
        assert_eq!(stopped(&[begun(refused(9)), uncertain]), (last_ten, None));
        let recovered = [refused(9), vec![sent.clone()], refused(9)].concat();
        assert_eq!(stopped(&[begun(refused(9)), recovered]), (None, None));
    }
}
