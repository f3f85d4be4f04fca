//! `lastmile destinations show`: all that is known of a destination.

use std::collections::BTreeSet;
use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::delivery::health::shared::DestinationState;
use delivery::ports::Clock as _;

use super::entries::failure;
use super::json::DestinationJson;
use super::known::{Destination, GivenOut};
use super::name::Name;
use super::place::{Place, PlaceArgs};
use super::state::{conditions, next, outcome, since, until};
use crate::output::Output;
use crate::text;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: PlaceArgs,
    /// A subscription (namespace/topic/name) that delivers there, or the address
    #[arg(value_name = "NAME")]
    name: Name,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = arguments.place.open().await?;
    let subscriptions = place.subscriptions_for(&arguments.name).await?;
    let destination = place.destination(&arguments.name, &subscriptions).await?;
    subscriptions.report();
    let now_ms = Machine.now_ms();
    let given_out = given_out(&place, &destination, now_ms).await?;
    let json = serde_json::to_value(DestinationJson::new(&destination, given_out, now_ms))?;
    arguments.output.write(false, || json, || describe(&destination, given_out, now_ms))?;
    Ok(ExitCode::SUCCESS)
}

/// What processes hold of its limits.
async fn given_out(
    place: &Place,
    destination: &Destination,
    now_ms: u64,
) -> anyhow::Result<GivenOut> {
    let item = destination.key.limits_item(&destination.namespace);
    let (limits, slots_us) = place.table.limits(&item).await.map_err(failure)?;
    let expired = limits.expired(now_ms).len();
    let permits = limits.given_out.len().saturating_sub(expired);
    Ok(GivenOut {
        next_slot_ms: slots_us.map(|slots_us| slots_us / 1_000),
        permits: u32::try_from(permits).ok().filter(|permits| *permits > 0),
    })
}

/// Its limits, and how much of them is given out.
pub(super) async fn limits(
    place: &Place,
    destination: &Destination,
    now_ms: u64,
) -> anyhow::Result<Vec<String>> {
    let given_out = given_out(place, destination, now_ms).await?;
    let rate = rate(destination, given_out.next_slot_ms, now_ms);
    Ok(rate.into_iter().chain(concurrency(destination, given_out.permits)).collect())
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
        ("concurrency", concurrency(destination, given_out.permits).into_iter().collect()),
    ];
    let mut description = String::new();
    for (mut name, lines) in fields {
        for line in lines {
            description.push_str(&format!("{name:<15}{line}\n"));
            // Once for all of its lines.
            name = "";
        }
    }
    let Some(state) = state else { return description };
    let attempts = state.attempts.iter().map(|it| (it.at_ms, outcome(it)));
    description.push_str(&section("last attempts that changed something", attempts));
    let notices = state.notices.iter().map(|it| (it.at_ms, it.kind.to_string()));
    description.push_str(&section("notices that are not sent yet", notices));
    description
}

/// In which states it is, one line for each.
pub(super) fn states(state: Option<&DestinationState>, now_ms: u64) -> Vec<String> {
    let Some(state) = state else {
        return vec!["healthy: no attempt has shown anything else".to_owned()];
    };
    let conditions = conditions(state);
    if conditions.is_empty() {
        return vec![format!("healthy; this changed last {}", since(state.changed_ms, now_ms))];
    }
    let line = |name, since_ms, why: &str| {
        let colon = if why.is_empty() { "" } else { ", " };
        format!("{name} since {}{colon}{why}", since(since_ms, now_ms))
    };
    conditions.iter().map(|it| line(it.name, it.since_ms, &it.why)).collect()
}

/// How many requests it takes, and when a new delivery would get its turn.
fn rate(destination: &Destination, next_slot_ms: Option<u64>, now_ms: u64) -> Option<String> {
    let rates = destination.subscriptions.iter().filter_map(|it| it.destination.max_per_second);
    let rates: BTreeSet<u32> = rates.collect();
    let allowed = allowed(&rates, "a second");
    let given_out = next_slot_ms.filter(|next_ms| now_ms < *next_ms);
    match (given_out, rates.is_empty()) {
        (Some(next_ms), _) => {
            Some(format!("{allowed}; all given out until {}", until(next_ms, now_ms)))
        }
        (None, false) => Some(format!("{allowed}; the next one is free")),
        (None, true) => None,
    }
}

/// How many requests at once it takes of all functions together, and for how many there are permits.
fn concurrency(destination: &Destination, permits: Option<u32>) -> Option<String> {
    let limits: BTreeSet<u32> = destination.shared_concurrency().collect();
    let (held, allowed) = (permits.unwrap_or_default(), allowed(&limits, "at once"));
    let text = match held {
        1 => format!("{allowed}; 1 permit is in use"),
        held => format!("{allowed}; {held} permits are in use"),
    };
    (held > 0 || !limits.is_empty()).then_some(text)
}

/// A limit of requests. Subscriptions may have different ones.
fn allowed(limits: &BTreeSet<u32>, of: &str) -> String {
    let limits: Vec<String> = limits.iter().map(ToString::to_string).collect();
    match limits.is_empty() {
        true => "no limit any more".to_owned(),
        false => format!("at most {} requests {of}", limits.join(" or ")),
    }
}

/// Times and what happened then, below a title; nothing of nothing.
fn section(title: &str, lines: impl Iterator<Item = (u64, String)>) -> String {
    let lines: String =
        lines.map(|(at_ms, what)| format!("  {}  {what}\n", text::at(Some(at_ms)))).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}
