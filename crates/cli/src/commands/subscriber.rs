//! `lastmile subscriber`: receives events, prints them, and responds with the given statuses.

use std::process::ExitCode;

use anyhow::Context as _;
use axum::http::StatusCode;
use delivery::time::duration;
use local::guard::Hosts;
use local::subscriber::{Received, Subscriber, status_sequence};

use crate::output::{note, out};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The port on 127.0.0.1 to listen on
    #[arg(long, default_value_t = 9180)]
    port: u16,
    /// Also answer requests for this host, as a tunnel to this port names it; can be repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// The statuses to respond with, in turn; the last one repeats
    #[arg(long, value_delimiter = ',', default_value = "200", value_name = "STATUS,…")]
    answer: Vec<StatusCode>,
    /// How long to wait before each response, such as PT2S
    #[arg(long, default_value = "PT0S", value_parser = duration::parse_ms)]
    delay: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let port = arguments.port;
    let subscriber = Subscriber::listen(port)
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
    note(format_args!("listening on http://127.0.0.1:{}/", subscriber.port()?));
    let hosts = arguments.host.into_iter().fold(Hosts::default(), Hosts::and);
    let answer = status_sequence(arguments.answer, arguments.delay);
    let print = |received: &Received, status| {
        // A reader that has gone is no reason not to answer.
        let _ = out(&format!("{}\n", received.describe(status)));
    };
    let serve = subscriber.answering_for(hosts).serve(answer, print);
    tokio::select! {
        served = serve => served?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}
