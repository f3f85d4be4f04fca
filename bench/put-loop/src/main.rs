//! The smallest function that stores dead letters: it only puts each record's body into a bucket,
//! with `lambda_runtime` and the S3 client. Its cost is the floor for deadletter.
//!
//! It runs on one thread, like `bench/floor`.

use aws_config::BehaviorVersion;
use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use futures::future::join_all;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let config = aws_sdk_s3::config::Builder::from(&config).force_path_style(true).build();
    let client = &Client::from_conf(config);
    let bucket = &std::env::var("BUCKET")?;
    lambda_runtime::run(service_fn(|invocation: LambdaEvent<SqsEvent>| async move {
        let puts = invocation.payload.records.into_iter().map(|record| put(client, bucket, record));
        let mut response = SqsBatchResponse::default();
        response.batch_item_failures = join_all(puts).await.into_iter().flatten().collect();
        Ok::<_, Error>(response)
    }))
    .await
}

/// Stores a record's body under a key with the message id. Returns the record's failure if the
/// request fails.
async fn put(client: &Client, bucket: &str, record: SqsMessage) -> Option<BatchItemFailure> {
    let id = record.message_id.unwrap_or_default();
    let body = ByteStream::from(record.body.unwrap_or_default().into_bytes());
    let put = client.put_object().bucket(bucket).key(format!("letters/{id}.json")).body(body);
    if put.send().await.is_ok() {
        return None;
    }
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = id;
    Some(failure)
}
