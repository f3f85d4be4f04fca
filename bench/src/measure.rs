//! One run: a fresh process, its start, its first invocation, a warm-up, and then as many
//! invocations as fit into the measured time.
//!
//! CPU and requests count in the measured time only; memory is the peak of the whole run.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;

use crate::child::Function;
use crate::clock;
use crate::cloud::SqsUsage;
use crate::contenders::Contender;
use crate::events::{self, Topic};
use crate::runtime_api::Invoker;
use crate::server::Server;

/// Long enough for a JIT compiler to compile the hot code.
const WARM_UP: Duration = Duration::from_millis(500);
/// Long enough for thousands of events of every contender but the slowest.
const MEASURED: Duration = Duration::from_millis(1_200);
/// Timeout of a start, and of each invocation.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The result of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The time from starting the process to its first request for an invocation.
    pub(crate) start: Duration,
    /// Duration of the first invocation, in which the function reads the subscriptions and
    /// connects.
    pub(crate) first: Duration,
    /// Events in the measured time.
    pub(crate) events: u64,
    /// The measured time: the total duration of the invocations after the warm-up.
    pub(crate) elapsed: Duration,
    /// The CPU time in the measured time.
    pub(crate) cpu: Duration,
    /// The requests to SQS in the measured time.
    pub(crate) sqs: SqsUsage,
    /// The requests to S3 in the measured time.
    pub(crate) storage_requests: u64,
    /// The peak of resident memory.
    pub(crate) peak_bytes: u64,
}

/// The input of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    /// The topic of the events. It decides the response of the destination.
    pub(crate) topic: Topic,
    /// Records per invocation.
    pub(crate) batch: usize,
    /// True if the run ends after its first invocation.
    pub(crate) single: bool,
}

pub(crate) async fn run(contender: &Contender, workload: Workload) -> anyhow::Result<Run> {
    let (server, mut invoker) = Server::start().await?;
    let function = Function::start(contender, &server)?;
    let start = wait_until_ready(&mut invoker, contender).await? - function.started;
    let event = events::batch(contender.job, workload.topic, workload.batch);
    let started = clock::now();
    invoke(&mut invoker, &event, contender).await?;
    let first = clock::now() - started;
    let (mut invocations, mut elapsed) = (1, first);
    let (mut cpu_before, mut sqs_before) = (Duration::ZERO, SqsUsage::default());
    let mut storage_before = 0;
    if !workload.single {
        invoke_for(WARM_UP, &mut invoker, &event, contender).await?;
        (cpu_before, sqs_before) = (function.cpu()?, server.cloud.sqs_usage());
        storage_before = server.cloud.storage_requests();
        (invocations, elapsed) = invoke_for(MEASURED, &mut invoker, &event, contender).await?;
    }
    let (cpu, sqs_usage) = (function.cpu()? - cpu_before, server.cloud.sqs_usage());
    Ok(Run {
        start,
        first,
        events: invocations * workload.batch as u64,
        elapsed,
        cpu,
        sqs: SqsUsage {
            requests: sqs_usage.requests - sqs_before.requests,
            messages: sqs_usage.messages - sqs_before.messages,
        },
        storage_requests: server.cloud.storage_requests() - storage_before,
        peak_bytes: function.peak_bytes()?,
    })
}

/// Invokes the function for at least this long. Returns the number of invocations and their total
/// duration.
pub(crate) async fn invoke_for(
    least: Duration,
    invoker: &mut Invoker,
    event: &Bytes,
    contender: &Contender,
) -> anyhow::Result<(u64, Duration)> {
    let started: Instant = clock::now();
    let mut invocations = 0;
    while clock::now() - started < least {
        invoke(invoker, event, contender).await?;
        invocations += 1;
    }
    Ok((invocations, clock::now() - started))
}

/// Waits for a function's first request for an invocation and returns its time.
pub(crate) async fn wait_until_ready(
    invoker: &mut Invoker,
    contender: &Contender,
) -> anyhow::Result<Instant> {
    let ready = tokio::time::timeout(TIMEOUT, invoker.ready()).await;
    ready.with_context(|| format!("{} did not request an invocation", contender.name))?
}

/// Invokes the function and checks that no record failed.
pub(crate) async fn invoke(
    invoker: &mut Invoker,
    event: &Bytes,
    contender: &Contender,
) -> anyhow::Result<()> {
    let response = tokio::time::timeout(TIMEOUT, invoker.invoke(event.clone())).await;
    let response = response.with_context(|| format!("{} did not respond", contender.name))??;
    let response: serde_json::Value = serde_json::from_slice(&response)?;
    let failed = response["batchItemFailures"].as_array().map_or(0, Vec::len);
    // A contender that fails its records would seem faster than it is.
    ensure!(failed == 0, "{} reported {failed} failed records: {response}", contender.name);
    Ok(())
}
