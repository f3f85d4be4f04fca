//! Replays in rounds, until no dead letter has arrived for some time and the stack's dead-letter
//! queue is empty.
//!
//! Separate from [`super::replay`], which runs one round. Several rounds are necessary because dead
//! letters arrive for some time after a subscription is resumed or a destination is enabled:
//!
//! - For a few minutes, processes still use the cached old state, and create dead letters.
//! - After a crash, throttling or a refused write to storage, a dead letter stays in its queue for
//!   longer.

use std::ops::ControlFlow;
use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::bail;
use deadletters::DeadLetters;
use deadletters::replay::job_name;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::time::duration::{HOUR_MS, SECOND_MS};

use super::new_letters::NewLetters;
use super::replay::{Arguments, Round, round};
use crate::operations::place::Place;
use crate::operations::stack::Stack;
use crate::terminal::interrupt;
use crate::terminal::output::note;
use crate::terminal::text;

/// The maximum time between two rounds, which is otherwise a quarter of the quiet time. More
/// frequent rounds would list the container too often.
const BETWEEN_ROUNDS_MAX_MS: u64 = 30 * SECOND_MS;
/// The maximum time to wait until the dead-letter queue is empty. The queue may never become empty,
/// because it also contains dead letters of other subscriptions.
const QUEUE_WAIT_MAX_MS: u64 = HOUR_MS;

const ALL_RETURN: &str = "replayed deliveries become dead letters again: their destination fails \
                          or is disabled, or their subscription is still paused";

#[derive(Debug)]
struct Progress {
    quiet_ms: u64,
    /// The time of the last round that sent a dead letter.
    last_ms: u64,
    /// The time of the last round that sent a dead letter of a delivery that was no replay.
    last_new_ms: u64,
    jobs: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Round,
    /// Start another round, because the queue may still contain dead letters.
    RoundForQueue,
    End,
    QueueStaysFull,
    /// Stop, because replayed deliveries become dead letters again and again.
    AllReturn,
}

/// Replays in rounds until no dead letter has arrived for this period.
///
/// # Errors
/// If a round fails, replayed deliveries become dead letters again and again, or the queue does not
/// become empty.
pub(super) async fn run(
    letters: DeadLetters,
    place: &Place,
    arguments: Arguments,
    quiet_ms: u64,
) -> anyhow::Result<ExitCode> {
    let name = arguments.name.clone().unwrap_or_else(|| job_name(Machine.now_ms()));
    let between_ms = (quiet_ms / 4).clamp(SECOND_MS, BETWEEN_ROUNDS_MAX_MS);
    let stack = place.stack().await?;
    let mut progress = Progress::new(Machine.now_ms(), quiet_ms);
    let filter = arguments.filter.clone().filter()?;
    let mut new_letters = NewLetters::after_now(letters.clone(), filter, None).await?;
    let mut in_queue = messages(stack).await?;
    // The first round reads all matching dead letters. Each later round reads only the new ones.
    let mut new: Option<Vec<StoredDeadLetter>> = None;
    let mut is_noted = false;
    loop {
        let job = format!("{name}-{}", progress.jobs + 1);
        let is_confirmed = progress.jobs > 0;
        let sent =
            match send((&letters, place), &arguments, job, is_confirmed, new.as_deref()).await? {
                ControlFlow::Continue(sent) => sent,
                ControlFlow::Break(code) => return Ok(code),
            };
        let next = progress.after(Machine.now_ms(), sent, in_queue);
        let waits = match next {
            Next::Round => false,
            Next::RoundForQueue => true,
            Next::End => break,
            Next::QueueStaysFull => bail!(stays_full(in_queue)),
            Next::AllReturn => bail!(ALL_RETURN),
        };
        if waits && !is_noted {
            note(waits_for_queue(quiet_ms, in_queue));
        }
        is_noted = waits;
        tokio::select! {
            () = Machine.sleep(between_ms) => {}
            _ = interrupt::requested() => {
                note("interrupted; see the list of jobs for what was sent");
                return Ok(ExitCode::from(super::FAILED));
            }
        }
        // Keep this order: a message is deleted from the queue only after its dead letter is
        // stored.
        in_queue = messages(stack).await?;
        new = Some(new_letters.next().await?);
    }
    let (quiet, jobs) = (text::duration(quiet_ms), text::counted(progress.jobs, "job"));
    note(format_args!("no dead letter arrived for {quiet}; finished after {jobs}"));
    Ok(ExitCode::SUCCESS)
}

/// Runs one round with the dead letters in `new` or, if `new` is `None`, with all that match.
/// Returns the exit code if the command must end; otherwise the argument `sent` of
/// [`Progress::after`].
async fn send(
    (letters, place): (&DeadLetters, &Place),
    arguments: &Arguments,
    job: String,
    is_confirmed: bool,
    new: Option<&[StoredDeadLetter]>,
) -> anyhow::Result<ControlFlow<ExitCode, Option<bool>>> {
    let mut of_round = arguments.clone();
    of_round.yes |= is_confirmed;
    of_round.name = Some(job);
    let round = match new {
        Some([]) => Round::Nothing(ExitCode::SUCCESS),
        new => round(letters.clone(), place, of_round, new).await?,
    };
    Ok(match round {
        Round::Nothing(..) => ControlFlow::Continue(None),
        Round::Declined => ControlFlow::Break(ExitCode::FAILURE),
        Round::Sent { is_done: false, .. } => ControlFlow::Break(ExitCode::from(super::FAILED)),
        Round::Sent { are_all_back, .. } => ControlFlow::Continue(Some(are_all_back)),
    })
}

