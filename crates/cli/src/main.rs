//! `lastmile`: the command line.
//!
//! One subcommand, one file. Data goes to standard output, everything else to standard error; exit
//! codes are 0 (as it should be), 1 (not) and 2 (usage).

#![recursion_limit = "256"] // the futures of the AWS clients nest deeply

mod arn;
mod commands;
mod cost;
mod files;
mod filter_args;
mod lines;
mod page;
mod progress;
mod queue;
mod remarks;
mod replay_sender;
mod stack;
mod store;
mod text;
mod writable;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::{
    apply, check, completions, deadletters, demo, dev, explain, publish, rollback, subscriber,
    validate,
};

/// Delivers events over their last mile: at least once, never lost, and you can always find out
/// why.
#[derive(Debug, Parser)]
#[command(name = "lastmile", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole application on this machine: both functions, SQS and S3, and an HTTP ingress
    Dev(dev::Arguments),
    /// Shows deliveries, retries and dead letters on this machine, and ends by itself
    Demo(demo::Arguments),
    /// Checks subscription files: 0 if they can be deployed, 1 if not
    Check(check::Arguments),
    /// Shows the life of a delivery whose endpoint always does the same
    Explain(explain::Arguments),
    /// Puts subscription files where a deployment reads them, and shows first what that changes
    Apply(apply::Arguments),
    /// Brings back what the subscriptions of a deployment said before
    Rollback(rollback::Arguments),
    /// Asks destinations for their consent: 0 if all gave it, 1 if not
    Validate(validate::Arguments),
    /// Lists dead letters, groups them by cause, and replays them
    Deadletters(Box<deadletters::Arguments>),
    /// Estimates what a load costs and needs, line by line
    Cost(Box<commands::cost::Arguments>),
    /// Publishes events from files
    Publish(publish::Arguments),
    /// Receives events, prints them, and answers as told
    Subscriber(subscriber::Arguments),
    /// Writes what a shell needs to complete commands
    Completions(completions::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Dev(arguments) => dev::run(arguments).await,
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Check(arguments) => check::run(arguments).await,
        Command::Explain(arguments) => explain::run(arguments),
        Command::Apply(arguments) => apply::run(arguments).await,
        Command::Rollback(arguments) => rollback::run(arguments).await,
        Command::Validate(arguments) => validate::run(arguments).await,
        Command::Deadletters(arguments) => deadletters::run(*arguments).await,
        Command::Cost(arguments) => commands::cost::run(&arguments),
        Command::Publish(arguments) => publish::run(arguments).await,
        Command::Subscriber(arguments) => subscriber::run(arguments).await,
        Command::Completions(arguments) => Ok(completions::run(&arguments, Arguments::command())),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lastmile: {error:#}");
            ExitCode::FAILURE
        }
    }
}
