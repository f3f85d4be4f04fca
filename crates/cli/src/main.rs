//! `lastmile`: the command line.
//!
//! The crate has five layers: commands, console, views, operations and terminal. Each layer imports
//! only layers after it. Data goes to standard output, everything else to standard error. All
//! commands have the exit codes 0 (success), 1 (failure, or a negative result) and 2 (usage error).

#![cfg_attr(not(test), deny(clippy::string_slice))] // a slice of untrusted text may panic
#![cfg_attr(
    not(feature = "aws"),
    expect(
        dead_code,
        reason = "much of `stack` and `queues` serves `doctor` alone; the build with the feature finds dead code"
    )
)]
#![recursion_limit = "256"] // the futures of the AWS clients nest deeply
#![deny(clippy::print_stdout, clippy::print_stderr)] // only the module `output` may print

mod commands;
mod console;
#[cfg(test)]
mod documented_commands;
mod operations;
mod terminal;
mod views;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "aws")]
use crate::commands::doctor;
use crate::commands::{
    apply, check, completions, console as console_command, convert, deadletters, demo,
    destinations as destinations_command, dev, explain, man, publish, rollback, secret, subscriber,
    subscriptions, trace as trace_command, try_out,
};
use crate::terminal::help::examples;
use crate::terminal::output::{goes_on_unread, is_closed, note};
use crate::terminal::usage::UsageError;

/// Delivers events from a queue to HTTP endpoints: at least once, never lost
#[derive(Debug, Parser)]
#[command(
    name = "lastmile",
    version,
    max_term_width = 100,
    after_long_help = examples!(
        "docs/README.md",
        "lastmile demo",
        "lastmile dev -f subscriptions.yaml",
        "lastmile check subscriptions.yaml",
        "lastmile deadletters list --stack orders-prod --since 2h",
    )
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole application on this machine: both Lambda functions, emulated SQS, S3 and
    /// DynamoDB, and an HTTP ingress
    Dev(dev::Arguments),
    /// Demonstrates deliveries, retries and dead letters on this machine, then exits
    Demo(demo::Arguments),
    /// Checks subscription files or the subscriptions of a deployment. Exits with code 1 if there
    /// is an error
    Check(check::Arguments),
    /// Simulates a delivery whose attempts all have the same outcome (--outcome): shows when each
    /// attempt takes place, and how the delivery ends. With --event, shows which subscriptions get
    /// an event, and why
    Explain(explain::Arguments),
    /// Converts subscription files of any dialect to the native format. Exits with code 1 if there
    /// is an error
    Convert(convert::Arguments),
    /// Uploads subscription files to a deployment, after showing the changes
    Apply(apply::Arguments),
    /// Restores an earlier version of a topic, or of all topics of a namespace. A bucket with
    /// versioning keeps earlier versions; a folder does not
    Rollback(rollback::Arguments),
    /// Lists, prints, removes and exports subscriptions of a deployment, and shows the history of a
    /// topic
    Subscriptions(subscriptions::Arguments),
    /// Sends one test request from this machine and shows what would happen next. With --consent,
    /// asks endpoints for consent instead. Exits with code 1 if the delivery fails or a consent is
    /// missing
    Try(try_out::Arguments),
    /// Checks each part of a deployed stack and shows what to repair. Exits with code 1 if a part
    /// needs repair
    #[cfg(feature = "aws")]
    Doctor(doctor::Arguments),
    /// Not in this build: checks each part of a deployed stack
    #[cfg(not(feature = "aws"))]
    Doctor(LeftOut),
    /// Lists, explains, replays and removes dead letters: events that were not delivered
    Deadletters(Box<deadletters::Arguments>),
    /// Serves a web application for dead letters, destinations and subscriptions on this machine,
    /// until Ctrl-C
    Console(console_command::Arguments),
    /// Shows what happened to an event: each delivery with its attempts, result, dead letter and
    /// replays
    Trace(trace_command::Arguments),
    /// Lists, shows, disables and enables destinations
    Destinations(destinations_command::Arguments),
    /// Estimates the monthly cost of a load, the resources that it needs, and the first limit that
    /// it reaches
    Cost(commands::cost::Arguments),
    /// Publishes events from files, or sample events, to a queue or an HTTP ingress
    Publish(publish::Arguments),
    /// Generates a signing secret or a key pair, and shows where to put it
    Secret(secret::Arguments),
    /// Runs a test endpoint that prints each request and responds with the given statuses
    Subscriber(subscriber::Arguments),
    /// Prints a shell completion script
    Completions(completions::Arguments),
    /// Writes one manual page per command
    Man(man::Arguments),
}

