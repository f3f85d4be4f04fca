//! `lastmile demo`: shows deliveries, retries and dead letters on this machine, in seconds.
//!
//! Runs the production functions on the local AWS, with four endpoints on one port: one accepts
//! everything, one is flaky, one responds 410 Gone, one always fails. The command exits by itself.
//! It succeeds only if every delivery ends as expected. The subscriptions and the dead letters stay
//! on disk. The next demo removes the dead letters of earlier demos, and no others.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use adapters::queues::text_attribute;
use anyhow::Context as _;
use axum::http::StatusCode;
use cloudevents::{EventBuilder as _, EventBuilderV10};
use delivery::event::Members;
use delivery::ports::Clock as _;
use delivery::wire::TOPIC_ATTRIBUTE;
use local::stack::{Stack, StackConfig, TargetSettings};
use local::subscriber::{Received, Subscriber};
use local::watch::Line;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing_subscriber::filter::LevelFilter;

use crate::operations::compiled::Compiled;
use crate::operations::files::Files;
use crate::operations::this_machine::allow_private;
use crate::terminal::help::examples;
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::views::log_view;

/// The sample subscriptions, whose endpoints are on the port of the sample subscriber.
const SUBSCRIPTIONS: &str = include_str!("../../../../examples/demo.yaml");
/// A sample event in the format that Azure Event Grid publishes.
const EVENT_GRID_EVENT: &str = include_str!("../../../../examples/events/blob-created.json");
/// The port of the endpoints in the sample subscriptions. The command replaces it with the actual
/// port.
const PORT: u16 = 9180;
/// The name of the file that lists the dead letters of a demo, so that the next demo can remove
/// them.
const LETTERS: &str = "demo-dead-letters.txt";
const TOPIC: &str = "shop/orders";
/// The time after which the demo fails if deliveries have not ended.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The expected result of each subscription's deliveries: name of the subscription, end, and number
/// of attempts.
const EXPECTED: [(&str, &str, &str); 4] = [
    ("shop/orders/dead", "MaxDeliveryAttemptsExceeded", "3"),
    ("shop/orders/flaky", "Delivered", "3"),
    ("shop/orders/gone", "UndeliverableDueToHttpGone", "1"),
    ("shop/orders/good", "Delivered", "1"),
];

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/local.md",
        "lastmile demo",
        "lastmile demo --data /tmp/demo",
    )
)]
pub(crate) struct Arguments {
    /// Data folder, in which subscriptions and dead letters stay after the demo
    #[arg(long, default_value = ".lastmile", value_name = "DIR")]
    data: PathBuf,
    /// Port of the sample endpoints. If the port is 0 or in use, the demo uses any free port
    #[arg(long, default_value_t = PORT)]
    port: u16,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    // Watch the log before anything starts, so that no line is missed.
    let mut log = log_view::watch(LevelFilter::INFO, false, None);
    std::fs::create_dir_all(&arguments.data)
        .with_context(|| format!("{} cannot be created", text::path(&arguments.data)))?;
    let storage = arguments.data.join("s3");
    let letters = arguments.data.join(LETTERS);
    remove_earlier(&letters, &storage)?;
    let subscriptions = arguments.data.join("subscriptions.yaml");
    let subscriber = listen(arguments.port).await?;
    let port = subscriber.port()?;
    write_subscriptions(&subscriptions, port)?;
    let compiled = Compiled::below(&arguments.data.join("demo")).await?;
    compiled.write(&Files::read(std::slice::from_ref(&subscriptions))?.reading()).await?;
    let endpoints = Endpoints::default();
    let answer = move |received: &Received| endpoints.answer(received);
    let endpoints = tokio::spawn(subscriber.serve(answer, |_, _| {}));
    let config = StackConfig {
        // Use any free port, because `lastmile dev` may use the default.
        aws_port: 0,
        data: arguments.data.clone(),
        subscriptions: compiled.folder,
        allow_private: allow_private(),
        targets: TargetSettings::default(),
        default_topic: None,
    };
    let stack = Stack::start(&config).await?;
    let events = sample_events()?;
    out(&format!(
        "publishing {} events to {TOPIC}, for {} subscriptions\n",
        events.len(),
        EXPECTED.len()
    ))?;
    publish(&stack, &events).await?;
    let ends = wait_for_ends(&mut log, events.len() * EXPECTED.len(), &letters);
    let ends = tokio::time::timeout(TIMEOUT, ends).await;
    let ends = ends.with_context(|| {
        format!("some deliveries did not finish within {} s", TIMEOUT.as_secs())
    })??;
    stack.stop().await?;
    endpoints.abort();
    // Write the port from the options, so that a later replay reaches the server on that port, such
    // as `lastmile subscriber`.
    write_subscriptions(&subscriptions, if arguments.port == 0 { port } else { arguments.port })?;
    let as_expected = print_ends(&ends, &storage)?;
    out(&format!(
        "\nsubscriptions: {}\ndead letters:  {}\n",
        subscriptions.display(),
        storage.join("dead-letters").display()
    ))?;
    Ok(if as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Serves the sample endpoints on this port. If the port is in use, uses a free one.
async fn listen(port: u16) -> anyhow::Result<Subscriber> {
    match Subscriber::listen(port).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let subscriber = Subscriber::listen(0).await?;
            let free = subscriber.port()?;
            note(format_args!(
                "another program listens on 127.0.0.1:{port}, for example `lastmile subscriber`; \
                 this demo uses 127.0.0.1:{free}"
            ));
            Ok(subscriber)
        }
        subscriber => subscriber
            .with_context(|| format!("the sample endpoints cannot listen on 127.0.0.1:{port}")),
    }
}

