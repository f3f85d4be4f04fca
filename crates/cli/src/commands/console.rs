//! `lastmile console`: serves a web application on this machine, which shows dead letters,
//! destinations and subscriptions. Runs until Ctrl-C.

use std::process::ExitCode;

use crate::console::{RateSource, Setup, Sources, serve};
use crate::operations::access::access;
use crate::operations::container::ContainerArgs;
use crate::operations::destinations::place::PlaceArgs;
use crate::operations::replay_sender::ReplayQueueArgs;
use crate::operations::this_machine::listen;
use crate::terminal::interrupt;
use crate::terminal::output::out;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    container: ContainerArgs,
    /// Port on 127.0.0.1 to listen on; 0 for any free port
    #[arg(long, default_value_t = 9181)]
    port: u16,
    #[command(flatten)]
    queues: ReplayQueueArgs,
    /// Do not show event bodies. Responses and titles of causes may still repeat their values, and
    /// your AWS credentials can still read the bodies
    #[arg(long)]
    hide_events: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { container, port, queues, hide_events } = arguments;
    let (letters, options) = (container.open().await?, container.options());
    let stack = container.stack().map(str::to_owned);
    let queues = queues.open(stack.as_deref(), &letters.container).await?;
    let deployment = match &stack {
        None => None,
        Some(_) => {
            let place = PlaceArgs { stack: stack.clone(), config: String::new(), table: None };
            Some(place.open().await?)
        }
    };
    let listener = listen(port).await?;
    let setup = Setup {
        name: stack
            .as_ref()
            .map_or_else(|| letters.container.name.clone(), |name| format!("stack {name}")),
        options,
        rates: rates(stack.as_deref()).await?,
        access: access(&letters.container).await,
        sources: deployment.clone().map_or(Sources::Unknown, Sources::deployed),
        letters,
        queues,
        stack,
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
async fn rates(stack: Option<&str>) -> anyhow::Result<RateSource> {
    use crate::console::CloudWatch;
    use crate::operations::stack::{Stack, aws};
    Ok(match stack {
        Some(name) => {
            RateSource::CloudWatch(CloudWatch::of(&aws().await, &Stack::describe(name).await?))
        }
        None => RateSource::Nothing,
    })
}

#[cfg(not(feature = "aws"))]
async fn rates(_stack: Option<&str>) -> anyhow::Result<RateSource> {
    Ok(RateSource::Nothing)
}
