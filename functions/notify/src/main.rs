//! The entry point of the notify function. It only connects the ports; the library in this crate
//! implements the behaviour.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

use adapters::aws_ports::{aws_config, s3_client};
use adapters::storage::Storage;
use adapters::{runtime, telemetry};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use notify::settings::NotifySettings;
use notify::{AwsPorts, Notify};
use serde::de::IgnoredAny;

fn main() -> Result<(), Error> {
    telemetry::log_json();
    runtime::run(serve())?
}

async fn serve() -> Result<(), Error> {
    let settings = NotifySettings::read(|name| std::env::var(name).ok());
    let settings = settings.map_err(|error| format!("notify cannot start: {error}"))?;
    let config = aws_config().await;
    let client = s3_client(&config);
    let storage = Storage::bucket(client, settings.container.bucket.clone());
    let ports = AwsPorts::new(&config, &settings);
    let function = &Notify::new(ports, storage, settings.container);
    // The payload is ignored, because the reports wait in the queue.
    lambda_runtime::run(service_fn(|_: LambdaEvent<IgnoredAny>| async move {
        function.notify().await.map_err(Error::from)
    }))
    .await
}
