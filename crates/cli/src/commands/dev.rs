//! `lastmile dev`: the whole application on this machine, until Ctrl-C.

use std::path::PathBuf;
use std::process::ExitCode;

use delivery::ports::SubscriptionSource as _;
use local::ingress::Ingress;
use local::stack::{Stack, StackConfig};
use local::watch::Line;

use crate::environment::{EnvironmentArgs, Receivers, lookup, receivers_elsewhere, report};
use crate::log_view;
use crate::output::{note, out};
use crate::this_machine::{allow_private, listen};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file of subscriptions, or the folder of a catalogue
    #[arg(long, default_value = "subscriptions.yaml", value_name = "FILE")]
    subscriptions: PathBuf,
    /// The data folder; dead letters are plain files below s3/dead-letters
    #[arg(long, default_value = ".lastmile", value_name = "DIR")]
    data: PathBuf,
    /// The port of the HTTP ingress, POST /topics/{namespace}/{topic}; 0 for any free port
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The port of SQS and S3; 0 for any free port
    #[arg(long, default_value_t = 4566)]
    aws_port: u16,
    #[command(flatten)]
    environment: EnvironmentArgs,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut log = log_view::watch();
    let config = StackConfig {
        aws_port: arguments.aws_port,
        data: arguments.data,
        subscriptions: arguments.subscriptions,
        allow_private: allow_private(),
    };
    // Before the stack starts: a port in use is reported without starting anything.
    let listener = listen(arguments.port).await?;
    // Who receives what a catalogue says is known when its topics are read: each request is decided then.
    let elsewhere = match config.subscriptions.is_dir() {
        true => Receivers::default(),
        false => receivers_elsewhere(&config.subscriptions)?,
    };
    let allowed = arguments.environment.allow(&elsewhere)?;
    report(&elsewhere);
    let environment = lookup(allowed, true);
    let stack = Stack::start_with(&config, environment).await?;
    let subscriptions = stack.subscriptions();
    // No reason to stop: the file can be corrected while everything runs.
    if let Err(problem) = subscriptions.current().await {
        note(format_args!("{problem}\nrecords wait until the subscriptions can be read"));
    }
    let (aws, queue) = (stack.aws().endpoint(), stack.aws().queue_url("events"));
    let ingress = Ingress { client: stack.sqs(), events_queue_url: queue.clone(), subscriptions };
    let address = listener.local_addr()?;
    out(&format!(
        "ready: publish to http://{address}/topics/{{namespace}}/{{topic}} or to the queue {queue}; SQS and S3 on {aws}; \
         dead letters in {}\n",
        config.data.join("s3/dead-letters").display()
    ))?;
    let serve = axum::serve(listener, ingress.router());
    // One for all rounds: a new one could miss a Ctrl-C between two of them.
    let mut interrupted = Box::pin(tokio::signal::ctrl_c());
    let mut serve = Box::pin(serve.into_future());
    loop {
        tokio::select! {
            served = &mut serve => served?,
            interrupted = &mut interrupted => { interrupted?; break }
            Some(line) = log.recv() => print(&line)?,
        }
    }
    note(format_args!("stopping after the requests in progress; Ctrl-C again stops at once"));
    tokio::select! {
        lost = stack.stop() => print_lost_messages(&lost?),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            return Ok(ExitCode::FAILURE);
        }
    }
    // The lines that were logged while stopping.
    while let Ok(line) = log.try_recv() {
        print(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a log line, if it adds anything.
fn print(line: &Line) -> anyhow::Result<()> {
    log_view::describe(line).map_or(Ok(()), |line| out(&format!("{line}\n")))
}

fn print_lost_messages(lost: &[(String, u64)]) {
    let messages: u64 = lost.iter().map(|(_, messages)| messages).sum();
    let queues: Vec<String> =
        lost.iter().map(|(queue, messages)| format!("{queue} {messages}")).collect();
    match messages {
        0 => note(format_args!("stopped; the queues were empty")),
        _ => note(format_args!(
            "stopped; the queues in memory still held {messages} messages, which are lost: {}",
            queues.join(", ")
        )),
    }
}
