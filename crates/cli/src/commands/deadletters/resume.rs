//! `lastmile deadletters replay --resume`: continues a job that was interrupted or has stopped.
//!
//! Separate from [`super::replay`] because the plan and the target come from the ledger.
//!
//! Promises: if only the ledger names an address outside this machine, the user must confirm the
//! address, even with `--yes`.

use std::process::ExitCode;

use deadletters::DeadLetters;
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{ReplayJob, RunOptions};
use delivery::subscription::display;
use url::Url;

use super::replay::Arguments;
use super::sending::send;
use crate::operations::place::Place;
use crate::operations::replay_rate::RateUsed;
use crate::operations::replay_sender::ReplayQueues;
use crate::operations::this_machine::is_here;
use crate::terminal::confirm::{is_confirmed, may_proceed};
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The maximum number of uncertain chunks that are listed individually.
const LISTED_CHUNKS_MAX: usize = 20;

/// Resumes a job. Lists uncertain chunks, asks for confirmation, and asks again about a target that
/// only the ledger names.
pub(super) async fn run(
    letters: &DeadLetters,
    job: &str,
    place: &Place,
    arguments: Arguments,
) -> anyhow::Result<ExitCode> {
    let replay = ReplayJob::resume(letters, job).await?;
    let (counts, uncertain) = (replay.counts(), replay.uncertain());
    let all = replay.header.letters as u64;
    out(&format!(
        "job {job} of {}: {} of {} finished, {} left\n",
        text::seconds(&replay.header.at),
        text::grouped(counts.finished()),
        text::dead_letters(all),
        text::grouped(all.saturating_sub(counts.finished()))
    ))?;
    if !uncertain.is_empty() {
        out(&describe_uncertain(&uncertain, arguments.skip_uncertain))?;
    }
    if arguments.dry_run || counts.finished() == all {
        return Ok(ExitCode::SUCCESS);
    }
    let is_given = arguments.to_url.is_some();
    let target = ReplayTarget::resumed(&replay.header.to, arguments.to_url).map_err(usage_error)?;
    if !may_proceed(arguments.yes, "continue the job?")? {
        return Ok(ExitCode::FAILURE);
    }
    let in_ledger = replay.header.queue.as_deref();
    let queues = ReplayQueues::open(place, &letters.container).await?;
    let queue = queues.for_target(&target, in_ledger)?;
    let only_in_ledger = match (&target, &queue) {
        (ReplayTarget::Url(url), _) if !is_given => Some(("--to-url", url)),
        (_, Some(queue)) if queues.is_default() && !is_here(queue) => Some(("--queue-url", queue)),
        _ => None,
    };
    if let Some((option, address)) = only_in_ledger
        && !is_trusted(job, option, address)?
    {
        return Ok(ExitCode::FAILURE);
    }
    note(format_args!("target: {}", queues.describe(&target, queue.as_ref())));
    let (sender, _) = queues.sender(&target, in_ledger).await?;
    let rate = RateUsed::of_job(arguments.rate, &replay.header);
    note(rate.with_option());
    let skip_uncertain = arguments.skip_uncertain;
    let options = RunOptions { rate: Some(rate.rate), skip_uncertain, ..RunOptions::default() };
    let place_options = place.dead_letter_options();
    match send(letters, replay, &sender, options, arguments.wait, &place_options).await? {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(super::FAILED)),
    }
}

/// Asks whether to send to a URL that only the ledger of a job names. Anyone with write access to
/// the container can change a ledger, and `--yes` is given before the user has seen the URL.
///
/// # Errors
/// If there is no terminal for the question.
fn is_trusted(job: &str, option: &str, address: &Url) -> anyhow::Result<bool> {
    let shown = display(address);
    is_confirmed(
        &format!(
            "the address {shown} comes only from the ledger of the job: send the events there?"
        ),
        &format!(
            "nothing was sent, because the address {shown} comes only from the ledger of the job \
             {job}: confirm it with {option} {shown}"
        ),
    )
}

/// Lists the chunks that may or may not have been sent, and describes whether they are sent again.
fn describe_uncertain(uncertain: &[(u32, u64)], skip: bool) -> String {
    let count: u64 = uncertain.iter().map(|(_, letters)| letters).sum();
    let mut numbers: Vec<String> =
        uncertain.iter().map(|(number, _)| number.to_string()).take(LISTED_CHUNKS_MAX).collect();
    if uncertain.len() > LISTED_CHUNKS_MAX {
        numbers.push("…".to_owned());
    }
    let action = if skip { "skipped" } else { "sent again, with the same delivery ids" };
    format!(
        "{}: {}; their {} may have been sent and are {action}\n",
        text::counted(uncertain.len() as u64, "uncertain chunk"),
        numbers.join(" "),
        text::dead_letters(count)
    )
}