/// Writes the sample subscriptions, with endpoints on this port.
fn write_subscriptions(file: &Path, port: u16) -> anyhow::Result<()> {
    let text = SUBSCRIPTIONS.replace(&format!("127.0.0.1:{PORT}/"), &format!("127.0.0.1:{port}/"));
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", text::path(file)))
}

/// Removes the dead letters in the list file of earlier demos, and then the file. Keeps other dead
/// letters, such as those of `dev`.
fn remove_earlier(letters: &Path, storage: &Path) -> anyhow::Result<()> {
    let list = match std::fs::read_to_string(letters) {
        Ok(list) => list,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).context(format!("{} cannot be read", text::path(letters))),
    };
    let mut removed = 0_usize;
    for key in list.lines() {
        let inside = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)));
        if inside && std::fs::remove_file(storage.join(key)).is_ok() {
            removed += 1;
        }
    }
    std::fs::remove_file(letters)?;
    if removed > 0 {
        out(&format!("removed the {removed} dead letters of the previous demo\n"))?;
    }
    Ok(())
}

/// Creates the sample events: three orders as CloudEvents, and one blob event of Event Grid.
fn sample_events() -> anyhow::Result<Vec<String>> {
    let order = |number: u32, kind: &str| {
        let event = EventBuilderV10::new()
            .id(format!("order-{number}"))
            .source("https://shop.example.com/checkout")
            .ty(kind)
            .subject(format!("orders/{number}"))
            .data(
                "application/json",
                json!({ "orderId": number, "total": "19.90", "currency": "EUR" }),
            )
            .build()?;
        anyhow::Ok(serde_json::to_string(&event)?)
    };
    let mut events = Vec::new();
    for (number, kind) in [(1, "order.created"), (2, "order.created"), (3, "order.paid")] {
        events.push(order(number, kind)?);
    }
    events.push(EVENT_GRID_EVENT.trim().to_owned());
    Ok(events)
}

async fn publish(stack: &Stack, events: &[String]) -> anyhow::Result<()> {
    let (client, queue) = (stack.sqs(), stack.aws().queue_url("events"));
    for event in events {
        let send = client.send_message().queue_url(&queue).message_body(event);
        send.message_attributes(TOPIC_ATTRIBUTE, text_attribute(TOPIC)).send().await?;
    }
    Ok(())
}

/// A delivery of the demo, and how it ended.
#[derive(Debug, Default)]
struct Ended {
    event: String,
    subscription: String,
    attempts: String,
    end: String,
    blob: Option<String>,
}

impl Ended {
    fn note(&mut self, line: &Line, attempts: &str, end: &str) {
        line.field("event_id").clone_into(&mut self.event);
        line.field("subscription").clone_into(&mut self.subscription);
        line.field(attempts).clone_into(&mut self.attempts);
        end.clone_into(&mut self.end);
    }
}

