//! `lastmile deadletters jobs`: the replays there were, from their ledgers.

use std::process::ExitCode;

use comfy_table::{Table, presets};
use serde_json::json;

use super::meant::Container;
use super::out;
use super::shape::Output;
use crate::letters::ledger::Job;
use crate::letters::text;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    container: Container,
    /// How to show them
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    let jobs = letters.jobs().await?;
    match arguments.output {
        Output::Json => {
            out(&format!("{}\n", jobs.iter().map(json).collect::<serde_json::Value>()))?
        }
        Output::Table if jobs.is_empty() => {}
        Output::Table => out(&format!("{}\n", table(&jobs)))?,
    }
    if jobs.is_empty() {
        eprintln!("no job in {}", letters.place().name);
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn json(job: &Job) -> serde_json::Value {
    let counts = &job.counts;
    json!({
        "job": job.header.job,
        "at": job.header.at,
        "to": job.header.to,
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

fn table(jobs: &[Job]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header([
        "job",
        "begun",
        "to",
        "letters",
        "sent",
        "uncertain",
        "refused",
        "other",
        "state",
    ]);
    for job in jobs {
        let counts = &job.counts;
        table.add_row([
            job.header.job.clone(),
            format!("{}Z", job.header.at[..19].replace('T', " ")),
            text::line(&job.header.to),
            text::grouped(job.header.letters as u64),
            text::grouped(counts.sent),
            text::grouped(counts.uncertain),
            text::grouped(counts.refused),
            text::grouped(counts.skipped + counts.gone + counts.unfit),
            if job.is_done() { "done" } else { "broken off, or under way" }.to_owned(),
        ]);
    }
    table
}
