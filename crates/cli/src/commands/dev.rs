//! `lastmile dev`: runs the whole application on this machine, until Ctrl-C.
//!
//! Starts the local AWS with the functions, the ingress and the console, and compiles the
//! subscription files after each save. If saved files are invalid, the application continues with
//! their last valid content.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::events_queue::EventsQueue;
use adapters::live_topics::LiveTopics;
use deadletters::DeadLetters;
use deadletters::container::{DeadLetterContainer, LOCAL_CONTAINER};
use delivery::ports::SubscriptionSource as _;
use delivery::publish::AllowedOrigins;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::Secret;
use dialects::Reading;
use local::guard::Hosts;
use local::ingress::Ingress;
use local::stack::{Stack, StackConfig, TargetSettings};
use local::watch::Line;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing_subscriber::filter::LevelFilter;

use crate::commands::named_secret;
use crate::console::{
    LiveSetup, RateSource, Recording, Served, Setup, Sources, Witness, record, serve,
};
use crate::operations::access::Access;
use crate::operations::aws_targets::{listed_here, refused_here};
use crate::operations::compiled::Compiled;
use crate::operations::data_lock::DataLock;
use crate::operations::destinations::deployment::Deployment;
use crate::operations::dev_log::DevLog;
use crate::operations::environment::{
    Allowed, EnvironmentArgs, lookup, receivers_elsewhere, report,
};
use crate::operations::files::{Files, have_errors, print_findings};
use crate::operations::replay_sender::ReplayQueues;
use crate::operations::saved_files::{Saved, SavedFiles};
use crate::operations::shell;
use crate::operations::this_machine::{allow_private, aws_endpoint, listen, listen_at, reached_at};
use crate::operations::unset_secrets::all_unset_here;
use crate::terminal::advice::chain;
use crate::terminal::help::{FILES, OUTPUT, examples};
use crate::terminal::interrupt;
use crate::terminal::output::{LineOutput, note};
use crate::terminal::styled::{ColorArgs, Screen};
use crate::terminal::text;
use crate::terminal::usage::usage_error;
use crate::views::dev_view::{DevView, Ready};
use crate::views::log_view;

