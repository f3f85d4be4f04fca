//! `lastmile destinations list`: lists failing, slow and disabled destinations.

use std::cmp::Reverse;
use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::subscription::name::SubscriptionName;

use crate::operations::destinations::deployment::Deployment;
use crate::operations::destinations::json::ListedJson;
use crate::operations::destinations::known::Destination;
use crate::operations::destinations::state::{Condition, conditions, next_attempt_text, since};
use crate::operations::place::{DestinationsPlace, Place};
use crate::operations::topics::Wanted;
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{Output, note, out};
use crate::terminal::text::{self, Table};

const COLUMNS: [&str; 5] = ["state", "since", "next attempt", "subscriptions", "destination"];
/// The maximum number of subscriptions in a row of the table.
const NAMED: usize = 5;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/operate/destination-down.md",
        "lastmile destinations list --stack orders-prod",
        "lastmile destinations list --to s3://config-bucket/subscriptions/ \\\n      --table orders-prod-Table --all --output json",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: DestinationsPlace,
    /// Also list destinations that are healthy again
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

/// A destination and its unhealthy conditions.
struct Listed {
    destination: Destination,
    conditions: Vec<Condition>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let deployment = Deployment::open(&Place::from(arguments.place)).await?;
    let found = deployment.states().await?;
    let named = found.states.iter().filter_map(|(_, state)| state.subscription.parse().ok());
    let named: Vec<SubscriptionName> = named.collect();
    let subscriptions = deployment.subscriptions(Wanted::topics_of(&named)).await;
    subscriptions.report();
    found.problems.iter().for_each(|(_, problem)| note(text::line(problem)));
    // Without stored states, no topics have been read yet, so check whether there are any.
    let knows_nothing = found.states.is_empty() && !deployment.has_topics().await;
    let states = found.states.into_iter();
    let destinations =
        states.filter_map(|(key, state)| Destination::new(key, Some(state), &subscriptions));
    let listed = destinations.map(|destination| Listed {
        conditions: destination.state.as_ref().map(conditions).unwrap_or_default(),
        destination,
    });
    let mut listed: Vec<Listed> =
        listed.filter(|entry| arguments.all || !entry.conditions.is_empty()).collect();
    listed
        .sort_by_cached_key(|entry| (Reverse(entry.since_ms()), entry.destination.address.clone()));
    let now_ms = Machine.now_ms();
    let json = |entry: &Listed| serde_json::to_value(ListedJson::new(&entry.destination, now_ms));
    let json = listed.iter().map(json).collect::<Result<_, _>>()?;
    let is_empty = listed.is_empty();
    arguments.output.write(is_empty, || json, || format!("{}\n", table(&listed, now_ms)))?;
    if !found.problems.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if is_empty && arguments.output == Output::Table {
        out(match knows_nothing {
            true => "there are no subscriptions, so no destinations are known\n",
            false => "all destinations are healthy according to the table\n",
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Listed {
    /// Returns when the destination's oldest unhealthy condition began. For a healthy destination,
    /// returns when its state was last written.
    fn since_ms(&self) -> u64 {
        let began = self.conditions.iter().map(|condition| condition.since_ms).min();
        let changed = self.destination.state.as_ref().map(|state| state.changed_ms);
        began.or(changed).unwrap_or_default()
    }
}

fn table(listed: &[Listed], now_ms: u64) -> Table {
    let mut table = text::table(&COLUMNS);
    for entry in listed {
        let Listed { destination, conditions } = entry;
        let (mut names, mut times) = ("healthy".to_owned(), since(entry.since_ms(), now_ms));
        if !conditions.is_empty() {
            let lines = |line: &dyn Fn(&Condition) -> String| {
                conditions.iter().map(line).collect::<Vec<_>>().join("\n")
            };
            names = lines(&|condition| condition.name.to_owned());
            times = lines(&|condition| since(condition.since_ms, now_ms));
        }
        let state = destination.state.as_ref();
        table.add_row([
            names,
            times,
            state.map(|state| next_attempt_text(state, now_ms)).unwrap_or_default(),
            first_names(&destination.names()),
            destination.address.clone(),
        ]);
    }
    table
}

fn first_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut lines = names[..names.len() - more].to_vec();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}