/// Prints log lines until this many deliveries have ended and every dead letter is stored. Adds
/// each stored dead letter to the list file immediately. Therefore, the next demo can remove it
/// even if this demo is interrupted.
async fn wait_for_ends(
    log: &mut UnboundedReceiver<Line>,
    deliveries: usize,
    letters: &Path,
) -> anyhow::Result<Vec<Ended>> {
    let started_ms = Machine.now_ms();
    let list = std::fs::File::options().create(true).append(true).open(letters);
    let mut list = list.with_context(|| format!("{} cannot be written", text::path(letters)))?;
    let mut ends: BTreeMap<String, Ended> = BTreeMap::new();
    // Two functions log concurrently, so `deadletter.stored` may precede `delivery.ended`.
    while let Some(line) = log.recv().await {
        if let Some(text) = log_view::describe(&line) {
            let elapsed_ms = Machine.now_ms().saturating_sub(started_ms);
            let (seconds, hundredths) = (elapsed_ms / 1_000, elapsed_ms % 1_000 / 10);
            out(&format!("{seconds:>3}.{hundredths:02} s  {text}\n"))?;
        }
        let ended = ends.entry(line.field("delivery_id").to_owned());
        match line.name.as_str() {
            "delivery.delivered" => ended.or_default().note(&line, "attempt", "Delivered"),
            "delivery.ended" => ended.or_default().note(&line, "attempts", line.field("reason")),
            "deadletter.stored" => {
                let blob = format!("{}/{}", line.field("container"), line.field("key"));
                writeln!(list, "{blob}")?;
                ended.or_default().blob = Some(blob);
            }
            _ => continue,
        }
        let finished = |ended: &Ended| {
            ended.end == "Delivered" || (!ended.end.is_empty() && ended.blob.is_some())
        };
        if ends.values().filter(|ended| finished(ended)).count() == deliveries {
            break;
        }
    }
    let mut ends: Vec<Ended> = ends.into_values().collect();
    ends.sort_by(|a, b| (&a.subscription, &a.event).cmp(&(&b.subscription, &b.event)));
    Ok(ends)
}

/// Prints a table of the deliveries. Returns true if every delivery ended as expected.
fn print_ends(ends: &[Ended], storage: &Path) -> anyhow::Result<bool> {
    let mut table = text::table(&["subscription", "event", "attempts", "end", "as expected"]);
    let mut all_as_expected = true;
    for ended in ends {
        let expected = EXPECTED
            .iter()
            .any(|expected| *expected == (&ended.subscription, &ended.end, &ended.attempts));
        let stored = ended.blob.as_ref().is_none_or(|blob| storage.join(blob).is_file());
        let as_expected = expected && stored;
        all_as_expected &= as_expected;
        let mark = if as_expected { "yes" } else { "NO" };
        table.add_row([&ended.subscription, &ended.event, &ended.attempts, &ended.end, mark]);
    }
    out(&format!("\n{table}\n"))?;
    for blob in ends.iter().filter_map(|ended| ended.blob.as_ref()) {
        out(&format!("{}\n", storage.join(blob).display()))?;
    }
    Ok(all_as_expected)
}

/// The sample endpoints: `/good` accepts everything, `/flaky` accepts each event at its third
/// attempt, `/gone` responds 410, and `/dead` always fails.
#[derive(Debug, Default)]
struct Endpoints {
    flaky: Mutex<HashMap<String, u32>>,
}

impl Endpoints {
    fn answer(&self, received: &Received) -> (StatusCode, u64) {
        let status = match received.path.as_str() {
            "/good" => StatusCode::OK,
            "/flaky" if self.attempts(received) < 3 => StatusCode::SERVICE_UNAVAILABLE,
            "/flaky" => StatusCode::OK,
            "/gone" => StatusCode::GONE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, 0)
    }

    /// Counts an attempt for this event, and returns the number of its attempts so far.
    fn attempts(&self, received: &Received) -> u32 {
        let body = String::from_utf8_lossy(&received.body);
        // An Event Grid event is delivered as an array with one element.
        let event = body.trim_start_matches('[').trim_end_matches(']');
        let id = Members::parse(event)
            .ok()
            .and_then(|members| members.id().map(std::borrow::Cow::into_owned));
        let mut flaky = self.flaky.lock().unwrap_or_else(PoisonError::into_inner);
        let attempts = flaky.entry(id.unwrap_or_default()).or_default();
        *attempts += 1;
        *attempts
    }
}
