//! Converts the messages that Amazon SNS sends to a queue without raw message delivery.
//!
//! The adapter of the CloudEvents project reads the headers of an HTTP subscriber. A queue gets the
//! same values in the body, but gets the ARN of its subscription only inside `UnsubscribeURL`. If
//! the published message is itself a CloudEvent, it becomes the event unchanged.
//!
//! Receivers of events must not be able to change the subscription of the queue. Members that allow
//! this are removed, and confirmations are malformed events.
//! <https://github.com/cloudevents/spec/blob/main/cloudevents/adapters/aws-sns.md>,
//! <https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html>

use percent_encoding::percent_decode_str;

use super::cloud_event::{Unconverted, cloud_event, non_empty, required};
use super::publisher::Publisher;
use crate::event::json::quoted;
use crate::event::{Event, Members, Shape, is_cloud_event};

/// Value of `Type` in a published message.
const NOTIFICATION: &str = "Notification";
/// All values of `Type` in messages of SNS.
const TYPES: [&str; 3] = [NOTIFICATION, "SubscriptionConfirmation", "UnsubscribeConfirmation"];
/// Members with which a reader could subscribe the queue, or end its subscription.
const ENDS_THE_SUBSCRIPTION: [&str; 3] = ["UnsubscribeURL", "SubscribeURL", "Token"];

pub(super) fn publisher(members: &Members<'_>) -> Option<Publisher> {
    let kind = members.text("Type")?;
    non_empty(members, "MessageId").filter(|_| TYPES.contains(&kind.as_ref()))?;
    members
        .text("TopicArn")
        .filter(|arn| arn.starts_with("arn:"))
        .map(|arn| Publisher::SnsTopic(arn.into_owned()))
}

/// Returns an error text if the message is a subscription confirmation or an unsubscribe
/// confirmation of SNS; `None` for other messages.
fn unconfirmed(members: &Members<'_>) -> Option<String> {
    publisher(members)?;
    let kind = members.text("Type").filter(|kind| kind != NOTIFICATION)?;
    Some(format!(
        "a {kind} is not an event and is not delivered; open its SubscribeURL to confirm the \
         subscription"
    ))
}

/// Removes the members of [`ENDS_THE_SUBSCRIPTION`] from an SNS notification on a topic whose input
/// is not SNS. Fails for an SNS confirmation. Returns `None` for any other event, and for a
/// notification without such members.
pub(super) fn other_event(event: &Event) -> Option<Result<String, Unconverted>> {
    let text = event.text();
    let members = match event.shape() {
        Shape::CloudEvent | Shape::EventGrid => None,
        Shape::Custom => Some(event.members()),
        Shape::Opaque => Members::parse(text).ok(),
    }?;
    publisher(&members)?;
    if let Some(why) = unconfirmed(&members) {
        return Some(Err(Unconverted::new(text, why)));
    }
    let ends_it = ENDS_THE_SUBSCRIPTION.iter().any(|name| members.get(name).is_some());
    ends_it.then(|| Ok(members.without(&ENDS_THE_SUBSCRIPTION)))
}

/// Converts a notification into a CloudEvent. The data omits the members of
/// [`ENDS_THE_SUBSCRIPTION`].
pub(super) fn event(text: &str, members: &Members<'_>) -> Result<String, Unconverted> {
    let data = || members.without(&ENDS_THE_SUBSCRIPTION);
    converted(members, data).map_err(|why| Unconverted::new(text, why))
}

/// Converts a notification into a CloudEvent. The data contains all members of the notification.
pub(super) fn whole_event(text: &str, members: &Members<'_>) -> Result<String, Unconverted> {
    converted(members, || text.trim().to_owned()).map_err(|why| Unconverted::new(text, why))
}

fn converted(members: &Members<'_>, data: impl FnOnce() -> String) -> Result<String, String> {
    let kind = members.text("Type").unwrap_or_default();
    if let Some(why) = unconfirmed(members) {
        return Err(why);
    }
    if kind != NOTIFICATION {
        return Err(format!("Type must be {NOTIFICATION}"));
    }
    let (id, topic) = (required(members, "MessageId")?, required(members, "TopicArn")?);
    if let Some(event) = members.text("Message").filter(|message| is_cloud_event(message)) {
        return Ok(event.into_owned());
    }
    let subscription = subscription_arn(members).map(|arn| quoted(&arn));
    let attributes = [
        ("type", Some(quoted(&format!("com.amazonaws.sns.{kind}")))),
        ("source", Some(subscription.unwrap_or_else(|| topic.to_owned()))),
        ("id", Some(id.to_owned())),
        ("time", non_empty(members, "Timestamp").map(ToOwned::to_owned)),
        ("subject", non_empty(members, "Subject").map(ToOwned::to_owned)),
    ];
    let attributes = attributes.each_ref().map(|(name, value)| (*name, value.as_deref()));
    Ok(cloud_event(&attributes, &data()))
}

/// Returns the ARN of the queue's subscription, which is a parameter of `UnsubscribeURL`. Returns
/// `None` if the parameter is missing or does not begin with the ARN of the topic.
fn subscription_arn(members: &Members<'_>) -> Option<String> {
    let (address, topic) = (members.text("UnsubscribeURL")?, members.text("TopicArn")?);
    let (_, query) = address.split_once('?')?;
    let arn = query.split('&').find_map(|pair| pair.strip_prefix("SubscriptionArn="))?;
    let arn = percent_decode_str(arn).decode_utf8().ok()?;
    let is_of_topic = arn.strip_prefix(&*topic).is_some_and(|rest| rest.starts_with(':'));
    is_of_topic.then(|| arn.into_owned())
}
