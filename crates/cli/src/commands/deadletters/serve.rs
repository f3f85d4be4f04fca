//! `lastmile deadletters serve`: the dead letters as a web page on this machine, until Ctrl-C.

use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::ports::JitterSource as _;

use super::selection::ContainerArgs;
use crate::output::out;
use crate::page;
use crate::replay_sender::ReplayQueueArgs;
use crate::this_machine::listen;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    container: ContainerArgs,
    /// The port on 127.0.0.1 to listen on; 0 takes any free one
    #[arg(long, default_value_t = 9181)]
    port: u16,
    #[command(flatten)]
    queues: ReplayQueueArgs,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    let queues = arguments.queues.open(arguments.container.stack(), &letters.container).await?;
    let listener = listen(arguments.port).await?;
    out(&format!(
        "ready: the dead letters of {} on http://{}/\n",
        letters.container.name,
        listener.local_addr()?
    ))?;
    let random = std::array::from_fn(|_| Machine.next_jitter().0);
    page::serve(listener, letters, queues, random).await?;
    Ok(ExitCode::SUCCESS)
}
