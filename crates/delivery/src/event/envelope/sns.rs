//! Messages of Amazon SNS, as a queue that subscribes without raw delivery gets them.
//!
//! The adapter reads the headers that an HTTP subscriber gets; a queue gets the same values in the
//! body, and the ARN of its subscription only inside `UnsubscribeURL`. A message that is itself a
//! CloudEvent is that event: then SNS only carried it.
//! <https://github.com/cloudevents/spec/blob/main/cloudevents/adapters/aws-sns.md>,
//! <https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html>

use percent_encoding::percent_decode_str;

use super::{Made, cloud_event, needed, quoted, said};
use crate::event::envelope::Publisher;
use crate::event::{Members, is_cloud_event};

/// What SNS sends, by its `Type`.
const TYPES: [&str; 3] = ["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"];

pub(super) fn publisher(members: &Members<'_>) -> Option<Publisher> {
    let kind = members.text("Type")?;
    said(members, "MessageId").filter(|_| TYPES.contains(&kind.as_ref()))?;
    members
        .text("TopicArn")
        .filter(|arn| arn.starts_with("arn:"))
        .map(|arn| Publisher::SnsTopic(arn.into_owned()))
}

pub(super) fn events(text: &str, members: &Members<'_>) -> Result<Vec<Made>, String> {
    let kind = members.text("Type").unwrap_or_default();
    if !TYPES.contains(&kind.as_ref()) {
        return Err(format!("Type has to be one of {}", TYPES.join(", ")));
    }
    let (id, topic) = (needed(members, "MessageId")?, needed(members, "TopicArn")?);
    if let Some(event) = members.text("Message").filter(|message| is_cloud_event(message)) {
        return Ok(vec![Ok(event.into_owned())]);
    }
    let subscription = subscription_arn(members).map(|arn| quoted(&arn));
    let attributes = [
        ("type", Some(quoted(&format!("com.amazonaws.sns.{kind}")))),
        ("source", Some(subscription.unwrap_or_else(|| topic.to_owned()))),
        ("id", Some(id.to_owned())),
        ("time", said(members, "Timestamp").map(ToOwned::to_owned)),
        ("subject", said(members, "Subject").map(ToOwned::to_owned)),
    ];
    let attributes = attributes.each_ref().map(|(name, value)| (*name, value.as_deref()));
    Ok(vec![Ok(cloud_event(&attributes, text.trim()))])
}

/// The ARN of the queue's subscription, from the address that ends it; it begins with that of the
/// topic.
fn subscription_arn(members: &Members<'_>) -> Option<String> {
    let (address, topic) = (members.text("UnsubscribeURL")?, members.text("TopicArn")?);
    let (_, query) = address.split_once('?')?;
    let arn = query.split('&').find_map(|pair| pair.strip_prefix("SubscriptionArn="))?;
    let arn = percent_decode_str(arn).decode_utf8().ok()?;
    let is_of_topic = arn.strip_prefix(&*topic).is_some_and(|rest| rest.starts_with(':'));
    is_of_topic.then(|| arn.into_owned())
}
