//! `lastmile man`: writes manual pages, one for each command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Command, ValueHint};

use crate::terminal::help::examples;
use crate::terminal::output::note;
use crate::terminal::text;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/commands.md",
        "lastmile man ~/.local/share/man/man1",
    )
)]
pub(crate) struct Arguments {
    /// Folder for the pages, created if missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, command: Command) -> anyhow::Result<ExitCode> {
    let shown = text::path(&arguments.folder);
    std::fs::create_dir_all(&arguments.folder)
        .with_context(|| format!("the folder {shown} cannot be created"))?;
    clap_mangen::generate_to(command, &arguments.folder)
        .with_context(|| format!("the manual pages cannot be written to {shown}"))?;
    note(format_args!("written; open the first page with `man -l {shown}/lastmile.1`"));
    Ok(ExitCode::SUCCESS)
}
