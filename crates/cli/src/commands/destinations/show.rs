//! `lastmile destinations show`: prints the whole state of a destination.

use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::ports::Clock as _;

use crate::operations::destinations::deployment::Deployment;
use crate::operations::destinations::json::DestinationJson;
use crate::operations::destinations::known::{Destination, GivenOut};
use crate::operations::destinations::limits::{concurrency, given_out, rate, recovering, states};
use crate::operations::destinations::name::Name;
use crate::operations::destinations::state::{next, outcome};
use crate::operations::place::{DestinationsPlace, Place};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::Output;
use crate::terminal::text;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/operate/destination-down.md",
        "lastmile destinations show shop/orders/billing --stack orders-prod",
        "lastmile destinations show http://127.0.0.1:9180/",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: DestinationsPlace,
    /// Address of the destination, or a subscription that delivers to it
    #[arg(value_name = "ADDRESS|NS/TOPIC/NAME")]
    name: Name,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let deployment = Deployment::open(&Place::from(arguments.place)).await?;
    let subscriptions = deployment.subscriptions_for(&arguments.name).await?;
    let destination = deployment.destination(&arguments.name, &subscriptions).await?;
    subscriptions.report();
    let now_ms = Machine.now_ms();
    let given_out = given_out(&deployment.table, &destination, now_ms).await?;
    let json = serde_json::to_value(DestinationJson::new(&destination, given_out, now_ms))?;
    arguments.output.write(false, || json, || describe(&destination, given_out, now_ms))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(destination: &Destination, given_out: GivenOut, now_ms: u64) -> String {
    let state = destination.state.as_ref();
    let fields = [
        ("destination", vec![destination.address.clone()]),
        ("key", vec![destination.key.to_string()]),
        ("subscriptions", destination.names()),
        ("state", states(state, now_ms)),
        ("next", state.map(|state| next(state, now_ms)).into_iter().collect()),
        ("rate", rate(destination, given_out.next_slot_ms, now_ms).into_iter().collect()),
        (
            "recovery",
            given_out.recovery.map(|recovery| recovering(recovery, now_ms)).into_iter().collect(),
        ),
        ("concurrency", concurrency(destination, given_out, now_ms).into_iter().collect()),
    ];
    let mut description = String::new();
    for (mut name, lines) in fields {
        for line in lines {
            description.push_str(&format!("{name:<15}{line}\n"));
            // Print the name only on the first line.
            name = "";
        }
    }
    let Some(state) = state else { return description };
    let attempts = state.attempts.iter().map(|attempt| (attempt.at_ms, outcome(attempt)));
    description.push_str(&section("last attempts that changed the state", attempts));
    let notices = state.notices.iter().map(|notice| (notice.at_ms, notice.kind.to_string()));
    description.push_str(&section("notices not sent yet", notices));
    description
}

/// Formats a title, and events with their times below it. Returns an empty text if there are no
/// events.
fn section(title: &str, lines: impl Iterator<Item = (u64, String)>) -> String {
    let lines: String =
        lines.map(|(at_ms, event)| format!("  {}  {event}\n", text::at(Some(at_ms)))).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}
