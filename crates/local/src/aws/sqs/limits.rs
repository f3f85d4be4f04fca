//! The limits of real queues, checked on every request.
//!
//! Separate from the operations so that the limits can be compared with the page that sets them:
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-quotas.html>.
//!
//! Promises: AWS accepts every request that is accepted here. Does not limit throughput or the
//! number of messages.

use delivery::event::is_queue_character;
use rustack_sqs_model::error::{SqsError, SqsErrorCode};
use rustack_sqs_model::input::{ReceiveMessageInput, SendMessageInput};

/// Maximum size of a message with its attributes, and of a batch.
pub(super) const MESSAGE_LIMIT_BYTES: usize = 1_048_576;

/// Maximum number of attributes of a message.
const ATTRIBUTES_LIMIT: usize = 10;

/// Maximum number of entries in a batch.
const BATCH_LIMIT: usize = 10;

/// Maximum delay of a message.
const DELAY_LIMIT_SECONDS: i32 = 900;

/// Maximum visibility timeout of a message.
const VISIBILITY_LIMIT_SECONDS: i32 = 43_200;

/// Maximum wait of a receive.
const WAIT_LIMIT_SECONDS: i32 = 20;

/// Checks a message against all limits, before it is sent.
pub(super) fn check_send(input: &SendMessageInput) -> Result<(), SqsError> {
    within("DelaySeconds", input.delay_seconds, 0, DELAY_LIMIT_SECONDS)?;
    if input.message_attributes.len() > ATTRIBUTES_LIMIT {
        return Err(SqsError::invalid_parameter_value(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [{ATTRIBUTES_LIMIT}].",
            input.message_attributes.len()
        )));
    }
    if input.message_body.is_empty() {
        return Err(SqsError::missing_parameter(
            "The request must contain the parameter MessageBody.",
        ));
    }
    if message_bytes(input) > MESSAGE_LIMIT_BYTES {
        return Err(SqsError::invalid_parameter_value(format!(
            "One or more parameters are invalid. Reason: Message must be shorter than {MESSAGE_LIMIT_BYTES} bytes."
        )));
    }
    match input.message_body.chars().find(|character| !is_queue_character(*character)) {
        Some(character) => Err(SqsError::invalid_parameter_value(format!(
            "Invalid characters found. Reason: U+{:04X} is not allowed in a message.",
            u32::from(character)
        ))),
        None => Ok(()),
    }
}

/// Checks the limits that apply to a whole batch. Each message is checked against its own limits
/// when it is sent.
pub(super) fn check_batch(ids: &[&str], messages: &[SendMessageInput]) -> Result<(), SqsError> {
    check_ids(ids)?;
    if messages.iter().map(message_bytes).sum::<usize>() > MESSAGE_LIMIT_BYTES {
        return Err(SqsError::new(
            SqsErrorCode::BatchRequestTooLong,
            format!("Batch requests cannot be longer than {MESSAGE_LIMIT_BYTES} bytes."),
        ));
    }
    Ok(())
}

/// Checks that a batch has 1 to 10 entries with distinct ids.
pub(super) fn check_ids(ids: &[&str]) -> Result<(), SqsError> {
    if ids.is_empty() {
        return Err(SqsError::empty_batch_request());
    }
    if ids.len() > BATCH_LIMIT {
        return Err(SqsError::too_many_entries_in_batch());
    }
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    if distinct.len() < ids.len() {
        return Err(SqsError::batch_entry_ids_not_distinct());
    }
    Ok(())
}

/// Checks the numbers in a receive request.
pub(super) fn check_receive(input: &ReceiveMessageInput) -> Result<(), SqsError> {
    within("MaxNumberOfMessages", input.max_number_of_messages, 1, 10)?;
    within("WaitTimeSeconds", input.wait_time_seconds, 0, WAIT_LIMIT_SECONDS)?;
    within("VisibilityTimeout", input.visibility_timeout, 0, VISIBILITY_LIMIT_SECONDS)
}

/// Checks that a visibility timeout is within the limits.
pub(super) fn check_visibility(seconds: i32) -> Result<(), SqsError> {
    within("VisibilityTimeout", Some(seconds), 0, VISIBILITY_LIMIT_SECONDS)
}

/// Returns the size of a message as AWS counts it: the body, and name, type and value of each
/// attribute.
fn message_bytes(input: &SendMessageInput) -> usize {
    let attribute_bytes = input.message_attributes.iter().map(|(name, value)| {
        let text = value.string_value.as_ref().map_or(0, String::len);
        let binary = value.binary_value.as_ref().map_or(0, Vec::len);
        name.len() + value.data_type.len() + text + binary
    });
    input.message_body.len() + attribute_bytes.sum::<usize>()
}

fn within(name: &str, value: Option<i32>, low: i32, high: i32) -> Result<(), SqsError> {
    match value {
        Some(value) if !(low..=high).contains(&value) => {
            Err(SqsError::invalid_parameter_value(format!(
                "Value {value} for parameter {name} is invalid. Reason: Must be >= {low} and <= {high}, if provided."
            )))
        }
        Some(_) | None => Ok(()),
    }
}
