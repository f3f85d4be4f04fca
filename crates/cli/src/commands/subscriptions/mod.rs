//! `lastmile subscriptions`: lists, shows, removes and exports subscriptions of a deployment, and
//! shows the history of their topics.
//!
//! Each subcommand has one file.

mod delete;
mod export;
mod history;
mod list;

use std::process::ExitCode;

use clap::Subcommand;

use crate::terminal::help::examples;
use crate::terminal::output::{goes_on_unread, is_closed};

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/storage.md",
        "lastmile subscriptions list shop/orders --stack orders-prod",
        "lastmile subscriptions get shop/orders/billing --stack orders-prod",
        "lastmile subscriptions export --stack orders-prod > subscriptions.yaml",
    )
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists subscriptions: all, or those of a namespace or a topic
    List(list::Arguments),
    /// Prints the stored form of a subscription
    Get(list::GetArgs),
    /// Removes a subscription
    Delete(delete::Arguments),
    /// Lists the changes of a topic in a bucket, with author, time and reason
    History(history::Arguments),
    /// Prints topics, subscriptions and mapped addresses in a form that apply accepts
    Export(export::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if matches!(arguments.verb, Verb::Delete(_)) {
        goes_on_unread();
    }
    let done = match arguments.verb {
        Verb::List(arguments) => list::run(arguments).await,
        Verb::Get(arguments) => list::get(arguments).await,
        Verb::Delete(arguments) => delete::run(arguments).await,
        Verb::History(arguments) => history::run(arguments).await,
        Verb::Export(arguments) => export::run(arguments).await,
    };
    done.or_else(|error| if is_closed(&error) { Ok(ExitCode::SUCCESS) } else { Err(error) })
}