/// The name of the subscription file that is used if the arguments name none.
const USUAL_FILE: &str = "subscriptions.yaml";

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/local.md",
        "lastmile dev -f subscriptions.yaml",
        "lastmile dev -f subscriptions.yaml --env BILLING_TOKEN --port 0",
        "lastmile dev --default-topic shop/orders --key env:PUBLISH_KEY",
        "lastmile dev --listen 0.0.0.0 --host lastmile --key env:PUBLISH_KEY",
    )
)]
pub(crate) struct Arguments {
    /// Subscription files, or folders with subscription files, read again at each save
    #[arg(short = 'f', long = "file", num_args = 1.., value_name = "FILE", help_heading = FILES)]
    files: Vec<PathBuf>,
    /// Data folder: dead letters in s3/dead-letters, and the log for trace
    #[arg(long, default_value = ".lastmile", value_name = "DIR")]
    data: PathBuf,
    /// Port of the HTTP ingress, POST /topics/{namespace}/{topic}; 0 for any free port
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Address on which the ingress listens. A non-loopback address, such as 0.0.0.0, lets other
    /// machines publish, and requires --key
    ///
    /// SQS, S3, DynamoDB and the console stay on 127.0.0.1.
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST.into(), value_name = "IP")]
    listen: IpAddr,
    /// Also accept requests to the ingress for this host name, such as the name of a container or
    /// tunnel. Repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Port of SQS, S3 and DynamoDB; 0 for any free port
    #[arg(long, default_value_t = 4566, value_name = "PORT")]
    aws_port: u16,
    /// Port of the console. If the port is 0 or in use, the console uses any free port
    #[arg(long, default_value_t = 9182, value_name = "PORT")]
    console_port: u16,
    /// Do not serve the console
    #[arg(long, conflicts_with = "console_port")]
    no_console: bool,
    /// Topic of events that name no topic. By default, requests over HTTP use the topic of the
    /// files if there is only one
    #[arg(long, value_name = "NS/TOPIC")]
    default_topic: Option<TopicName>,
    /// Key that requests to the ingress must contain: an environment variable as env:NAME, or a
    /// file with the key. Repeatable; one of the keys must match
    #[arg(long, value_name = "env:NAME|FILE")]
    key: Vec<String>,
    /// DNS names of senders that may complete the CloudEvents handshake (OPTIONS), or * for all
    /// senders. By default none
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME,…")]
    allowed_origins: AllowedOrigins,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// Output format: messages for people, or the log lines of the functions as JSON
    #[arg(long, default_value = "text", value_name = "FORMAT", help_heading = OUTPUT)]
    output: LineOutput,
    #[command(flatten)]
    color: ColorArgs,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.environment.check_names()?;
    let files = files(&arguments.files)?;
    let keys = keys(&arguments)?;
    // Lock the folder and open the ports before the stack starts. If the folder or a port is in
    // use, the error then appears before anything has started.
    let mut lock = DataLock::take(&arguments.data)?;
    let mut log = watch(&arguments)?;
    let listener = listen_at(SocketAddr::new(arguments.listen, arguments.port)).await?;
    let address = reached_at(listener.local_addr()?);
    let ingress_address = format!("http://{address}");
    lock.says(&[&ingress_address]);
    let compiled = Compiled::below(&arguments.data).await?;
    let config = stack_config(&arguments, &compiled)?;
    let mut saved_files = SavedFiles::new(files.clone());
    let reading = compile(&files, &compiled).await?;
    let known = &reading.catalogue;
    saved_files.had(known);
    let screen = Screen::stdout(arguments.color);
    let mut view = DevView::new(arguments.output, screen, known);
    view.warnings("dev.unset_secrets", &all_unset_here(&reading))?;
    view.warnings("dev.refused_targets", &refused_here(&reading)?)?;
    // Start recording before the stack starts, so that nothing is missed.
    let (witness, recording) = (!arguments.no_console).then(record).unzip();
    let allowed = allowed(&arguments.environment, known)?;
    let stack = start_stack(&arguments, &config, (known, &allowed), witness.as_ref()).await?;
    let subscriptions = stack.subscriptions();
    if let Err(problem) = subscriptions.current().await {
        view.unreadable(&problem)?;
    }
    let (aws, queue) = (stack.aws().endpoint(), stack.aws().queue_url("events"));
    lock.says(&[&ingress_address, &aws]);
    let live =
        LiveSetup { ingress: ingress_address.clone(), ingress_key: keys.first().cloned(), allowed };
    let ingress = ingress(&arguments, stack.events_queue(), subscriptions, keys);
    ingress.announce(&stack.sqs(), &ingress_address).await?;
    let parts = (live, recording, &config, files.as_slice());
    let console = start_console(parts, &stack, arguments.console_port).await?;
    let ready = Ready {
        ingress: &ingress_address,
        queue: &queue,
        aws: &aws,
        dead_letters: &config.data.join("s3/dead-letters"),
        subscriptions: &names(&files),
        console: console.as_ref().map(|console| console.address.as_str()),
    };
    view.ready(&ready, known)?;
    // Use one future for all iterations. A new future for each iteration could miss a Ctrl-C
    // between two iterations.
    let mut interrupted = Box::pin(interrupt::requested());
    let mut serve = Box::pin(axum::serve(listener, ingress.router()).into_future());
    loop {
        tokio::select! {
            served = &mut serve => served?,
            interrupted = &mut interrupted => { interrupted?; break }
            Some(line) = log.recv() => {
                witness.iter().for_each(|witness| witness.line(&line));
                view.line(&line)?;
            }
            saved = saved_files.saved() => take_over(&saved, &compiled, &mut view).await?,
        }
    }
    if let Some(console) = console {
        console.finish().await?;
    }
    let code = stop(stack).await?;
    print_last_lines(&mut log, &mut view, code)?;
    Ok(code)
}

