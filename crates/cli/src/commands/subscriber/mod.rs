//! `lastmile subscriber`: receives events, prints them, verifies their signatures, and responds
//! with the given statuses.

mod signatures;
mod view;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use axum::http::StatusCode;
use delivery::time::brief;
use local::guard::Hosts;
use local::subscriber::{Received, Subscriber, status_sequence};

use self::signatures::Signatures;
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::interrupt;
use crate::terminal::output::{LineOutput, note, out_json, out_rendered, stdout_is_terminal};
use crate::terminal::styled::{ColorArgs, Screen};

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/local.md",
        "lastmile subscriber",
        "lastmile subscriber --port 9000 --answer 503,503,200 --delay 2s",
        "lastmile subscriber --secret env:SIGNING_SECRET --require-signature",
    )
)]
pub(crate) struct Arguments {
    /// Port on 127.0.0.1 to listen on
    #[arg(long, default_value_t = 9180)]
    port: u16,
    /// Also accept requests for this host name, such as the name of a tunnel. Repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Statuses of the responses, in order, such as 503,503,200. The last status repeats
    #[arg(long, value_delimiter = ',', default_value = "200", value_name = "STATUS,…")]
    answer: Vec<StatusCode>,
    /// Delay before each response, such as 2s
    #[arg(long, default_value = "0s", value_parser = brief::parse_ms, value_name = "DURATION")]
    delay: u64,
    /// Verify signatures with this signing secret (whsec_) or public key (whpk_): an environment
    /// variable as env:NAME, or a file. Repeatable; one of the keys must match
    #[arg(long, value_name = "env:NAME|FILE")]
    secret: Vec<String>,
    /// Respond with 401 to requests without a valid signature, except for handshakes
    #[arg(long, requires = "secret")]
    require_signature: bool,
    /// Output format of requests
    #[arg(long, default_value = "text", value_name = "FORMAT", help_heading = OUTPUT)]
    output: LineOutput,
    #[command(flatten)]
    color: ColorArgs,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let signatures = Arc::new(Signatures::read(&arguments.secret)?);
    let port = arguments.port;
    let subscriber = Subscriber::listen(port)
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
    note(format_args!("listening on http://127.0.0.1:{}/", subscriber.port()?));
    let hosts = arguments.host.into_iter().fold(Hosts::default(), Hosts::and);
    let (screen, is_terminal) = (Screen::stdout(arguments.color), stdout_is_terminal());
    let statuses = status_sequence(arguments.answer, arguments.delay);
    let (checked, is_required) = (Arc::clone(&signatures), arguments.require_signature);
    let answer = move |received: &Received| match checked.check(received) {
        // A rejected request does not consume a status.
        Some(Err(_)) if is_required => (StatusCode::UNAUTHORIZED, 0),
        Some(_) | None => statuses(received),
    };
    let print = move |received: &Received, status| {
        let signature = signatures.check(received);
        // A closed output must not prevent responses.
        let _ = match arguments.output {
            LineOutput::Json => out_json(&view::json(received, status, signature).to_string()),
            LineOutput::Text => {
                out_rendered(&view::text(screen, is_terminal, received, status, signature))
            }
        };
    };
    let serve = subscriber.answering_for(hosts).serve(answer, print);
    tokio::select! {
        served = serve => served?,
        interrupted = interrupt::requested() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}
