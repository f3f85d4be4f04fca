//! The deadletter function: wiring only. What it does is told in the library beside it.

use adapters::records;
use adapters::settings::DeadLetterSettings;
use adapters::shell::{StorageShell, aws_config};
use adapters::telemetry::{self, Telemetry};
use aws_lambda_events::event::sqs::SqsEvent;
use deadletter::DeadLetters;
use lambda_runtime::{Error, LambdaEvent, service_fn};

// One thread: a function below 1,769 MB has less than one CPU, and its work is waiting.
// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::log_json();
    let settings = DeadLetterSettings::read(|name| std::env::var(name).ok());
    let settings = settings.map_err(|error| format!("deadletter cannot start: {error}"))?;
    let shell = StorageShell::new(&aws_config().await, &settings);
    let letters = &DeadLetters::new(shell, settings.container).counting(Telemetry::new(settings.metrics));
    lambda_runtime::run(service_fn(|invocation: LambdaEvent<SqsEvent>| async move {
        let records = records::read(invocation.payload)?;
        let again = letters.handle(&records).await;
        telemetry::write(&letters.metrics());
        Ok::<_, Error>(records::answer(again))
    }))
    .await
}
