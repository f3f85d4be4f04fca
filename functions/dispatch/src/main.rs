//! The entry point of the dispatch function. It only connects the ports; the library in this crate
//! implements the behaviour.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic
#![recursion_limit = "256"] // the futures of the AWS clients nest deeply

use adapters::aws_ports::{AwsPorts, aws_config};
use adapters::aws_time;
use adapters::records::{self, Batch, SourceQueues};
use adapters::settings::DispatchSettings;
use adapters::telemetry::{self, Telemetry};
use adapters::{runtime, stop};
use anyhow::Context as _;
use delivery::ports::{Clock as _, QueueName};
use dispatch::{Deadline, Dispatch};
use lambda_runtime::{Error, LambdaEvent, service_fn};

fn main() -> Result<(), Error> {
    telemetry::log_json();
    runtime::run(serve())?
}

async fn serve() -> Result<(), Error> {
    let started = start().await.map_err(|error| format!("dispatch cannot start: {error:#}"))?;
    let (dispatch, queues, timeout_ms) = &started;
    let stop = stop::announced().await;
    let serving = lambda_runtime::run(service_fn(|invocation: LambdaEvent<Batch>| async move {
        // Correct the clock first, because everything else reads it.
        aws_time::correct_clock(invocation.context.deadline, *timeout_ms);
        dispatch.telemetry().invocation_begins();
        let records = records::read(invocation.payload, queues)?;
        let deadline =
            Deadline::new(adapters::machine::Machine.now_ms(), invocation.context.deadline);
        let redeliver = dispatch.handle(&records, &deadline).await;
        dispatch.telemetry().invocation_ends();
        Ok::<_, Error>(records::answer(redeliver))
    }));
    let ended = tokio::select! {
        ended = serving => ended,
        () = stop => Ok(()),
    };
    dispatch.telemetry().process_ends();
    ended
}

async fn start() -> anyhow::Result<(Dispatch<AwsPorts>, SourceQueues, Option<u64>)> {
    let settings = DispatchSettings::read(|name| std::env::var(name).ok())?;
    let queues = SourceQueues::new(&settings.queues, QueueName::Events);
    let ports =
        AwsPorts::new(&aws_config().await, &settings).context("the HTTP client cannot be built")?;
    let dispatch = Dispatch::new(ports, settings.container, settings.default_topic);
    let dispatch = dispatch
        .with_max_concurrency(settings.max_concurrency)
        .with_targets(settings.aws_policy)
        .with_telemetry(
            Telemetry::new(settings.metrics).with_log_deliveries(settings.log_deliveries),
        );
    Ok((dispatch, queues, settings.timeout_ms))
}
