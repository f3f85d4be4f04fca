//! Replays in rounds, until no dead letter has come for a time.
//!
//! Separate from [`super::replay`], which is one round. Processes know of a pause for a few minutes after it has ended,
//! and make dead letters until then.

use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::bail;
use deadletters::DeadLetters;
use deadletters::replay::job_name;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;

use super::new_letters::NewLetters;
use super::replay::{Arguments, Round, round};
use crate::interrupt;
use crate::output::note;
use crate::text;

/// The longest time between two rounds: each lists the container.
const BETWEEN_ROUNDS_MAX_MS: u64 = 30 * SECOND_MS;

/// Replays until nothing has come for this long.
///
/// # Errors
/// An error of a round, and dead letters that return again and again.
pub(super) async fn run(
    letters: DeadLetters,
    arguments: Arguments,
    quiet_ms: u64,
) -> anyhow::Result<ExitCode> {
    let name = arguments.name.clone().unwrap_or_else(|| job_name(Machine.now_ms()));
    let between_ms = (quiet_ms / 4).clamp(SECOND_MS, BETWEEN_ROUNDS_MAX_MS);
    let begun_ms = Machine.now_ms();
    // When the last dead letter was sent, and when the last that had not been sent before.
    let (mut last_ms, mut last_new_ms, mut jobs) = (begun_ms, begun_ms, 0_u64);
    let filter = arguments.filter.clone().filter()?;
    let mut new_letters = NewLetters::after_now(letters.clone(), filter, None).await?;
    // The first round reads all that match, each other one only what is new.
    let mut new: Option<Vec<StoredDeadLetter>> = None;
    loop {
        let mut of_round = arguments.clone();
        of_round.yes |= jobs > 0;
        of_round.name = Some(format!("{name}-{}", jobs + 1));
        let round = match new.as_deref() {
            Some([]) => Round::Nothing(ExitCode::SUCCESS),
            new => round(letters.clone(), of_round, new).await?,
        };
        let sent = match round {
            Round::Nothing(..) => None,
            Round::Declined => return Ok(ExitCode::FAILURE),
            Round::Sent { is_done: false, .. } => return Ok(ExitCode::from(super::FAILED)),
            Round::Sent { are_all_back, .. } => Some(are_all_back),
        };
        let now_ms = Machine.now_ms();
        match sent {
            None if now_ms.saturating_sub(last_ms) >= quiet_ms => break,
            None => {}
            Some(true) if now_ms.saturating_sub(last_new_ms) >= quiet_ms => bail!(
                "the replayed deliveries become dead letters again: their destination fails or is disabled, or their \
                 subscription is still paused"
            ),
            Some(are_all_back) => {
                last_ms = now_ms;
                last_new_ms = if are_all_back { last_new_ms } else { now_ms };
                jobs += 1;
            }
        }
        tokio::select! {
            () = Machine.sleep(between_ms) => {}
            _ = interrupt::requested() => {
                note("interrupted; what was sent is in the list of jobs");
                return Ok(ExitCode::from(super::FAILED));
            }
        }
        new = Some(new_letters.next().await?);
    }
    let (quiet, jobs) = (text::duration(quiet_ms), text::counted(jobs, "job"));
    note(format_args!("no dead letter has come for {quiet}; {jobs} sent what there was"));
    Ok(ExitCode::SUCCESS)
}
