//! `lastmile check`: finds errors in subscription files before they are deployed.
//!
//! Exit code 0 means that they can be deployed, perhaps with warnings; 1 that they cannot; 2 that a
//! file could not be read. With `--stack` the subscriptions are also compared with a deployed stack:
//! its timeout, the addresses it may send to, the sinks it may write to.

use std::path::PathBuf;
use std::process::ExitCode;

use adapters::machine::Machine;
use clap::ValueEnum;
use delivery::manifest::{Finding, Reading, Severity};
use delivery::ports::Clock as _;
use serde::Serialize;

use crate::files::{Files, have_errors};
use crate::lints::lints;
use crate::output::{note, out, out_json};
use crate::stack::Stack;
use crate::text;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions, read together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also check the limits and permissions of this deployed CloudFormation stack
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line per finding: file:line:column: severity: field: message; help
    Text,
    /// One object: {"findings":[…]}
    Json,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    let reading = files.reading();
    let mut findings = reading.findings.clone();
    let stack = Stack::optional(arguments.stack.as_deref()).await?;
    findings.extend(lints(&reading, files.first(), Machine.now_ms(), stack.as_ref())?);
    match arguments.output {
        Output::Text => print_text(&reading, &findings)?,
        Output::Json => out_json(&serde_json::to_string(&Report { findings: &findings })?)?,
    }
    Ok(if have_errors(&findings) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Findings go to standard output, their number to standard error.
fn print_text(reading: &Reading, findings: &[Finding]) -> anyhow::Result<()> {
    for finding in findings {
        out(&format!("{}\n", text::line(&finding.to_string())))?;
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let (subscriptions, warnings) =
        (reading.catalogue.subscriptions().count(), findings.len() - errors);
    note(format_args!(
        "subscriptions without an error: {subscriptions}; errors: {errors}; warnings: {warnings}"
    ));
    Ok(())
}

#[derive(Serialize)]
struct Report<'a> {
    findings: &'a [Finding],
}
