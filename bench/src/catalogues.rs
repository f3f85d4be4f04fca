//! Measures the cost of many subscriptions, for `bench/catalogues`.
//!
//! `lastmile apply` applies the files of each case to a local folder. The bench copies the folder
//! into its fake S3, from which dispatch reads. Each run adds one subscription, starts dispatch
//! anew, and measures:
//!
//! - the start of dispatch and its first delivery;
//! - batches of ten events for one topic;
//! - events for up to a thousand topics in turn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;

use crate::child::Function;
use crate::clock;
use crate::cloud::Cloud;
use crate::contenders::{self, Contender, Job};
use crate::events;
use crate::hostile;
use crate::measure::{invoke, invoke_for, wait_until_ready};
use crate::server::Server;

/// Subscriptions per file.
const OF_A_FILE: usize = 10_000;
/// Maximum number of topics that receive events in turn at the end of a run.
const TOPICS: usize = 1_000;
const RECORDS: usize = 10;
/// Measured rounds of [`TOPICS`] events.
const ROUNDS: usize = 5;
const RUNS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_millis(2_000);

/// The number of topics, and of subscriptions per topic. One subscription of each topic matches the
/// events.
struct Case {
    topics: usize,
    of_each: usize,
}

const CASES: [Case; 4] = [
    Case { topics: 1, of_each: 1 },
    // Leaves room for the subscription that each run adds: a topic may have at most 10,000.
    Case { topics: 1, of_each: 9_990 },
    Case { topics: 10_000, of_each: 10 },
    Case { topics: 100_000, of_each: 10 },
];

/// The result of one run of dispatch.
struct Run {
    start: Duration,
    first: Duration,
    /// CPU time per event if all events have the same topic.
    event: Duration,
    /// CPU time per event if the events alternate between topics that dispatch has already read.
    in_turn: Duration,
    peak_bytes: u64,
}

/// Measures all cases below `folder`. Returns their table, and the results for hostile topics.
pub(crate) async fn measure(binaries: &Path, folder: &Path) -> anyhow::Result<String> {
    let port = Server::start_of(0, |_| Cloud::default()).await?.0.subscriber.port();
    let mut table = String::from(
        "| topics | subscriptions per topic | apply | on disk | one change | written by one change | start | first delivery | \
         CPU of an event | in turn | peak memory |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for Case { topics, of_each } in CASES {
        let here = folder.join(format!("{topics}x{of_each}"));
        let applied = apply(&Case { topics, of_each }, binaries, &here, port)?;
        let on_disk = bytes_below(&here.join("subscriptions"))? >> 20;
        let mut runs = Vec::new();
        let (mut changes, mut written) = (Vec::new(), 0);
        for number in 0..RUNS {
            let (took, bytes) = change(number, topics / 2, binaries, &here, port)?;
            changes.push(took.as_secs_f64() * 1e3);
            written = written.max(bytes);
            runs.push(
                run(&contenders::dispatch(binaries)?, topics.min(TOPICS), port, &here).await?,
            );
        }
        let ms =
            |duration: fn(&Run) -> Duration| median(&runs, |run| duration(run).as_secs_f64() * 1e3);
        writeln!(
            table,
            "| {topics} | {of_each} | {:.1} s | {on_disk} MiB | {:.0} ms | {} KiB | {:.1} ms | {:.1} ms | {:.0} µs | {:.0} µs | {:.0} MiB |",
            applied.as_secs_f64(),
            middle(changes),
            written >> 10,
            ms(|run| run.start),
            ms(|run| run.first),
            ms(|run| run.event) * 1e3,
            ms(|run| run.in_turn) * 1e3,
            median(&runs, |run| run.peak_bytes as f64 / f64::from(1 << 20)),
        )?;
        eprintln!("{table}");
    }
    Ok(format!("{table}\n{}\n", hostile::measure(binaries).await?))
}