/// Returns the approximate number of messages in the stack's dead-letter queue. Returns zero
/// without a stack.
async fn messages(stack: Option<&Stack>) -> anyhow::Result<u64> {
    match stack {
        Some(stack) => stack.messages_in("DeadLetterQueueUrl").await,
        None => Ok(0),
    }
}

impl Progress {
    fn new(now_ms: u64, quiet_ms: u64) -> Self {
        Self { quiet_ms, last_ms: now_ms, last_new_ms: now_ms, jobs: 0 }
    }

    /// Records a round, and decides the next step. `sent` is `None` if there was nothing to send.
    /// Otherwise, it is true if each of the dead letters came from a failed replay.
    fn after(&mut self, now_ms: u64, sent: Option<bool>, in_queue: u64) -> Next {
        let quiet_ms = self.quiet_ms;
        let is_quiet_since = |since_ms: u64| now_ms.saturating_sub(since_ms) >= quiet_ms;
        let give_up_ms = self.last_ms.saturating_add(quiet_ms).saturating_add(QUEUE_WAIT_MAX_MS);
        match sent {
            None if !is_quiet_since(self.last_ms) => Next::Round,
            None if in_queue == 0 => Next::End,
            None if now_ms >= give_up_ms => Next::QueueStaysFull,
            None => Next::RoundForQueue,
            Some(true) if is_quiet_since(self.last_new_ms) => Next::AllReturn,
            Some(are_all_back) => {
                self.last_ms = now_ms;
                self.last_new_ms = if are_all_back { self.last_new_ms } else { now_ms };
                self.jobs += 1;
                Next::Round
            }
        }
    }
}

fn waits_for_queue(quiet_ms: u64, in_queue: u64) -> String {
    format!(
        "no dead letter arrived for {}, but the stack's dead-letter queue contains about {}; \
         waiting up to {} until the queue is empty",
        text::duration(quiet_ms),
        text::counted(in_queue, "message"),
        text::duration(QUEUE_WAIT_MAX_MS)
    )
}

fn stays_full(in_queue: u64) -> String {
    format!(
        "the stack's dead-letter queue still contains about {} after {}. Run the command again \
         when the queue is empty, because these messages may become dead letters to replay",
        text::counted(in_queue, "message"),
        text::duration(QUEUE_WAIT_MAX_MS)
    )
}

#[cfg(test)]
mod tests {
    use delivery::time::duration::MINUTE_MS;

    use super::*;

    const QUIET_MS: u64 = 12 * MINUTE_MS;
    const NOW_MS: u64 = HOUR_MS;
    const QUIET_AT_MS: u64 = NOW_MS + QUIET_MS;

    #[test]
    fn the_rounds_end_when_nothing_has_come_for_the_time_and_the_queue_is_empty() {
        let mut progress = Progress::new(0, QUIET_MS);
        assert_eq!(progress.after(NOW_MS, Some(false), 3), Next::Round);
        for (now_ms, in_queue, next) in [
            (QUIET_AT_MS - 1, 0, Next::Round),
            (QUIET_AT_MS - 1, 3, Next::Round),
            (QUIET_AT_MS, 0, Next::End),
            (QUIET_AT_MS, 1, Next::RoundForQueue),
            (QUIET_AT_MS + QUEUE_WAIT_MAX_MS - 1, 1, Next::RoundForQueue),
            (QUIET_AT_MS + QUEUE_WAIT_MAX_MS, 1, Next::QueueStaysFull),
            (QUIET_AT_MS + QUEUE_WAIT_MAX_MS, 0, Next::End),
        ] {
            assert_eq!(progress.after(now_ms, None, in_queue), next, "{now_ms} {in_queue}");
        }
        // A late dead letter is sent, and the quiet period starts again.
        assert_eq!(progress.after(QUIET_AT_MS + 1, Some(false), 0), Next::Round);
        assert_eq!(progress.after(QUIET_AT_MS + 2, None, 0), Next::Round);
        assert_eq!(progress.jobs, 2);
    }

    #[test]
    fn replays_that_return_for_the_time_end_the_rounds_with_an_error() {
        let mut progress = Progress::new(NOW_MS, QUIET_MS);
        assert_eq!(progress.after(QUIET_AT_MS - 1, Some(true), 0), Next::Round);
        assert_eq!(progress.after(QUIET_AT_MS, Some(false), 0), Next::Round);
        assert_eq!(progress.after(QUIET_AT_MS + QUIET_MS - 1, Some(true), 0), Next::Round);
        assert_eq!(progress.after(QUIET_AT_MS + QUIET_MS, Some(true), 0), Next::AllReturn);
    }
}
