//! `lastmile doctor`: checks whether a deployed stack can deliver, and prints advice for each
//! problem.
//!
//! Separate from `check --stack`, which checks subscriptions. Doctor checks the stack as it is, not
//! as its template describes it. Each type of resource has one file, which reads the resources with
//! the SDK of their service, and then judges them in pure functions.
//!
//! Promises: without `--try`, doctor only reads, and calls no destination. It does not read the
//! values of secrets. A part that the user's credentials may not read is reported as a warning,
//! never as `ok`.
//!
//! Exit code 0 means that no action is needed; 1 that action is needed; 2 is a usage error.

mod account;
mod destinations;
mod functions;
mod item;
mod left_behind;
mod mappings;
mod permissions;
mod queues;
mod secrets;
mod subscriptions;
mod targets;
mod test_event;

use std::process::ExitCode;

use adapters::aws_ports::with_limits;
use anyhow::Context as _;
use clap::ValueEnum;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use serde::Serialize;

use self::item::{Item, State};
use crate::operations::named::named;
use crate::operations::place::{Place, StackArg};
use crate::operations::queues::{DEADLETTER, DISPATCH, Expected, QUEUES};
use crate::operations::stack::{self, Stack};
use crate::terminal::advice::chain;
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{out, out_json};

#[derive(Debug, clap::Args)]
#[command(mut_args(|argument| match argument.get_id() == "stack" {
    // `mut_arg` would move the option, and its heading, to the end of the help.
    true => argument.required(true),
    false => argument,
}))]
#[command(
    after_long_help = examples!(
        "docs/operate/doctor.md",
        "lastmile doctor --stack orders-prod",
        "lastmile doctor --stack orders-prod --try shop/orders/billing",
        "lastmile doctor --stack orders-prod --output json",
    )
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    stack: StackArg,
    /// Also send a sample event to this subscription through the stack, in one attempt. The
    /// destination receives the event. Repeatable
    #[arg(long = "try", value_name = "NS/TOPIC/NAME")]
    tried: Vec<SubscriptionName>,
    /// Seconds to wait for the result of each --try event
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "tried")]
    wait: u64,
    /// Output format
    #[arg(long, default_value = "text", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line per item: state, item, finding; remedy
    Text,
    /// One JSON object: {"items":[…]}
    Json,
}

#[derive(Serialize)]
struct Report {
    items: Vec<Item>,
}

impl Report {
    fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.state == State::Error)
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = Place::from(arguments.stack);
    let stack = place.stack().await?.context("clap requires --stack")?;
    let (mut report, catalogue) = examine(stack).await?;
    let catalogue = catalogue.filter(|_| !report.has_errors());
    for name in &arguments.tried {
        let item = format!("event to {name}");
        report.items.push(match &catalogue {
            Some(catalogue) => {
                let subscription = named(catalogue, name)?;
                let sent = test_event::sent(stack, catalogue, &subscription, arguments.wait).await;
                let help = "see docs/operate/doctor.md for the requirements of --try";
                sent.unwrap_or_else(|why| Item::error(item, chain(&why), help))
            }
            None => Item::warning(item, "not sent", "fix the problems above first"),
        });
    }
    match arguments.output {
        Output::Text => out(&report.items.iter().map(Item::line).collect::<String>())?,
        Output::Json => out_json(&serde_json::to_string(&report)?)?,
    }
    Ok(if report.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs all checks, except the one that sends an event. Also returns the subscriptions, if they can
/// be read.
async fn examine(stack: &Stack) -> anyhow::Result<(Report, Option<Catalogue>)> {
    let aws = with_limits(stack::aws().await);
    let (catalogue, of_subscriptions) = subscriptions::examine(stack).await?;
    // List dead letters left behind first, because nothing delivers them until a person acts.
    let mut items = left_behind::examine(stack, catalogue.as_ref()).await;
    items.push(outputs(stack));
    items.extend(account::examine(&aws, stack).await);
    let (functions, found) = functions::examine(&aws, stack).await;
    items.extend(found);
    let (queues, found) = queues::examine(&aws, stack).await;
    items.extend(found);
    items.extend(mappings::examine(&aws, stack, &queues).await);
    items.extend(permissions::examine(&aws, stack, &functions, &queues).await);
    items.extend(of_subscriptions);
    items.extend(targets::examine(&aws, stack, catalogue.as_ref()).await);
    items.extend(secrets::examine(&aws, stack, &functions, catalogue.as_ref()).await);
    items.push(destinations::examine(stack).await);
    Ok((Report { items }, catalogue))
}

/// The names of the stack outputs that the checks need.
const OUTPUTS: [&str; 6] = [
    "ConfigBucketName",
    "DeadLetterBucketName",
    DISPATCH,
    DEADLETTER,
    "DispatchLogGroupName",
    "DeadLetterLogGroupName",
];

fn outputs(stack: &Stack) -> Item {
    let queues = QUEUES.iter().map(Expected::output);
    let all = OUTPUTS.iter().map(ToString::to_string).chain(queues);
    let missing: Vec<String> = all.filter(|name| stack.output(name).is_err()).collect();
    match missing.is_empty() {
        true => Item::ok("stack", format!("{} has all outputs", stack.name)),
        false => Item::error(
            "stack",
            format!("{} has no {}", stack.name, missing.join(", ")),
            "deploy the template of this version of lastmile, or use another stack",
        ),
    }
}

/// Converts the error of an AWS request, and adds a description of what the check was doing.
fn failed<T, E>(
    result: Result<T, aws_sdk_sqs::error::SdkError<E>>,
    description: impl FnOnce() -> String,
) -> anyhow::Result<T>
where
    E: aws_sdk_sqs::error::ProvideErrorMetadata + std::error::Error + 'static,
{
    result.map_err(|error| crate::terminal::advice::aws_error(&error)).with_context(description)
}
