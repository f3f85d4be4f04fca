//! The smallest function that delivers events: it only posts each record's body, with
//! `lambda_runtime` and `reqwest`. Its cost is the floor for dispatch.
//!
//! It has no retries, topics, log or limits. It runs on one thread, which is all that a function
//! with less than one CPU can use. With `FLOOR_THREADS=many` it runs on the multi-thread runtime
//! that cargo-lambda's template starts.

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use futures::future::join_all;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use tokio::runtime::Builder;

fn main() -> Result<(), Error> {
    let many = std::env::var("FLOOR_THREADS").is_ok_and(|threads| threads == "many");
    let mut builder =
        if many { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<(), Error> {
    let target = &std::env::var("TARGET_URL")?;
    // The target is in clear: reading certificates would only make its start later.
    let client = &reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
    lambda_runtime::run(service_fn(|invocation: LambdaEvent<SqsEvent>| async move {
        let posts =
            invocation.payload.records.into_iter().map(|record| post(client, target, record));
        let mut response = SqsBatchResponse::default();
        response.batch_item_failures = join_all(posts).await.into_iter().flatten().collect();
        Ok::<_, Error>(response)
    }))
    .await
}

/// Posts a record's body. Returns the record's failure if the request fails, or the response is an
/// error or incomplete.
async fn post(
    client: &reqwest::Client,
    target: &str,
    record: SqsMessage,
) -> Option<BatchItemFailure> {
    let request = client.post(target).header("content-type", "application/cloudevents+json");
    let sent = request.body(record.body.unwrap_or_default()).send().await;
    let read = match sent.and_then(reqwest::Response::error_for_status) {
        Ok(response) => response.bytes().await.is_ok(),
        Err(_) => false,
    };
    if read {
        return None;
    }
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = record.message_id.unwrap_or_default();
    Some(failure)
}
