//! `lastmile deadletters serve`: the letters as a page on this machine, until Ctrl-C.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::Context as _;
use delivery::ports::JitterSource as _;
use tokio::net::TcpListener;
use url::Url;

use super::meant::Container;
use super::out;
use crate::page;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    container: Container,
    /// The port on 127.0.0.1 to listen on; 0 takes any free one
    #[arg(long, default_value_t = 9181)]
    port: u16,
    /// The events queue that replays go through; without it, that of `lastmile dev`
    #[arg(long, value_name = "URL")]
    queue_url: Option<Url>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    let port = arguments.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}; choose another --port"))?;
    out(&format!(
        "ready: the dead letters of {} on http://{}/\n",
        letters.place().name,
        listener.local_addr()?
    ))?;
    page::serve(
        listener,
        letters,
        arguments.queue_url,
        std::array::from_fn(|_| Machine.next_jitter().0),
    )
    .await?;
    Ok(ExitCode::SUCCESS)
}
