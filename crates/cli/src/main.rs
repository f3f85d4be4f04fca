//! `lastmile`: the command line.
//!
//! One module per subcommand. Data goes to standard output, everything else to standard error. Exit
//! codes are 0 (success), 1 (failure) and 2 (usage error).

#![cfg_attr(not(test), deny(clippy::string_slice))] // what others wrote may be cut within a character
#![recursion_limit = "256"] // the futures of the AWS clients nest deeply
#![deny(clippy::print_stdout, clippy::print_stderr)] // only `output` writes

mod arn;
mod commands;
mod comparison;
mod confirm;
mod cost;
mod environment;
mod files;
mod filter_args;
mod lints;
mod log_view;
mod numbers;
mod output;
mod page;
mod progress;
mod queue;
mod replay_sender;
mod stack;
mod store;
mod text;
mod this_machine;
mod writable;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::{
    apply, check, completions, deadletters, demo, destinations, dev, explain, publish, rollback,
    subscriber, subscriptions, validate,
};
use crate::files::UsageError;
use crate::output::note;

/// The exit code of a usage error, as clap has it.
const USAGE: u8 = 2;

/// Delivers events from a queue to HTTP endpoints: at least once, never lost
#[derive(Debug, Parser)]
#[command(name = "lastmile", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole application on this machine: both functions, SQS, S3 and an HTTP ingress
    Dev(dev::Arguments),
    /// Runs sample deliveries, retries and dead letters on this machine, then exits
    Demo(demo::Arguments),
    /// Checks subscription files: exit code 0 if they can be deployed, 1 if not
    Check(check::Arguments),
    /// Shows the attempts and the end of a delivery whose endpoint always responds the same way
    Explain(explain::Arguments),
    /// Uploads subscription files to a deployment, after showing what changes
    Apply(apply::Arguments),
    /// Restores an earlier version of the subscriptions of a deployment
    Rollback(rollback::Arguments),
    /// Lists, reads, writes and removes single subscriptions of a catalogue
    Subscriptions(subscriptions::Arguments),
    /// Validates endpoints by their consent handshake: exit code 0 if all consented, 1 if not
    Validate(validate::Arguments),
    /// Lists, explains, replays and removes dead letters
    Deadletters(Box<deadletters::Arguments>),
    /// Lists destinations that are not healthy; disables, enables and probes them
    Destinations(destinations::Arguments),
    /// Estimates what a load costs and needs
    Cost(Box<commands::cost::Arguments>),
    /// Publishes events from files
    Publish(publish::Arguments),
    /// Receives events, prints them, and responds with the given statuses
    Subscriber(subscriber::Arguments),
    /// Prints a completion script for a shell
    Completions(completions::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Dev(arguments) => dev::run(arguments).await,
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Check(arguments) => check::run(arguments).await,
        Command::Explain(arguments) => explain::run(arguments).await,
        Command::Apply(arguments) => apply::run(arguments).await,
        Command::Rollback(arguments) => rollback::run(arguments).await,
        Command::Subscriptions(arguments) => subscriptions::run(arguments).await,
        Command::Validate(arguments) => validate::run(arguments).await,
        Command::Deadletters(arguments) => deadletters::run(*arguments).await,
        Command::Destinations(arguments) => destinations::run(arguments).await,
        Command::Cost(arguments) => commands::cost::run(*arguments),
        Command::Publish(arguments) => publish::run(arguments).await,
        Command::Subscriber(arguments) => subscriber::run(arguments).await,
        Command::Completions(arguments) => Ok(completions::run(&arguments, Arguments::command())),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            note(format_args!("lastmile: {error:#}"));
            if error.is::<UsageError>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}
