//! `lastmile destinations`: shows unhealthy destinations, and changes their state.
//!
//! The commands read and write the table that the functions share; the functions need not run. Each
//! change is written to the item of the destination, and published as an item that all functions
//! read.
//!
//! Each subcommand has one file, except that `change` has both subcommands that write.
//! [`crate::operations::destinations`] has the shared code.

mod change;
mod list;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

use crate::terminal::help::examples;
use crate::terminal::output::{goes_on_unread, is_closed};

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/operate/destination-down.md",
        "lastmile destinations list --stack orders-prod",
        "lastmile destinations show shop/orders/billing --stack orders-prod",
        "lastmile destinations enable shop/orders/billing --stack orders-prod",
    )
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists destinations that are failing, slow or disabled
    List(list::Arguments),
    /// Shows the state of a destination, and what happens to its next deliveries
    Show(show::Arguments),
    /// Stops all requests to a destination until it is enabled. Its deliveries become dead letters
    Disable(change::ChangeArgs),
    /// Enables a disabled destination, and resets its state to healthy. With --once, only lets
    /// the next due delivery probe a failing destination
    Enable(change::EnableArgs),
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if matches!(arguments.verb, Verb::Disable(_) | Verb::Enable(_)) {
        goes_on_unread();
    }
    let done = match arguments.verb {
        Verb::List(arguments) => list::run(arguments).await,
        Verb::Show(arguments) => show::run(arguments).await,
        Verb::Disable(arguments) => change::disable(arguments).await,
        Verb::Enable(arguments) => change::enable(arguments).await,
    };
    done.or_else(|error| if is_closed(&error) { Ok(ExitCode::SUCCESS) } else { Err(error) })
}
