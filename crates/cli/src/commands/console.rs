//! `lastmile console`: serves a web application on this machine, which shows dead letters,
//! destinations and subscriptions. Runs until Ctrl-C.

use std::process::ExitCode;

use crate::console::{RateSource, Setup, Sources, serve};
use crate::operations::access::access;
use crate::operations::destinations::deployment::Deployment;
use crate::operations::place::{Place, ReplayPlace};
use crate::operations::replay_sender::ReplayQueues;
use crate::operations::stack::Stack;
use crate::operations::this_machine::listen;
use crate::terminal::help::examples;
use crate::terminal::interrupt;
use crate::terminal::output::out;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile console",
        "lastmile console --stack orders-prod --port 0",
    )
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: ReplayPlace,
    /// Port on 127.0.0.1 to listen on; 0 for any free port
    #[arg(long, default_value_t = 9181)]
    port: u16,
    /// Do not show event bodies. Responses and titles of causes may still repeat values of bodies
    ///
    /// Your AWS credentials can still read the bodies.
    #[arg(long)]
    hide_events: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { place, port, hide_events } = arguments;
    let place = Place::from(place);
    let letters = place.dead_letters().await?;
    let queues = ReplayQueues::open(&place, &letters.container).await?;
    let stack = place.stack().await?;
    let deployment = match stack {
        Some(stack) => Some(Deployment::of_stack(stack).await?),
        None => None,
    };
    let listener = listen(port).await?;
    let setup = Setup {
        name: stack.as_ref().map_or_else(
            || letters.container.name.clone(),
            |stack| format!("stack {}", stack.name),
        ),
        options: place.dead_letter_options(),
        rates: rates(stack).await,
        access: access(&letters.container).await,
        sources: deployment.clone().map_or(Sources::Unknown, Sources::deployed),
        letters,
        queues,
        is_stack: stack.is_some(),
        deployment,
        hides_events: hide_events,
        live: None,
    };
    let name = setup.name.clone();
    let served = serve(listener, setup)?;
    out(&format!("ready: the console of {name} on {}\n", served.address))?;
    interrupt::requested().await?;
    served.finish().await?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the source of success rates: the CloudWatch metrics of the stack, or no source if
/// `stack` is `None`.
#[cfg(feature = "aws")]
async fn rates(stack: Option<&Stack>) -> RateSource {
    use crate::console::CloudWatch;
    use crate::operations::stack::aws;
    match stack {
        Some(stack) => RateSource::CloudWatch(CloudWatch::new(&aws().await, stack)),
        None => RateSource::Nothing,
    }
}

#[cfg(not(feature = "aws"))]
#[expect(clippy::unused_async, reason = "the build with AWS reads its configuration")]
async fn rates(_: Option<&Stack>) -> RateSource {
    RateSource::Nothing
}
