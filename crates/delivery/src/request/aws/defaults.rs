//! Derives required AWS parameters from the event, if the subscription does not state them.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::delivery::Delivery;
use crate::delivery::outcome::Unsendable;
use crate::subscription::aws::{AwsService, AwsTarget, seconds};
use crate::time::moment;

/// Maximum length of a message group id in SQS and SNS.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
const GROUP_MAX_BYTES: usize = 128;
/// Maximum length of a partition key in Kinesis.
/// <https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html>
const KEY_MAX_CHARS: usize = 256;
/// ASCII characters that are percent-encoded in a message group id. Non-ASCII characters are
/// encoded too.
const NO_GROUP: &AsciiSet = &CONTROLS.add(b' ');

/// Adds the required parameters that the subscription does not state.
///
/// # Errors
/// [`Unsendable::Impossible`] if the event lacks the attribute from which a required parameter is
/// derived.
pub(super) fn add(
    parameters: &mut Map<String, Json>,
    target: &AwsTarget,
    delivery: &Delivery,
    event: impl Fn() -> Result<Json, Unsendable>,
) -> Result<(), Unsendable> {
    let id = || Json::from(delivery.id.to_string());
    match target.arn.service() {
        AwsService::Sqs | AwsService::Sns if target.arn.is_fifo() => {
            // Every attempt has the same id, so the service drops a repeated event.
            parameters.entry("MessageDeduplicationId").or_insert_with(id);
            if !parameters.contains_key("MessageGroupId") {
                parameters
                    .insert("MessageGroupId".to_owned(), group(&key(&event()?, delivery)).into());
            }
        }
        AwsService::EventBridge => {
            let event = event()?;
            for (name, attribute) in [("DetailType", "type"), ("Source", "source")] {
                if parameters.contains_key(name) {
                    continue;
                }
                let stated = event[attribute].as_str().ok_or_else(|| {
                    let why = format!(
                        "the event has no {attribute}, which is the default of {name}: set \
                         destination.aws.parameters.{name}"
                    );
                    Unsendable::Impossible(why)
                })?;
                parameters.insert(name.to_owned(), stated.into());
            }
            if let Some(ms) = event["time"].as_str().and_then(moment::date_time) {
                parameters.entry("Time").or_insert_with(|| seconds(ms));
            }
        }
        AwsService::StepFunctions => {
            // Step Functions starts only one execution with the same name.
            parameters.entry("name").or_insert_with(id);
        }
        AwsService::Kinesis if !parameters.contains_key("PartitionKey") => {
            let key = key(&event()?, delivery);
            let is_short = key.chars().count() <= KEY_MAX_CHARS;
            let key = if is_short { key } else { digest(&key) };
            parameters.insert("PartitionKey".to_owned(), key.into());
        }
        AwsService::Sqs
        | AwsService::Sns
        | AwsService::Kinesis
        | AwsService::Lambda
        | AwsService::Firehose => {}
    }
    Ok(())
}

/// Returns the key by which related events keep their order: the subject of the event, otherwise
/// its id.
fn key(event: &Json, delivery: &Delivery) -> String {
    let named = ["subject", "id"].into_iter().filter_map(|name| event[name].as_str());
    let mut named = named.filter(|text| !text.is_empty());
    named.next().map_or_else(|| delivery.id.to_string(), ToOwned::to_owned)
}

/// Converts a key to a message group id: percent-encoded, or a digest if that is too long.
fn group(key: &str) -> String {
    let encoded = utf8_percent_encode(key, NO_GROUP).to_string();
    if encoded.len() <= GROUP_MAX_BYTES { encoded } else { digest(&encoded) }
}

/// Returns the digest of a text, in the form of a UUID.
fn digest(text: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}
