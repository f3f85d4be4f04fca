//! Measures the effect of a hostile namespace on a neighbour, for `bench/catalogues`.
//!
//! A batch has one event for each of nine hostile topics, and a last event for a neighbour's topic.
//! The neighbour's destination records when its event arrives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;

use crate::child::Function;
use crate::clock;
use crate::cloud::Cloud;
use crate::contenders::{self, Job};
use crate::events;
use crate::measure::{invoke, wait_until_ready};
use crate::server::Server;

/// The path of the neighbour's destination.
const NEIGHBOUR: &str = "/hook/204";
const MEBIBYTE: usize = 1_024 * 1_024;
const RUNS: usize = 5;

/// Measures the first batch of a new process, several times. Returns a sentence with the worst
/// results.
pub(crate) async fn measure(binaries: &Path) -> anyhow::Result<String> {
    let dispatch = &contenders::dispatch(binaries)?;
    let (mut arrived, mut ended, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let cloud = |subscriber| Cloud::with_objects(objects(&format!("http://{subscriber}")));
        let (server, mut invoker) = Server::start_of(0, cloud).await?;
        let function = Function::start(dispatch, &server)?;
        wait_until_ready(&mut invoker, dispatch).await?;
        let topics = hostile().into_keys().chain(["neighbour".to_owned()]);
        let batch = events::batch_of(Job::Deliver, topics);
        let started = clock::now();
        invoke(&mut invoker, &batch, dispatch).await?;
        ended.push(clock::now() - started);
        let arrival = server.arrival(NEIGHBOUR).context("the neighbour's event did not arrive")?;
        arrived.push(arrival - started);
        peaks.push(function.peak_bytes()?);
    }
    let worst = |all: &[Duration]| all.iter().max().copied().unwrap_or_default().as_millis();
    let mut text = String::from(
        "A new process gets one batch: an event for each of nine hostile topics, then an event for a neighbouring topic. The hostile topics are:  ",
    );
    let names: Vec<String> = hostile().into_keys().collect();
    write!(
        text,
        "{}. In the worst of {RUNS} runs the neighbour's event arrives after {} ms, the batch ends after {} ms, \
         and dispatch uses at most {} MiB of memory.",
        names.join(", "),
        worst(&arrived),
        worst(&ended),
        peaks.iter().max().copied().unwrap_or_default() / MEBIBYTE as u64,
    )?;
    Ok(text)
}

/// The objects of the deployment, with destinations at this address.
fn objects(subscriber: &str) -> BTreeMap<String, Bytes> {
    let good = format!("{subscriber}{NEIGHBOUR}");
    let neighbour = format!(
        r#"{{"v":1,"subscriptions":{{"s":{{"spec":{{"destination":{{"url":"{good}"}}}}}}}}}}"#
    );
    let hostile = hostile().into_iter().chain([("neighbour".to_owned(), neighbour)]);
    let object = |(name, text): (String, String)| {
        (format!("subscriptions/shop/{name}.json"), Bytes::from(text))
    };
    let settings = ("subscriptions/_settings.json".to_owned(), r#"{"v":1}"#.into());
    hostile.map(object).chain([settings]).collect()
}

/// Returns the text of each hostile topic's object, by the name of the topic.
fn hostile() -> BTreeMap<String, String> {
    // No program listens on port 9, so every connection attempt is refused immediately.
    let to = |path: &str, more: &str| {
        format!(r#"{{"spec":{{"destination":{{"url":"http://127.0.0.1:9/{path}"{more}}}}}"#)
    };
    let topic = |entries: &[String]| {
        let entries: Vec<String> = entries
            .iter()
            .enumerate()
            .map(|(number, text)| format!("\"s{number}\":{text}"))
            .collect();
        format!(r#"{{"v":1,"subscriptions":{{{}}}}}"#, entries.join(",\n"))
    };
    let filter = |filter: &str| to("", &format!(r#"}},"filter":{filter}"#));
    let conditions = |count: usize| {
        let all: Vec<String> =
            (0..count).map(|number| format!(r#"{{"exact":{{"type":"t{number}"}}}}"#)).collect();
        filter(&format!(r#"{{"any":[{}]}}"#, all.join(",")))
    };
    let deep = filter(&format!("{}{}", r#"{"not":"#.repeat(5_000), "}".repeat(5_000)));
    let header = to("", r#","headers":[{"name":"content-length","value":"5"}]}"#);
    let attempts = to("", r#"},"retry":{"maxAttempts":4000000000}"#);
    let padded = to(&"x".repeat(16 * MEBIBYTE / 10_000 - 80), "}");
    [
        ("largest", topic(&vec![padded.clone(); 10_000])),
        ("too-large", topic(&vec![padded; 10_700])),
        ("many-conditions", topic(&vec![conditions(99); 1_000])),
        ("too-many-conditions", topic(&vec![conditions(1_000); 600])),
        ("deep", topic(&vec![deep; 100])),
        ("headers", topic(&[header])),
        ("attempts", topic(&[attempts])),
        ("blank", String::new()),
        ("truncated", topic(&vec![conditions(10); 100])[..20_000].to_owned()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}
