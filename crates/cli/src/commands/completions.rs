//! `lastmile completions`: a completion script for a shell.

use std::process::ExitCode;

use clap::Command;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap_complete::Shell;

/// The shells that are supported.
const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_parser = PossibleValuesParser::new(SHELLS).try_map(|name| name.parse::<Shell>()))]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> ExitCode {
    clap_complete::generate(arguments.shell, &mut command, "lastmile", &mut std::io::stdout());
    ExitCode::SUCCESS
}
