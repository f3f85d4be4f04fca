//! `lastmile subscriber`: receives events, prints them, and responds with the given statuses.

use std::process::ExitCode;

use anyhow::Context as _;
use axum::http::StatusCode;
use delivery::time::duration;
use local::subscriber::{Subscriber, status_sequence};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The port on 127.0.0.1 to listen on
    #[arg(long, default_value_t = 9180)]
    port: u16,
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
    eprintln!("listening on http://127.0.0.1:{}/", subscriber.port()?);
    let answer = status_sequence(arguments.answer, arguments.delay);
    let serve =
        subscriber.serve(answer, |received, status| println!("{}", received.describe(status)));
    tokio::select! {
        served = serve => served?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}
