//! The entry point of the deadletter function. It only connects the ports; the library in this
//! crate implements the behaviour.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

use adapters::aws_ports::{AwsStoragePorts, aws_config};
use adapters::aws_time;
use adapters::records::{self, Batch, SourceQueues};
use adapters::runtime;
use adapters::settings::DeadLetterSettings;
use adapters::telemetry::{self, Telemetry};
use deadletter::DeadLetters;
use delivery::ports::QueueName;
use lambda_runtime::{Error, LambdaEvent, service_fn};

fn main() -> Result<(), Error> {
    telemetry::log_json();
    runtime::run(serve())?
}

async fn serve() -> Result<(), Error> {
    let settings = DeadLetterSettings::read(|name| std::env::var(name).ok());
    let settings = settings.map_err(|error| format!("deadletter cannot start: {error}"))?;
    let queues = &SourceQueues::new(&settings.queues, QueueName::Events);
    let ports = AwsStoragePorts::new(&aws_config().await, &settings);
    let function = &DeadLetters::new(ports, settings.container)
        .with_telemetry(Telemetry::new(settings.metrics));
    let timeout_ms = settings.timeout_ms;
    lambda_runtime::run(service_fn(|invocation: LambdaEvent<Batch>| async move {
        aws_time::correct_clock(invocation.context.deadline, timeout_ms);
        let records = records::read(invocation.payload, queues)?;
        let redeliver = function.handle(&records).await;
        // All counts of this function are urgent, so none waits for a later invocation.
        function.telemetry().invocation_ends();
        Ok::<_, Error>(records::answer(redeliver))
    }))
    .await
}
