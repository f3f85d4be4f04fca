//! `lastmile deadletters jobs`: lists the replay jobs from their ledgers, with the outcomes of
//! their deliveries.

use std::process::ExitCode;

use deadletters::ledger::{JobHeader, JobSummary};
use deadletters::replay::ends::ReplayEnds;
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{Jobs, ReplayJob};
use delivery::delivery::replay::{ReplayOutcome, StoredReplayEnd};
use serde_json::{Value, json};

use super::replay::parse_job_name;
use crate::operations::place::{DeadLettersPlace, Place};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{Output, note};
use crate::terminal::text::{self, Table};
use crate::views::replay_end::NO_END;
use crate::views::unreadable_ledger::not_shown;

const COLUMNS: [&str; 14] = [
    "job",
    "started",
    "target",
    "dead letters",
    "sent",
    "delivered",
    "dead-again",
    "dropped",
    "under way",
    "unknown",
    "uncertain",
    "refused",
    "other",
    "state",
];
/// The text in place of an outcome that is not recorded.
const NOT_RECORDED: &str = "?";
/// The maximum number of dead letters that a table lists.
const LISTED_MAX: usize = 200;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters jobs",
        "lastmile deadletters jobs after-repair --stack orders-prod",
        "lastmile deadletters jobs --stack orders-prod --output json",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: DeadLettersPlace,
    /// Show only this job, and its events that became dead letters again
    #[arg(value_name = "JOB", value_parser = parse_job_name)]
    job: Option<String>,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = Place::from(arguments.place).dead_letters().await?;
    if let Some(job) = &arguments.job {
        let replay = ReplayJob::resume(&letters, job).await?;
        let counts = replay.counts();
        let header = replay.header.clone();
        let ends = letters.recorded_ends(&header, &counts).await?;
        let summary = JobSummary { ends: replay.end_counts(&ends), header, counts };
        return print_job(arguments.output, &summary, &dead_again(&ends));
    }
    let Jobs { summaries: jobs, unreadable } = letters.jobs().await?;
    not_shown(&unreadable).iter().for_each(note);
    let json = || jobs.iter().map(json).collect();
    arguments.output.write(jobs.is_empty(), json, || format!("{}\n", table(&jobs)))?;
    if !jobs.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if unreadable.is_empty() {
        note(format_args!("{} contains no replay job", letters.container.name));
    }
    Ok(ExitCode::FAILURE)
}

/// Prints a job, and its deliveries that became dead letters again, oldest first.
fn print_job(
    output: Output,
    job: &JobSummary,
    again: &[&StoredReplayEnd],
) -> anyhow::Result<ExitCode> {
    let with_letters = || {
        let mut json = json(job);
        json["dead_again_letters"] = again.iter().map(|end| end_json(end)).collect();
        json
    };
    let as_table = || {
        let mut text = format!("{}\n{}", table(std::slice::from_ref(job)), started(&job.header));
        if !job.header.has_results(&job.counts) {
            text.push_str("this container does not record results; see the list of dead letters\n");
        }
        if job.ends.unknown > 0 {
            text.push_str(&format!("{} unknown: {NO_END}\n", text::grouped(job.ends.unknown)));
        }
        if !again.is_empty() {
            let mut table = text::table(&["dead-again", "new dead letter", "at", "key"]);
            for end in again.iter().take(LISTED_MAX) {
                table.add_row([
                    end.letter.to_string(),
                    end.delivery.to_string(),
                    format!("{}Z", text::seconds(&end.at)),
                    text::line(end.key.as_deref().unwrap_or("-")),
                ]);
            }
            text.push_str(&format!("\n{table}\n"));
        }
        if again.len() > LISTED_MAX {
            let rest = text::grouped((again.len() - LISTED_MAX) as u64);
            text.push_str(&format!("… and {rest} more; use --output json to see all\n"));
        }
        text
    };
    output.write(false, with_letters, as_table)?;
    Ok(ExitCode::SUCCESS)
}

/// Formats who started a job, its rate and its note, if the ledger contains them.
fn started(header: &JobHeader) -> String {
    let by = header.by.as_ref().map(|by| format!("by: {by}"));
    let rate = header.rate.map(|rate| format!("maximum rate: {rate}"));
    let note = header.note.as_ref().map(|note| format!("note: {note}"));
    let known = [by, rate, note].into_iter().flatten();
    known.map(|line| format!("{}\n", text::line(&line))).collect()
}

/// Returns the deliveries of a job that became dead letters again, oldest first.
fn dead_again(ends: &ReplayEnds) -> Vec<&StoredReplayEnd> {
    let mut again: Vec<&StoredReplayEnd> =
        ends.values().filter(|end| end.state == ReplayOutcome::DeadAgain).collect();
    again.sort_by(|a, b| (&a.at, a.letter).cmp(&(&b.at, b.letter)));
    again
}

fn end_json(end: &StoredReplayEnd) -> Value {
    json!({
        "letter": end.letter,
        "dead_letter": end.delivery,
        "at": end.at,
        "container": end.container,
        "key": end.key,
    })
}

fn json(job: &JobSummary) -> Value {
    let (counts, ends) = (&job.counts, job.ends);
    let known = |count: u64| job.header.has_results(&job.counts).then_some(count);
    json!({
        "job": job.header.job,
        "at": job.header.at,
        "by": job.header.by,
        "note": job.header.note,
        "rate": job.header.rate,
        "to": ReplayTarget::shown_of(&job.header.to),
        "queue": job.header.queue,
        "letters": job.header.letters,
        "sent": counts.sent,
        "uncertain": counts.uncertain,
        "refused": counts.refused,
        "skipped": counts.skipped,
        "gone": counts.gone,
        "unfit": counts.unfit,
        "closed": counts.closed,
        "done": job.is_done(),
        "results": job.header.has_results(&job.counts),
        "delivered": known(ends.delivered),
        "dead_again": known(ends.dead_again),
        "dropped": known(ends.dropped),
        "under_way": known(ends.under_way),
        "unknown": known(ends.unknown),
    })
}

fn table(jobs: &[JobSummary]) -> Table {
    let mut table = text::table(&COLUMNS);
    for job in jobs {
        let (counts, ends) = (&job.counts, job.ends);
        let known = |count: u64| match job.header.has_results(&job.counts) {
            true => text::grouped(count),
            false => NOT_RECORDED.to_owned(),
        };
        table.add_row([
            job.header.job.clone(),
            format!("{}Z", text::seconds(&job.header.at)),
            text::line(&ReplayTarget::shown_of(&job.header.to)),
            text::grouped(job.header.letters as u64),
            text::grouped(counts.sent),
            known(ends.delivered),
            known(ends.dead_again),
            known(ends.dropped),
            known(ends.under_way),
            known(ends.unknown),
            text::grouped(counts.uncertain),
            text::grouped(counts.refused),
            text::grouped(counts.skipped + counts.gone + counts.unfit + counts.closed),
            if job.is_done() { "done" } else { "interrupted or running" }.to_owned(),
        ]);
    }
    table
}
