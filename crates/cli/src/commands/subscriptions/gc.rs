//! `lastmile subscriptions gc`: removes what no version of a namespace needs any more.
//!
//! Namespaces have nothing in common, so one that fails does not stop the others.

use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::bail;
use catalogue::Collected;
use delivery::ports::Clock as _;
use serde_json::json;

use super::OpenCatalogue;
use crate::output::{Output, note};
use crate::store::Target;
use crate::text;

const COLUMNS: [&str; 4] = ["namespace", "objects", "removed", "versions"];

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The namespaces; without any, all
    #[arg(value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    #[command(flatten)]
    target: Target,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { mut namespaces, target, output } = arguments;
    let catalogue = OpenCatalogue::of(&target).await?;
    if namespaces.is_empty() {
        namespaces = catalogue.objects.namespaces().await?;
    }
    if namespaces.is_empty() {
        bail!("{} has no namespaces", catalogue.folder);
    }
    let mut all: Vec<(&String, Collected)> = Vec::new();
    for name in &namespaces {
        match collect(&catalogue, name).await {
            Ok(collected) => all.push((name, collected)),
            Err(error) => note(format_args!("lastmile: the namespace {name}: {error:#}")),
        }
    }
    let json = |(name, collected): &(&String, Collected)| {
        let Collected { objects, removed, versions } = collected;
        json!({"namespace": name, "objects": objects, "removed": removed, "versions": versions})
    };
    let table = || {
        let mut table = text::table(&COLUMNS);
        table.align_right(&[1, 2, 3]);
        for (name, Collected { objects, removed, versions }) in &all {
            let numbers = [objects, removed, versions].map(ToString::to_string);
            table.add_row([(*name).clone()].into_iter().chain(numbers));
        }
        format!("{table}\n")
    };
    output.write(all.is_empty(), || all.iter().map(json).collect(), table)?;
    Ok(if all.len() < namespaces.len() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn collect(catalogue: &OpenCatalogue, name: &str) -> anyhow::Result<Collected> {
    let collected = catalogue.namespace(name).collect_garbage(Machine.now_ms()).await?;
    if collected.versions == 0 {
        bail!("it has no pointer, so nothing is removed");
    }
    Ok(collected)
}
