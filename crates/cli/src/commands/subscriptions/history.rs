//! `lastmile subscriptions history`: who changed a namespace, when, and what.

use std::process::ExitCode;

use anyhow::Context as _;
use catalogue::Version;
use serde_json::json;

use super::OpenCatalogue;
use crate::output::{Output, note};
use crate::store::Target;
use crate::text;

const COLUMNS: [&str; 5] = ["version", "time", "by", "entries", "changes"];
/// How many versions are listed, unless somebody asks for more.
pub(crate) const LIMIT: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    namespace: String,
    #[command(flatten)]
    target: Target,
    /// At most so many versions
    #[arg(long, default_value_t = LIMIT, value_name = "NUMBER")]
    limit: usize,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { namespace, target, limit, output } = arguments;
    print(&OpenCatalogue::of(&target).await?, &namespace, limit, output).await
}

/// Prints the newest versions of a namespace.
pub(crate) async fn print(
    catalogue: &OpenCatalogue,
    name: &str,
    limit: usize,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let versions = catalogue.namespace(name).history(limit).await;
    let versions = versions.with_context(|| format!("the namespace {name} cannot be read"))?;
    let json = |version: &Version| {
        let Version { number, time_ms, by, entries, what, .. } = version;
        let (id, time) = (version.id.to_string(), text::at(Some(*time_ms)));
        json!({"version": number, "id": id, "time": time, "by": by, "entries": entries, "changes": what})
    };
    let table = || {
        let mut table = text::table(&COLUMNS);
        for version in &versions {
            table.add_row([
                version.number.to_string(),
                text::at(Some(version.time_ms)),
                version.by.clone(),
                version.entries.to_string(),
                version.what.join("\n"),
            ]);
        }
        format!("{table}\n")
    };
    output.write(versions.is_empty(), || versions.iter().map(json).collect(), table)?;
    if versions.is_empty() {
        note(catalogue.nothing_in_use(name));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