/// Writes the files of a case and applies them. Returns the duration of `lastmile apply`.
fn apply(case: &Case, binaries: &Path, here: &Path, port: u16) -> anyhow::Result<Duration> {
    let files = here.join("files");
    std::fs::create_dir_all(&files)?;
    let url = format!("http://127.0.0.1:{port}/hook/204");
    let document = |number: usize| {
        let (topic, number) = (number / case.of_each, number % case.of_each);
        let kind = if number == 0 { "created".to_owned() } else { format!("other{number}") };
        let filter = format!(", filter: {{exact: {{type: order.{kind}}}}}");
        events::document(&topic_name(topic), &format!("s{number}"), &url, "{}", &filter)
    };
    let all: Vec<usize> = (0..case.topics * case.of_each).collect();
    for (number, chunk) in all.chunks(OF_A_FILE).enumerate() {
        let documents: Vec<String> = chunk.iter().copied().map(document).collect();
        std::fs::write(files.join(format!("{number:05}.yaml")), documents.join("---\n"))?;
    }
    let to = format!("file://{}/subscriptions/", here.display());
    let started = clock::now();
    let applied = Command::new(binaries.join("lastmile"))
        .args(["apply", "--yes", "--to", &to, "-f"])
        .arg(&files)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(applied.success(), "the files of {} cannot be applied", here.display());
    Ok(clock::now() - started)
}

/// Adds one subscription to a topic. Its filter matches no event. Returns the duration of
/// `lastmile apply`, and the new size of the topic's object in bytes.
fn change(
    number: usize,
    topic: usize,
    binaries: &Path,
    here: &Path,
    port: u16,
) -> anyhow::Result<(Duration, u64)> {
    let file = here.join("change.yaml");
    let url = format!("http://127.0.0.1:{port}/hook/204");
    let filter = ", filter: {exact: {type: order.never}}";
    let name = format!("changed{number}");
    std::fs::write(&file, events::document(&topic_name(topic), &name, &url, "{}", filter))?;
    let to = format!("file://{}/subscriptions/", here.display());
    let started = clock::now();
    let changed = Command::new(binaries.join("lastmile"))
        .args(["apply", "--yes", "--to", &to, "-f"])
        .arg(&file)
        .stdout(Stdio::null())
        .status()?;
    ensure!(changed.success(), "{} cannot be applied", file.display());
    let took = clock::now() - started;
    let object = here.join(format!("subscriptions/shop/{}.json", topic_name(topic)));
    Ok((took, object.metadata()?.len()))
}

fn topic_name(number: usize) -> String {
    format!("topic{number}")
}

/// Returns the files that `apply` wrote, by the keys under which the fake S3 serves them.
fn objects(here: &Path) -> anyhow::Result<BTreeMap<String, Bytes>> {
    let mut objects = BTreeMap::new();
    let folder = here.join("subscriptions");
    for path in [folder.clone(), folder.join("shop")] {
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            let key = path.strip_prefix(here)?.to_str().context("a key is text")?;
            if path.is_file() {
                objects.insert(key.to_owned(), std::fs::read(&path)?.into());
            }
        }
    }
    Ok(objects)
}

async fn run(dispatch: &Contender, topics: usize, port: u16, here: &Path) -> anyhow::Result<Run> {
    let objects = objects(here)?;
    let (server, mut invoker) = Server::start_of(port, |_| Cloud::with_objects(objects)).await?;
    let function = Function::start(dispatch, &server)?;
    let start = wait_until_ready(&mut invoker, dispatch).await? - function.started;
    let single_event = events::batch_of(Job::Deliver, std::iter::once(topic_name(0)));
    let started = clock::now();
    invoke(&mut invoker, &single_event, dispatch).await?;
    let first = clock::now() - started;
    let ten = events::batch_of(Job::Deliver, (0..RECORDS).map(|_| topic_name(0)));
    invoke_for(WARM_UP, &mut invoker, &ten, dispatch).await?;
    let before = function.cpu()?;
    let (invocations, _) = invoke_for(MEASURED, &mut invoker, &ten, dispatch).await?;
    let events = u32::try_from(invocations)? * u32::try_from(RECORDS)?;
    let event = (function.cpu()? - before) / events;
    // The first round reads the topics and is not measured.
    let (mut before, mut events) = (function.cpu()?, 0);
    for round in 0..=ROUNDS {
        for first in (0..TOPICS).step_by(RECORDS) {
            let names = (first..first + RECORDS).map(|number| topic_name(number % topics));
            invoke(&mut invoker, &events::batch_of(Job::Deliver, names), dispatch).await?;
            events += u32::try_from(RECORDS)?;
        }
        if round == 0 {
            (before, events) = (function.cpu()?, 0);
        }
    }
    let in_turn = (function.cpu()? - before) / events;
    Ok(Run { start, first, event, in_turn, peak_bytes: function.peak_bytes()? })
}

fn median(runs: &[Run], number: impl Fn(&Run) -> f64) -> f64 {
    middle(runs.iter().map(number).collect())
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
