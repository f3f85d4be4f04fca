//! `lastmile deadletters jobs`: the replay jobs, from their ledgers.

use std::process::ExitCode;

use deadletters::ledger::{JobHeader, JobSummary};
use deadletters::replay::sender::ReplayTarget;
use serde_json::json;

use super::selection::ContainerArgs;
use crate::output::{Output, note};
use crate::text::{self, Table};

const COLUMNS: [&str; 9] =
    ["job", "started", "target", "dead letters", "sent", "uncertain", "refused", "other", "state"];

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    container: ContainerArgs,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    let jobs = letters.jobs().await?;
    let json = || jobs.iter().map(json).collect();
    arguments.output.write(jobs.is_empty(), json, || format!("{}\n", table(&jobs)))?;
    if jobs.is_empty() {
        note(format_args!("there is no replay job in {}", letters.container.name));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Without what may be confidential in an address.
fn shown_target(header: &JobHeader) -> String {
    let target = header.to.parse().map(|target: ReplayTarget| target.shown());
    target.unwrap_or_else(|_| header.to.clone())
}

fn json(job: &JobSummary) -> serde_json::Value {
    let counts = &job.counts;
    json!({
        "job": job.header.job,
        "at": job.header.at,
        "to": shown_target(&job.header),
        "queue": job.header.queue,
        "letters": job.header.letters,
        "sent": counts.sent,
        "uncertain": counts.uncertain,
        "refused": counts.refused,
        "skipped": counts.skipped,
        "gone": counts.gone,
        "unfit": counts.unfit,
        "done": job.is_done(),
    })
}

fn table(jobs: &[JobSummary]) -> Table {
    let mut table = text::table(&COLUMNS);
    for job in jobs {
        let counts = &job.counts;
        table.add_row([
            job.header.job.clone(),
            format!("{}Z", text::seconds(&job.header.at)),
            text::line(&shown_target(&job.header)),
            text::grouped(job.header.letters as u64),
            text::grouped(counts.sent),
            text::grouped(counts.uncertain),
            text::grouped(counts.refused),
            text::grouped(counts.skipped + counts.gone + counts.unfit),
            if job.is_done() { "done" } else { "interrupted, or running" }.to_owned(),
        ]);
    }
    table
}
