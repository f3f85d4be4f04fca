//! `lastmile deadletters`: lists dead letters in their container, and replays them.
//!
//! Each subcommand has one file; the crate `deadletters` has the shared code. Data goes to standard
//! output, everything else to standard error. Exit code 0 means that dead letters were found, and
//! the action on them succeeded. Exit code 1 means that none was found, or something failed.

mod causes_text;
mod dismiss;
mod ends;
mod follow;
mod full;
mod jobs;
mod json;
mod list;
mod new_letters;
mod purge;
mod replay;
mod rescue;
mod resume;
mod search;
mod selection;
mod sending;
mod show;
mod sums;
mod title_lines;
mod until_quiet;
mod why;

use std::process::ExitCode;

use clap::Subcommand;

use crate::terminal::help::examples;
use crate::terminal::output::{goes_on_unread, is_closed};

/// The exit code if nothing was found, or the action failed.
const FAILED: u8 = 1;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters why --stack orders-prod --since 1d",
        "lastmile deadletters list --subscription shop/orders/billing --status 5xx",
        "lastmile deadletters replay --stack orders-prod --since 2h --dry-run",
    )
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists dead letters, newest first, or with --follow as they arrive
    List(list::Arguments),
    /// Shows a dead letter: its event, history and last response
    Show(show::Arguments),
    /// Groups dead letters by cause: the same failure and message, apart from ids, numbers and
    /// times. With --by, counts dead letters by reason, subscription, destination or hour
    Why(why::Arguments),
    /// Sends dead letters again, each only to its own subscription
    Replay(Box<replay::Arguments>),
    /// Lists replay jobs and the results of their deliveries
    Jobs(jobs::Arguments),
    /// Excludes dead letters from lists, counts and replays, with a note. `undismiss` reverses this
    Dismiss(dismiss::Arguments),
    /// Undoes the dismissal of dead letters
    Undismiss(dismiss::Selected),
    /// Moves messages from the last-resort queue to the container of dead letters
    Rescue(rescue::Arguments),
    /// Removes dead letters and their events, which cannot be replayed afterwards. Without --state or
    /// --all, only open ones
    Purge(purge::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if matches!(
        arguments.verb,
        Verb::Replay(_) | Verb::Dismiss(_) | Verb::Undismiss(_) | Verb::Rescue(_) | Verb::Purge(_)
    ) {
        goes_on_unread();
    }
    let done = match arguments.verb {
        Verb::List(arguments) => list::run(arguments).await,
        Verb::Show(arguments) => show::run(arguments).await,
        Verb::Why(arguments) => why::run(arguments).await,
        Verb::Replay(arguments) => replay::run(*arguments).await,
        Verb::Jobs(arguments) => jobs::run(arguments).await,
        Verb::Dismiss(arguments) => dismiss::run(arguments).await,
        Verb::Undismiss(selected) => dismiss::undo(selected).await,
        Verb::Rescue(arguments) => rescue::run(arguments).await,
        Verb::Purge(arguments) => purge::run(arguments).await,
    };
    done.or_else(|error| if is_closed(&error) { Ok(ExitCode::SUCCESS) } else { Err(error) })
}