/// Accepts any arguments, for a command that this build does not contain.
#[cfg(not(feature = "aws"))]
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!("docs/operate/doctor.md", "lastmile doctor --stack orders-prod"))]
struct LeftOut {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _all: Vec<OsString>,
}

impl Command {
    /// Returns true if the command changes something, or if its exit code reports its result. Such
    /// a command continues after the reader of its output has closed the pipe. Commands with
    /// subcommands call [`goes_on_unread`] themselves.
    fn is_done_unread(&self) -> bool {
        match self {
            Self::Check(_)
            | Self::Apply(_)
            | Self::Rollback(_)
            | Self::Try(_)
            | Self::Doctor(_)
            | Self::Publish(_)
            | Self::Man(_) => true,
            Self::Dev(_)
            | Self::Demo(_)
            | Self::Explain(_)
            | Self::Convert(_)
            | Self::Subscriptions(_)
            | Self::Deadletters(_)
            | Self::Console(_)
            | Self::Trace(_)
            | Self::Destinations(_)
            | Self::Cost(_)
            | Self::Secret(_)
            | Self::Subscriber(_)
            | Self::Completions(_) => false,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let stack = std::env::var(commands::command_line::STACK).ok();
    let matches = commands::command_line::matches(&Arguments::command(), &words, stack.as_deref());
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return ExitCode::from(commands::command_line::print(&error, &words)),
    };
    match run(arguments.command).await {
        Ok(code) => code,
        // The reader of the output, such as `head`, has closed the pipe.
        Err(error) if is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let words = words.iter().filter_map(|word| word.to_str());
            let problem =
                terminal::redaction::without_secrets(&terminal::advice::describe(&error), words);
            note(format_args!("lastmile: {problem}"));
            if error.is::<UsageError>() {
                ExitCode::from(commands::command_line::USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    if command.is_done_unread() {
        goes_on_unread();
    }
    match command {
        Command::Dev(arguments) => dev::run(arguments).await,
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Check(arguments) => check::run(arguments).await,
        Command::Explain(arguments) => explain::run(arguments).await,
        Command::Convert(arguments) => convert::run(arguments).await,
        Command::Apply(arguments) => apply::run(arguments).await,
        Command::Rollback(arguments) => rollback::run(arguments).await,
        Command::Subscriptions(arguments) => subscriptions::run(arguments).await,
        Command::Try(arguments) => try_out::run(arguments).await,
        #[cfg(feature = "aws")]
        Command::Doctor(arguments) => doctor::run(arguments).await,
        #[cfg(not(feature = "aws"))]
        Command::Doctor(_) => Err(operations::stack::built_without_aws()),
        Command::Deadletters(arguments) => deadletters::run(*arguments).await,
        Command::Console(arguments) => console_command::run(arguments).await,
        Command::Trace(arguments) => trace_command::run(arguments).await,
        Command::Destinations(arguments) => destinations_command::run(arguments).await,
        Command::Cost(arguments) => commands::cost::run(&arguments),
        Command::Publish(arguments) => publish::run(arguments).await,
        Command::Secret(arguments) => secret::run(&arguments),
        Command::Subscriber(arguments) => subscriber::run(arguments).await,
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command()),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
    }
}
