//! `lastmile convert`: prints what subscription files mean, in the native form.
//!
//! Findings are on standard error. Exit code 0 means that no document has an error, 1 that one has: the others are
//! printed nevertheless. What it prints is read as the same subscriptions, and printed again as the same text.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::ValueEnum;
use delivery::native::documents;
use serde_json::Value;

use crate::files::{Files, have_errors, print_findings};
use crate::output::{out_json, out_raw};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions, and folders of them, read together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Documents, separated by ---
    Yaml,
    /// A list of documents
    Json,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    let reading = files.reading_with_blank();
    print_findings(&reading.findings);
    let documents = documents(&reading.catalogue);
    let failed = have_errors(&reading.findings);
    ensure!(
        failed || !documents.is_empty(),
        "these files have no Topic and no Subscription to convert"
    );
    match arguments.output {
        Output::Yaml => out_raw(yaml(&documents)?.as_bytes())?,
        Output::Json => out_json(&serde_json::to_string_pretty(&documents)?)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn yaml(documents: &[Value]) -> anyhow::Result<String> {
    let texts = documents.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join("---\n"))
}
