//! One run: a fresh process, its start, its first invocation, a warm-up, and then as many
//! invocations as fit.
//!
//! CPU and requests are those of the measured time alone; memory is the most of the whole run.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;

use crate::child::Function;
use crate::clock;
use crate::cloud::Asked;
use crate::contenders::Contender;
use crate::events::{self, Topic};
use crate::runtime_api::{Invoker, runtime_api};
use crate::server::Server;

/// Long enough for a virtual machine of another language to compile what is hot.
const WARM_UP: Duration = Duration::from_millis(500);
/// Thousands of events of every contender but the slowest.
const MEASURED: Duration = Duration::from_millis(1_200);
/// No start and no invocation takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one run brought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// From starting the process to its first request for work.
    pub(crate) start: Duration,
    /// The first invocation, which reads the subscriptions and connects.
    pub(crate) first: Duration,
    /// Events in the measured time.
    pub(crate) events: u64,
    /// The measured time.
    pub(crate) elapsed: Duration,
    /// CPU used in it.
    pub(crate) cpu: Duration,
    /// Requests to SQS in it.
    pub(crate) sqs_requests: u64,
    /// Messages in them.
    pub(crate) sqs_messages: u64,
    /// The most memory resident.
    pub(crate) peak_bytes: u64,
}

/// What a run is fed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// What becomes of its events.
    pub(crate) topic: Topic,
    /// Records of an invocation.
    pub(crate) batch: usize,
    /// Whether it ends after the first invocation.
    pub(crate) once: bool,
}

/// Runs a contender.
pub(crate) async fn run(contender: &Contender, load: Load) -> anyhow::Result<Run> {
    let (runtime_api, mut invoker) = runtime_api();
    let server = Server::start(runtime_api, events::subscriptions).await?;
    let function = Function::start(contender, &server)?;
    let start = is_ready(&mut invoker, contender).await? - function.started;
    let event = events::batch(contender.job, load.topic, load.batch);
    let began = clock::now();
    invoke(&mut invoker, &event, contender).await?;
    let first = clock::now() - began;
    let (mut invocations, mut elapsed) = (1, first);
    let (mut cpu_before, mut asked_before) = (Duration::ZERO, Asked::default());
    if !load.once {
        invoke_for(WARM_UP, &mut invoker, &event, contender).await?;
        (cpu_before, asked_before) = (function.cpu()?, server.cloud.asked());
        (invocations, elapsed) = invoke_for(MEASURED, &mut invoker, &event, contender).await?;
    }
    let (cpu, asked) = (function.cpu()? - cpu_before, server.cloud.asked());
    Ok(Run {
        start,
        first,
        events: invocations * load.batch as u64,
        elapsed,
        cpu,
        sqs_requests: asked.requests - asked_before.requests,
        sqs_messages: asked.messages - asked_before.messages,
        peak_bytes: function.peak_bytes()?,
    })
}

/// Invokes until the time is over; says how often, and how long it took.
async fn invoke_for(
    least: Duration,
    invoker: &mut Invoker,
    event: &Bytes,
    contender: &Contender,
) -> anyhow::Result<(u64, Duration)> {
    let began: Instant = clock::now();
    let mut invocations = 0;
    while clock::now() - began < least {
        invoke(invoker, event, contender).await?;
        invocations += 1;
    }
    Ok((invocations, clock::now() - began))
}

/// Waits until a function asks for work for the first time; says when it did.
pub(crate) async fn is_ready(
    invoker: &mut Invoker,
    contender: &Contender,
) -> anyhow::Result<Instant> {
    let ready = tokio::time::timeout(PATIENCE, invoker.ready()).await;
    ready.with_context(|| format!("{} does not ask for work", contender.name))?
}

/// One invocation that gives nothing back.
pub(crate) async fn invoke(
    invoker: &mut Invoker,
    event: &Bytes,
    contender: &Contender,
) -> anyhow::Result<()> {
    let answer = tokio::time::timeout(PATIENCE, invoker.invoke(event.clone())).await;
    let answer = answer.with_context(|| format!("{} does not answer", contender.name))??;
    let answer: serde_json::Value = serde_json::from_slice(&answer)?;
    let given_back = answer["batchItemFailures"].as_array().map_or(0, Vec::len);
    ensure!(given_back == 0, "{} gave back {given_back} records: {answer}", contender.name);
    Ok(())
}
