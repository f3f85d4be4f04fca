//! The entry point of the ingress function. It only connects the ports; the library in this crate
//! implements the behaviour.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

use adapters::aws_ports::{AwsIngressPorts, aws_config};
use adapters::aws_time;
use adapters::runtime;
use adapters::settings::IngressSettings;
use adapters::telemetry;
use ingress::Ingress;
use ingress::invocation::Invocation;
use lambda_runtime::{Error, LambdaEvent, service_fn};

fn main() -> Result<(), Error> {
    telemetry::log_json();
    runtime::run(serve())?
}

async fn serve() -> Result<(), Error> {
    let settings = IngressSettings::read(|name| std::env::var(name).ok());
    let settings = settings.map_err(|error| format!("ingress cannot start: {error}"))?;
    let ports = AwsIngressPorts::new(&aws_config().await, &settings)?;
    let timeout_ms = settings.timeout_ms;
    let function = &Ingress::new(ports, settings.default_topic, settings.keys)
        .allowing(settings.allowed_origins);
    lambda_runtime::run(service_fn(|invocation: LambdaEvent<Invocation>| async move {
        aws_time::correct_clock(invocation.context.deadline, timeout_ms);
        Ok::<_, Error>(function.handle(&invocation.payload).await)
    }))
    .await
}
