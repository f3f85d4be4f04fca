//! `lastmile convert`: prints subscription files in the native format, or writes them as objects
//! ([`objects`]).
//!
//! Findings are printed to standard error. Exit code 0 means that no document has an error. Exit
//! code 1 means that a document has an error; the other documents are still printed. Parsing the
//! output gives the same subscriptions, and converting it again gives the same text.

mod objects;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use delivery::native::documents;
use serde_json::Value;

use crate::operations::files::{Files, have_errors, print_findings};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{out_json, out_raw};

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/dialects.md",
        "lastmile convert triggers.yaml",
        "lastmile convert event-subscriptions.json --output json",
        "lastmile convert examples/eventbridge/ > subscriptions.yaml",
        "lastmile convert subscriptions/ --objects topics/ --owner team-a",
    )
)]
pub(crate) struct Arguments {
    /// Subscription files, or folders with subscription files, read together
    ///
    /// Also accepts the output of aws events describe-rule, list-targets-by-rule,
    /// describe-api-destination and describe-connection, and of aws cloudformation get-template
    /// --template-stage Processed.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(long, default_value = "yaml", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
    /// Do not print; write each topic into this folder, in the form that apply stores
    #[arg(long, value_name = "DIR", conflicts_with = "output", help_heading = OUTPUT)]
    objects: Option<PathBuf>,
    /// Owner of the topics and subscriptions that --objects writes
    #[arg(long, value_name = "NAME", default_value = "files", requires = "objects", value_parser = NonEmptyStringValueParser::new())]
    owner: String,
}

/// The error if files contain neither topics nor subscriptions.
const NOTHING: &str = "the files contain no Topic or Subscription to convert";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// YAML documents, separated by ---
    Yaml,
    /// JSON array of documents
    Json,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    if let Some(folder) = &arguments.objects {
        return objects::write(folder, &arguments.owner, &files).await;
    }
    let reading = files.reading_with_blank();
    print_findings(&reading.findings);
    let documents = documents(&reading.catalogue);
    let failed = have_errors(&reading.findings);
    ensure!(failed || !documents.is_empty(), NOTHING);
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
