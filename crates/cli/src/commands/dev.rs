//! `lastmile dev`: the whole application on this machine, until Ctrl-C.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::settings::ALLOW_PRIVATE_DESTINATIONS;
use anyhow::Context as _;
use delivery::ports::SubscriptionSource as _;
use local::ingress::Ingress;
use local::stack::{Stack, StackConfig};
use tokio::net::TcpListener;

use crate::lines;

/// What may be reached here unless the environment says otherwise: this machine.
pub(crate) const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file of subscriptions
    #[arg(long, default_value = "subscriptions.yaml", value_name = "FILE")]
    subscriptions: PathBuf,
    /// The folder of all data; dead letters are plain files below s3/dead-letters
    #[arg(long, default_value = ".lastmile", value_name = "DIR")]
    data: PathBuf,
    /// The port of the HTTP ingress, POST /topics/{namespace}/{topic}; 0 takes any free one
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The port of SQS and S3; 0 takes any free one
    #[arg(long, default_value_t = 4566)]
    aws_port: u16,
}

/// What the environment allows, or loopback when it says nothing; set, even to nothing, it governs.
pub(crate) fn allow_private() -> String {
    std::env::var(ALLOW_PRIVATE_DESTINATIONS).unwrap_or_else(|_| LOOPBACK.to_owned())
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut seen = lines::watch();
    let config = StackConfig {
        aws_port: arguments.aws_port,
        data: arguments.data,
        subscriptions: arguments.subscriptions,
        allow_private: allow_private(),
    };
    let port = arguments.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}; choose another --port"))?;
    let stack = Stack::start(&config).await?;
    let subscriptions = stack.subscriptions();
    if let Err(problem) = subscriptions.current().await {
        eprintln!("{problem}\nrecords wait until the subscriptions are right");
    }
    let (aws, queue) = (stack.aws().endpoint(), stack.aws().queue_url("events"));
    let ingress = Ingress { client: stack.sqs(), events_queue_url: queue.clone(), subscriptions };
    let address = listener.local_addr()?;
    println!(
        "ready: publish to http://{address}/topics/{{namespace}}/{{topic}} or to the queue {queue}; SQS and S3 on {aws}; \
         dead letters in {}",
        config.data.join("s3/dead-letters").display()
    );
    let serve = axum::serve(listener, ingress.router());
    let mut interrupted = Box::pin(tokio::signal::ctrl_c());
    let mut serve = Box::pin(serve.into_future());
    loop {
        tokio::select! {
            served = &mut serve => served?,
            interrupted = &mut interrupted => { interrupted?; break }
            Some(line) = seen.recv() => lines::describe(&line).into_iter().for_each(|line| println!("{line}")),
        }
    }
    eprintln!("stopping; requests under way end first, Ctrl-C again does not wait for them");
    tokio::select! {
        held = stack.stop() => report(&held?),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            return Ok(ExitCode::FAILURE);
        }
    }
    while let Ok(line) = seen.try_recv() {
        lines::describe(&line).into_iter().for_each(|line| println!("{line}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn report(held: &[(String, u64)]) {
    let messages: u64 = held.iter().map(|(_, messages)| messages).sum();
    let queues: Vec<String> =
        held.iter().map(|(queue, messages)| format!("{queue} {messages}")).collect();
    match messages {
        0 => eprintln!("stopped; the queues were empty"),
        _ => eprintln!(
            "stopped; the queues in memory still held {messages} messages, gone now: {}",
            queues.join(", ")
        ),
    }
}
