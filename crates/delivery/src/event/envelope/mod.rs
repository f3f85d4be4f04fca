//! Messages of AWS services, converted to CloudEvents: Amazon SNS, Amazon EventBridge, Amazon S3.
//!
//! Separate because AWS defines these formats and may change them. The mappings of SNS and S3 are
//! those of the CloudEvents project
//! (<https://github.com/cloudevents/spec/tree/main/cloudevents/adapters>); it has none for
//! EventBridge; see that module. Values keep the publisher's spelling: their raw text is copied,
//! never parsed and serialized again. From then on the new event is what is queued, posted and
//! stored.
//!
//! A message that is a CloudEvent already stays as it is: a publisher may send one through any of
//! the three. Whether a record is converted is decided elsewhere: by its topic's `input`, or where
//! the record names no topic, which none of the three can, by the publisher it names.

mod elements;
mod eventbridge;
mod s3;
mod sns;

use std::fmt;
use std::sync::Arc;

pub use self::elements::Elements;
use crate::event::json::{escaped, without_mark};
use crate::event::{Element, Input, Malformed, Members, decode_one};

/// A publisher that cannot set the `topic` attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Publisher {
    /// The SNS topic of this ARN.
    SnsTopic(String),
    /// The EventBridge source of this name.
    EventSource(String),
    /// The S3 bucket of this name.
    Bucket(String),
}

impl fmt::Display for Publisher {
    /// The field of a Topic document that names it, and its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnsTopic(arn) => write!(f, "snsTopic {arn}"),
            Self::EventSource(name) => write!(f, "eventSource {name}"),
            Self::Bucket(name) => write!(f, "bucket {name}"),
        }
    }
}

/// Which of the three services wrote a record, recognised by its fields.
#[must_use]
pub fn publisher(body: &str) -> Option<Publisher> {
    let body = without_mark(body);
    if !body.trim_start().starts_with('{') {
        return None;
    }
    let members = Members::parse(body).ok()?;
    sns::publisher(&members)
        .or_else(|| eventbridge::publisher(&members))
        .or_else(|| s3::publisher(&members))
}

/// The input of records of this publisher.
#[must_use]
pub const fn input_of(publisher: &Publisher) -> Input {
    match publisher {
        Publisher::SnsTopic(_) => Input::Sns,
        Publisher::EventSource(_) => Input::EventBridge,
        Publisher::Bucket(_) => Input::S3,
    }
}

/// Reads a record's body into its events, in order: a JSON array is one event per element, an S3
/// notification is one event per record in it.
#[must_use]
pub fn decode(body: &Arc<str>, input: Input) -> Vec<Element> {
    match Elements::of(body, input) {
        Ok(elements) => (0..elements.len()).map(|index| elements.decode(index)).collect(),
        Err(why) => vec![Element::Malformed { text: Arc::clone(body), why }],
    }
}

/// Makes a CloudEvent of a message.
type Convert = fn(&str, &Members<'_>) -> Result<String, Unconverted>;

/// Reads the text of one element: a message of SNS, EventBridge or S3 as a CloudEvent, any other input
/// as it is.
fn decode_text(text: &Arc<str>, input: Input) -> Element {
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

/// What SNS sent is never delivered with what ends its subscription, whatever its topic reads.
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

/// A text that could not be converted to a CloudEvent, and why.
#[derive(Debug)]
struct Unconverted {
    text: String,
    why: String,
}

impl Unconverted {
    fn new(text: &str, why: impl Into<String>) -> Self {
        Self { text: text.to_owned(), why: why.into() }
    }
}

/// The raw value of a member that is a non-empty string.
fn non_empty<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    members.get(name).filter(|value| inner(value).is_some_and(|text| !text.is_empty()))
}

/// The same for a required member.
fn required<'a>(members: &Members<'a>, name: &str) -> Result<&'a str, String> {
    non_empty(members, name).ok_or_else(|| format!("{name} has to be a non-empty string"))
}

/// The part between the quotes of a JSON string.
fn inner(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// JSON strings, joined to one.
fn joined(parts: &[Option<&str>], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().flatten().filter_map(|value| inner(value)).collect();
    format!("\"{}\"", parts.join(between))
}

/// A CloudEvent whose attributes are JSON values already; those without a value are left out.
fn cloud_event(attributes: &[(&str, Option<&str>)], data: &str) -> String {
    let mut event = String::from(r#"{"specversion":"1.0""#);
    let data = [("datacontenttype", Some(r#""application/json""#)), ("data", Some(data))];
    for (name, value) in
        attributes.iter().copied().chain(data).filter_map(|(name, value)| Some((name, value?)))
    {
        event.push_str(&format!(",\"{name}\":{value}"));
    }
    event.push('}');
    event
}
