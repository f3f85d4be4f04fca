//! `lastmile completions`: prints a completion script for a shell.

use std::process::ExitCode;

use clap::Command;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap_complete::Shell;

use crate::terminal::help::examples;
use crate::terminal::output::out_raw;

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/commands.md",
        "lastmile completions bash > lastmile.bash",
        "lastmile completions powershell > lastmile.ps1",
    )
)]
pub(crate) struct Arguments {
    /// Shell that runs the script
    #[arg(value_parser = PossibleValuesParser::new(SHELLS).try_map(|name| name.parse::<Shell>()))]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> anyhow::Result<ExitCode> {
    // Generate into memory, because the generator panics if standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "lastmile", &mut script);
    out_raw(&script)?;
    Ok(ExitCode::SUCCESS)
}
