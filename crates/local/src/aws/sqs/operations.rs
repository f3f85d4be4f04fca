//! The operations of SQS that the layer changes; the others are passed to the engine unchanged.
//!
//! Separate from the queues so that each operation is a sequence of check, wrap, call and unwrap.
//!
//! Promises: the responses of AWS, including the failures of single batch entries. Holds no state.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::{
    ChangeMessageVisibilityBatchInput, ChangeMessageVisibilityInput, CreateQueueInput,
    GetQueueAttributesInput, ReceiveMessageInput, SendMessageBatchInput, SendMessageInput,
};
use rustack_sqs_model::output::{
    ChangeMessageVisibilityBatchOutput, ChangeMessageVisibilityOutput, CreateQueueOutput,
    GetQueueAttributesOutput, ReceiveMessageOutput, SendMessageBatchOutput, SendMessageOutput,
};
use rustack_sqs_model::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchResultEntry, SendMessageBatchRequestEntry,
    SendMessageBatchResultEntry,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Engine, RELEASABLE, ResponseFuture, envelope, json_response, limits};

/// Queue attribute with the maximum size of a message. It is not passed to the engine, which stores
/// only placeholder bodies.
const MAXIMUM_MESSAGE_SIZE: &str = "MaximumMessageSize";

/// Parses a request, runs the operation, and serializes its output.
pub(super) fn handle<I, O, F>(
    engine: Arc<Engine>,
    body: Bytes,
    work: impl FnOnce(Arc<Engine>, I) -> F,
) -> ResponseFuture
where
    I: DeserializeOwned,
    O: Serialize,
    F: Future<Output = Result<O, SqsError>> + Send + 'static,
{
    match serde_json::from_slice(&body) {
        Ok(input) => {
            let working = work(engine, input);
            Box::pin(async move { response(&working.await?) })
        }
        Err(error) => {
            let refused =
                SqsError::invalid_parameter_value(format!("The request cannot be read: {error}"));
            Box::pin(std::future::ready(Err(refused)))
        }
    }
}

/// Executes `CreateQueue`, for standard queues only.
pub(super) async fn create(
    engine: Arc<Engine>,
    mut input: CreateQueueInput,
) -> Result<CreateQueueOutput, SqsError> {
    if input.queue_name.ends_with(".fifo") {
        return Err(SqsError::invalid_parameter_value(
            "The local SQS supports only standard queues, not FIFO queues.",
        ));
    }
    input.attributes.remove(MAXIMUM_MESSAGE_SIZE);
    engine.provider.create_queue(input).await
}

/// Executes `GetQueueAttributes`, and replaces the engine's maximum message size with that of SQS.
pub(super) async fn attributes(
    engine: Arc<Engine>,
    input: GetQueueAttributesInput,
) -> Result<GetQueueAttributesOutput, SqsError> {
    let mut output = engine.provider.get_queue_attributes(input).await?;
    if let Some(size) = output.attributes.get_mut(MAXIMUM_MESSAGE_SIZE) {
        *size = limits::MESSAGE_LIMIT_BYTES.to_string();
    }
    Ok(output)
}

/// Executes `SendMessage` for one message.
pub(super) async fn send(
    engine: Arc<Engine>,
    input: SendMessageInput,
) -> Result<SendMessageOutput, SqsError> {
    limits::check_send(&input)?;
    let (sealed, checksums) = envelope::seal(input).map_err(|error| json_error(&error))?;
    let (queue_url, delay_seconds) = (sealed.queue_url.clone(), sealed.delay_seconds);
    let delay_seconds = delay_seconds.unwrap_or_default();
    let is_kept = delay_seconds > 0 && queue_url.ends_with(&format!("/{RELEASABLE}"));
    let copy = is_kept.then(|| sealed.clone());
    let output = engine.provider.send_message(sealed).await?;
    if let (Some(copy), Some(id)) = (copy, output.message_id.clone()) {
        let delay = Duration::from_secs(u64::from(delay_seconds.unsigned_abs()));
        engine.delayed.keep(id, copy, delay);
    }
    engine.arrivals.announce(&queue_url, delay_seconds);
    Ok(SendMessageOutput {
        md5_of_message_body: Some(checksums.body),
        md5_of_message_attributes: checksums.attributes,
        ..output
    })
}