/// Prints the lines that were logged while the stack was stopping. After a second Ctrl-C, the
/// program exits immediately, without these lines.
fn print_last_lines(
    log: &mut UnboundedReceiver<Line>,
    view: &mut DevView,
    code: ExitCode,
) -> anyhow::Result<()> {
    while let Some(line) = log.try_recv().ok().filter(|_| code == ExitCode::SUCCESS) {
        view.line(&line)?;
    }
    Ok(())
}

/// Receives the log lines of the functions, and stores them in the data folder. The console needs
/// lines of level `debug`, which report the beginning of an attempt.
fn watch(arguments: &Arguments) -> anyhow::Result<UnboundedReceiver<Line>> {
    let kept = DevLog::open(&arguments.data)?;
    let is_json = arguments.output == LineOutput::Json;
    Ok(log_view::watch(LevelFilter::DEBUG, is_json, Some(kept)))
}

/// Starts the stack. Its functions can send the values of the allowed environment variables, and of
/// no others.
async fn start_stack(
    arguments: &Arguments,
    config: &StackConfig,
    (known, allowed): (&Catalogue, &Allowed),
    witness: Option<&Witness>,
) -> anyhow::Result<Stack> {
    let identity = arguments.environment.identity(known.subscriptions().map(AsRef::as_ref))?;
    let observer = witness.map(|witness| witness.observer.clone()).unwrap_or_default();
    Stack::start_observed(config, lookup(allowed.clone(), true), identity, observer).await
}

/// Returns the named files, or the default file if none is named.
fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let usual = PathBuf::from(USUAL_FILE);
    if usual.exists() {
        return Ok(vec![usual]);
    }
    Err(usage_error(format!(
        "{USUAL_FILE} does not exist in this folder: specify files with -f FILE, or use those of \
         the demo: lastmile demo, then lastmile dev -f .lastmile/{USUAL_FILE}"
    )))
}

/// Reads the files. Compiles them for dispatch unless they have errors.
async fn compile(files: &[PathBuf], compiled: &Compiled) -> anyhow::Result<Reading> {
    let reading = Files::read(files)?.reading_with_blank();
    print_findings(&reading.findings);
    if !have_errors(&reading.findings) {
        compiled.write(&reading).await?;
    }
    Ok(reading)
}

/// Compiles saved files for dispatch if they are valid, and prints the result.
async fn take_over(saved: &Saved, compiled: &Compiled, view: &mut DevView) -> anyhow::Result<()> {
    if let Saved::Valid { reading, .. } = saved
        && let Err(error) = compiled.write(reading).await
    {
        return view.saved(&Saved::Unreadable(chain(&error)));
    }
    view.saved(saved)
}

fn names(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|path| text::path(path)).collect();
    names.join(", ")
}

fn stack_config(arguments: &Arguments, compiled: &Compiled) -> anyhow::Result<StackConfig> {
    Ok(StackConfig {
        aws_port: arguments.aws_port,
        data: arguments.data.clone(),
        subscriptions: compiled.folder.clone(),
        allow_private: allow_private(),
        targets: TargetSettings { listed: listed_here(), endpoint: aws_endpoint()? },
        default_topic: arguments.default_topic.clone(),
    })
}

fn ingress(
    arguments: &Arguments,
    queue: EventsQueue,
    subscriptions: LiveTopics,
    keys: Vec<Secret>,
) -> Ingress {
    let (default_topic, hosts) = (arguments.default_topic.clone(), hosts(arguments));
    let origins = arguments.allowed_origins.clone();
    Ingress { queue, subscriptions, default_topic, keys, origins, hosts }
}

