//! Sends the remaining dead letters of a job, and reports the result.

use std::future::pending;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use deadletters::ledger::ReplayCounts;
use deadletters::replay::sender::ReplaySender;
use deadletters::replay::{PROBED, ReplayJob, RunEvent, RunOptions};
use delivery::ports::Clock as _;

use super::ends;
use crate::operations::shell;
use crate::terminal::interrupt;
use crate::terminal::output::{note, out};
use crate::terminal::progress;
use crate::terminal::text;

/// Runs a job. `place` contains the options that name its container. Returns true if the job has
/// sent everything and, if the command waits, all was delivered.
pub(super) async fn send(
    letters: &DeadLetters,
    mut job: ReplayJob,
    sender: &ReplaySender,
    options: RunOptions,
    wait_ms: Option<u64>,
    place: &str,
) -> anyhow::Result<bool> {
    let name = job.header.job.clone();
    let all = job.header.letters as u64;
    let bar = progress::bar(all.saturating_sub(job.counts().finished()), "dead letters");
    note(format_args!("job {name}"));
    let began_ms = Machine.now_ms();
    let on_event = |event| match event {
        RunEvent::Probing => {
            note(format_args!("sending the first {PROBED}; the others follow if these succeed"));
        }
        RunEvent::NoneEnded { waited_ms } => {
            let waited = text::duration(waited_ms);
            note(format_args!("none of these finished within {waited}; sending the others"));
        }
        RunEvent::Chunk(counts) => bar.inc(counts.finished() + counts.refused + counts.uncertain),
    };
    let ran = job.run(sender, options, interrupted(), on_event).await;
    bar.finish_and_clear();
    // Print the report, and how to resume, before an error is returned.
    let resume = format!("lastmile deadletters replay{place} --resume {}", shell::typed(&name));
    out(&report(&name, &job.counts(), all, &resume))?;
    let took_ms = Machine.now_ms().saturating_sub(began_ms);
    note(format_args!("in {}.{:03} s", took_ms / 1_000, took_ms % 1_000));
    let is_done = ran?.finished() == all;
    if let Some(wait_ms) = wait_ms.filter(|_| is_done) {
        return ends::wait(letters, &job, wait_ms).await;
    }
    Ok(is_done)
}

/// Waits for Ctrl-C, and prints what happens next.
async fn interrupted() {
    // If the process cannot handle signals, nothing interrupts the job.
    if interrupt::requested().await.is_err() {
        return pending().await;
    }
    note("stopping after the requests in progress");
}

fn report(job: &str, counts: &ReplayCounts, all: u64, resume: &str) -> String {
    let mut lines =
        format!("job {job}: {} of {} sent\n", text::grouped(counts.sent), text::dead_letters(all));
    let others = [
        (counts.unfit, "cannot be sent to this target".to_owned()),
        (counts.gone, "no longer exist, or cannot be read".to_owned()),
        (counts.skipped, "may have been sent before, and were skipped".to_owned()),
        (
            counts.closed,
            "were omitted, because another job sent them or they were dismissed".to_owned(),
        ),
        (counts.refused, format!("were refused; to try again: {resume}")),
        (counts.uncertain, format!("may have been sent; to continue: {resume}")),
        (
            all.saturating_sub(counts.finished() + counts.refused + counts.uncertain),
            format!("were not sent yet; to continue: {resume}"),
        ),
    ];
    for (count, description) in others.iter().filter(|(count, _)| *count > 0) {
        lines.push_str(&format!("{} {description}\n", text::grouped(*count)));
    }
    lines
}
