//! `lastmile completions`: a completion script for a shell.

use std::process::ExitCode;

use clap::{Command, ValueEnum};
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> ExitCode {
    let shell = match arguments.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    clap_complete::generate(shell, &mut command, "lastmile", &mut std::io::stdout());
    ExitCode::SUCCESS
}
