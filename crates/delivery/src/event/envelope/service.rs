//! Decodes the text of one element as a message of the service that the topic's input names.
//!
//! This module is separate from [`Elements`](super::Elements), which splits a record without
//! interpreting its elements.

use std::sync::Arc;

use super::cloud_event::Unconverted;
use super::{eventbridge, s3, sns};
use crate::event::json::escaped;
use crate::event::{Element, Input, Malformed, Members, decode_one};

/// Converts a message of one service into a CloudEvent.
type Convert = fn(&str, &Members<'_>) -> Result<String, Unconverted>;

/// Decodes the text of one element. If the input names SNS, EventBridge or S3, a message of that
/// service is converted into a CloudEvent. A text with `specversion` must be a CloudEvent.
pub(super) fn decode_text(text: &Arc<str>, input: Input) -> Element {
    let convert: Convert = match input {
        Input::Auto | Input::CloudEvents | Input::EventGrid | Input::Custom | Input::Opaque => {
            return without_subscription(decode_one(text, input), input);
        }
        Input::Sns => sns::event,
        Input::SnsWhole => sns::whole_event,
        Input::EventBridge => eventbridge::event,
        Input::S3 => s3::event,
    };
    let malformed = |text: &str, why| Element::Malformed { text: text.into(), why };
    let members = match Members::parse(text) {
        Ok(members) => members,
        Err(why) => return malformed(text, why),
    };
    if members.get("specversion").is_some() {
        return decode_one(text, Input::CloudEvents);
    }
    match convert(text, &members) {
        Ok(event) => decode_one(&escaped(&event).into(), Input::CloudEvents),
        Err(Unconverted { text, why }) => {
            malformed(&text, Malformed::Envelope(input.as_str(), why))
        }
    }
}

/// Removes the members of an SNS notification with which a reader could end the SNS subscription.
/// This applies even if the topic's input is not SNS. An SNS confirmation becomes malformed.
fn without_subscription(element: Element, input: Input) -> Element {
    let Element::Event(event) = &element else { return element };
    match sns::other_event(event) {
        None => element,
        Some(Ok(text)) => decode_one(&text.into(), input),
        Some(Err(Unconverted { text, why })) => Element::Malformed {
            text: text.into(),
            why: Malformed::Envelope(Input::Sns.as_str(), why),
        },
    }
}
