//! `lastmile check`: what is wrong with subscription files, before anybody deploys them.
//!
//! Exit code 0 means that they can be deployed, perhaps with warnings; 1 that they cannot; 2 that a file could not be
//! read. With `--stack` the subscriptions are also held against the limits of what is deployed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use delivery::duration::{SECOND_MS, format_ms};
use delivery::manifest::{Finding, Reading, Severity};
use delivery::subscription::Subscription;
use serde::Serialize;

use crate::files::{Files, have_errors, usage};
use crate::stack::Stack;

/// What dispatch keeps of its timeout for everything but the request.
pub(crate) const TIMEOUT_MARGIN_MS: u64 = 15 * SECOND_MS;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions, read together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also compare with the limits of this deployed CloudFormation stack
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// How to write what was found
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
    let files = match Files::read(&arguments.files) {
        Ok(files) => files,
        Err(problem) => return Ok(usage(&problem)),
    };
    let reading = files.reading();
    let mut findings = reading.findings.clone();
    if let Some(name) = &arguments.stack {
        let first = arguments.files.first().map(|file| file.display().to_string()).unwrap_or_default();
        findings.extend(beyond(&reading, &first, &Stack::describe(name).await?)?);
    }
    match arguments.output {
        Output::Text => text(&reading, &findings),
        Output::Json => println!("{}", json(&findings)?),
    }
    Ok(if have_errors(&findings) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A warning for every response timeout that the deployed function would cut: where it is stated, else where the
/// subscription states anything, else at the beginning of the first file.
fn beyond(reading: &Reading, first: &str, stack: &Stack) -> anyhow::Result<Vec<Finding>> {
    let most_ms = stack.dispatch_timeout_ms()?.saturating_sub(TIMEOUT_MARGIN_MS);
    let cut = reading.catalogue.subscriptions().filter(|of| of.destination.response_timeout_ms > most_ms);
    let warning = |subscription: &Arc<Subscription>| {
        let stated = reading.origins.get(&subscription.name);
        let stated = stated.and_then(|origins| origins.get("responseTimeout").or_else(|| origins.values().next()));
        let (file, line, column) = stated.and_then(|origin| place(origin)).unwrap_or((first.to_owned(), 1, 1));
        let timeout = format_ms(subscription.destination.response_timeout_ms);
        let (name, most) = (&subscription.name, format_ms(most_ms));
        let message = format!("{name} waits {timeout} for an answer, but the stack {} cuts it to {most}", stack.name);
        Finding {
            severity: Severity::Warning,
            file,
            line,
            column,
            field: "responseTimeout".to_owned(),
            message,
            help: Some("a response timeout is at most DispatchTimeout less 15 s".to_owned()),
        }
    };
    Ok(cut.map(warning).collect())
}

/// The parts of `file:line:column`.
fn place(origin: &str) -> Option<(String, u64, u64)> {
    let (rest, column) = origin.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?, column.parse().ok()?))
}

/// Findings are the data here; how many subscriptions there are is said beside it.
fn text(reading: &Reading, findings: &[Finding]) {
    findings.iter().for_each(|finding| println!("{finding}"));
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let (subscriptions, warnings) = (reading.catalogue.subscriptions().count(), findings.len() - errors);
    eprintln!("subscriptions without an error: {subscriptions}; errors: {errors}; warnings: {warnings}");
}

#[derive(Serialize)]
struct Found<'a> {
    findings: Vec<FoundOne<'a>>,
}

#[derive(Serialize)]
struct FoundOne<'a> {
    severity: &'static str,
    file: &'a str,
    line: u64,
    column: u64,
    field: &'a str,
    message: &'a str,
    help: Option<&'a str>,
}

fn json(findings: &[Finding]) -> serde_json::Result<String> {
    let findings = findings.iter().map(|finding| FoundOne {
        severity: finding.severity.as_str(),
        file: &finding.file,
        line: finding.line,
        column: finding.column,
        field: &finding.field,
        message: &finding.message,
        help: finding.help.as_deref(),
    });
    serde_json::to_string(&Found { findings: findings.collect() })
}