/// Executes `SendMessageBatch`. Each entry succeeds or fails on its own.
pub(super) async fn send_batch(
    engine: Arc<Engine>,
    input: SendMessageBatchInput,
) -> Result<SendMessageBatchOutput, SqsError> {
    let queue_url = input.queue_url;
    let (ids, messages): (Vec<String>, Vec<SendMessageInput>) =
        input.entries.into_iter().map(|entry| single(&queue_url, entry)).unzip();
    limits::check_batch(&ids.iter().map(String::as_str).collect::<Vec<_>>(), &messages)?;
    let mut output = SendMessageBatchOutput::default();
    for (id, message) in ids.into_iter().zip(messages) {
        match send(Arc::clone(&engine), message).await {
            Ok(sent) => output.successful.push(SendMessageBatchResultEntry {
                id,
                message_id: sent.message_id.unwrap_or_default(),
                md5_of_message_body: sent.md5_of_message_body.unwrap_or_default(),
                md5_of_message_attributes: sent.md5_of_message_attributes,
                sequence_number: None,
            }),
            Err(error) => output.failed.push(failed(id, error)),
        }
    }
    Ok(output)
}

/// Executes `ReceiveMessage`, and removes the envelope of each message.
pub(super) async fn receive(
    engine: Arc<Engine>,
    mut input: ReceiveMessageInput,
) -> Result<ReceiveMessageOutput, SqsError> {
    limits::check_receive(&input)?;
    let requested = envelope::request_envelope(&mut input);
    let received = engine.arrivals.receive(&engine.provider, input).await?.messages;
    let opened = received.into_iter().map(|message| envelope::open(message, &requested));
    let messages = opened.collect::<Result<_, _>>().map_err(|error| json_error(&error))?;
    Ok(ReceiveMessageOutput { messages })
}

/// Executes `ChangeMessageVisibility`. Wakes the waiting receives when the message becomes visible.
pub(super) async fn change_visibility(
    engine: Arc<Engine>,
    input: ChangeMessageVisibilityInput,
) -> Result<ChangeMessageVisibilityOutput, SqsError> {
    limits::check_visibility(input.visibility_timeout)?;
    let (queue_url, timeout_seconds) = (input.queue_url.clone(), input.visibility_timeout);
    let output = engine.provider.change_message_visibility(input).await?;
    engine.arrivals.announce(&queue_url, timeout_seconds);
    Ok(output)
}

/// Executes `ChangeMessageVisibilityBatch`. Each entry succeeds or fails on its own.
pub(super) async fn change_visibility_batch(
    engine: Arc<Engine>,
    input: ChangeMessageVisibilityBatchInput,
) -> Result<ChangeMessageVisibilityBatchOutput, SqsError> {
    limits::check_ids(&input.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>())?;
    let mut output = ChangeMessageVisibilityBatchOutput::default();
    for entry in input.entries {
        let change = ChangeMessageVisibilityInput {
            queue_url: input.queue_url.clone(),
            receipt_handle: entry.receipt_handle,
            visibility_timeout: entry.visibility_timeout,
        };
        match change_visibility(Arc::clone(&engine), change).await {
            Ok(_) => {
                output.successful.push(ChangeMessageVisibilityBatchResultEntry { id: entry.id });
            }
            Err(error) => output.failed.push(failed(entry.id, error)),
        }
    }
    Ok(output)
}

/// Converts a batch entry to its id and a request for a single message.
fn single(queue_url: &str, entry: SendMessageBatchRequestEntry) -> (String, SendMessageInput) {
    let input = SendMessageInput {
        queue_url: queue_url.to_owned(),
        message_body: entry.message_body,
        delay_seconds: entry.delay_seconds,
        message_deduplication_id: entry.message_deduplication_id,
        message_group_id: entry.message_group_id,
        message_attributes: entry.message_attributes,
        message_system_attributes: entry.message_system_attributes,
    };
    (entry.id, input)
}

fn failed(id: String, error: SqsError) -> BatchResultErrorEntry {
    BatchResultErrorEntry {
        id,
        sender_fault: error.code.is_sender_fault(),
        code: error.code.error_type().to_owned(),
        message: Some(error.message),
    }
}

fn response<O: Serialize>(output: &O) -> Result<Response<SqsResponseBody>, SqsError> {
    let json = serde_json::to_vec(output).map_err(|error| json_error(&error))?;
    Ok(json_response(json))
}

fn json_error(error: &serde_json::Error) -> SqsError {
    SqsError::internal_error(format!(
        "a message or a response cannot be converted from or to JSON: {error}"
    ))
}