/// Reads the keys of the ingress. If other machines can reach the ingress, requires keys and prints
/// a warning.
fn keys(arguments: &Arguments) -> anyhow::Result<Vec<Secret>> {
    let read = |name: &String| {
        let key = named_secret::read(name, "key")?;
        if key.trim().is_empty() {
            return Err(usage_error(format!("the key {name} is empty")));
        }
        Ok(Secret::new(key))
    };
    let keys = arguments.key.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let listen = arguments.listen;
    if listen.is_loopback() {
        if keys.is_empty() && !arguments.host.is_empty() {
            note(format_args!(
                "WARNING: the ingress accepts requests for {} without a key: anyone who can reach \
                 it, for example through a tunnel, can publish; add --key env:NAME",
                text::line(&arguments.host.join(", "))
            ));
        }
        return Ok(keys);
    }
    if keys.is_empty() {
        return Err(usage_error(format!(
            "with --listen {listen}, other machines can publish, so a key is required: add --key \
             env:NAME"
        )));
    }
    note(format_args!(
        "WARNING: the ingress listens on {listen} without TLS: keys and events are visible on the \
         network"
    ));
    Ok(keys)
}

/// Returns the variables that may be sent to other machines, and prints their receivers.
fn allowed(environment: &EnvironmentArgs, known: &Catalogue) -> anyhow::Result<Allowed> {
    let elsewhere = receivers_elsewhere(known);
    let allowed = environment.allow(&elsewhere)?;
    report(&elsewhere);
    Ok(allowed)
}

/// Returns the host names for which the ingress accepts requests.
fn hosts(arguments: &Arguments) -> Hosts {
    let named = arguments.host.iter().fold(Hosts::default(), Hosts::and);
    named.and_address(arguments.listen)
}

/// Stops the stack after the requests in progress have ended. After a second Ctrl-C, stops
/// immediately and returns a failure.
async fn stop(stack: Stack) -> anyhow::Result<ExitCode> {
    note(format_args!(
        "stopping after the requests in progress; press Ctrl-C again to stop at once"
    ));
    tokio::select! {
        lost = stack.stop() => {
            print_lost_messages(&lost?);
            Ok(ExitCode::SUCCESS)
        }
        interrupted = interrupt::requested() => {
            interrupted?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Formats the command-line options that name the container of this run; empty for the default
/// folder.
fn options(config: &StackConfig) -> String {
    let folder = config.data.join("s3/dead-letters").display().to_string();
    match folder == LOCAL_CONTAINER {
        true => String::new(),
        false => format!(" --container {}", shell::typed(&folder)),
    }
}

/// Serves the console on this port of the loopback interface, unless an option turns it off. If the
/// port is in use, uses a free one and prints a note.
async fn start_console(
    (live, recording, config, files): (LiveSetup, Option<Recording>, &StackConfig, &[PathBuf]),
    stack: &Stack,
    port: u16,
) -> anyhow::Result<Option<Served>> {
    let Some(recording) = recording else { return Ok(None) };
    let listener = match listen(port).await {
        Ok(listener) => listener,
        Err(_) => {
            note(format_args!("port {port} is in use, so the console uses another port"));
            listen(0).await?
        }
    };
    let folder = config.data.join("s3/dead-letters");
    // Create the folder now, because the console reads it before the first dead letter would create
    // it.
    std::fs::create_dir_all(&folder)?;
    let container = DeadLetterContainer::folder(&folder.display().to_string())?;
    let aws = stack.aws();
    let setup = Setup {
        name: "lastmile dev".to_owned(),
        options: options(config),
        letters: DeadLetters::new(container),
        queues: ReplayQueues::local(aws.endpoint()),
        is_stack: false,
        deployment: Some(Deployment::local(&aws.endpoint(), config.subscriptions.clone())),
        sources: Sources::files(files.to_vec()),
        rates: RateSource::Nothing,
        access: Access::default(),
        hides_events: false,
        live: Some((live, recording)),
    };
    serve(listener, setup).map(Some)
}

fn print_lost_messages(lost: &[(String, u64)]) {
    let messages: u64 = lost.iter().map(|(_, messages)| messages).sum();
    let queues: Vec<String> =
        lost.iter().map(|(queue, messages)| format!("{queue} {messages}")).collect();
    match messages {
        0 => note(format_args!("stopped; the queues were empty")),
        _ => note(format_args!(
            "stopped; messages lost from the in-memory queues: {messages} ({})",
            queues.join(", ")
        )),
    }
}
