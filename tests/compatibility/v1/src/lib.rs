//! The reader of version 1 of the message attributes, FROZEN: do not change it with the code.
//!
//! It stands for the functions of an older deployment. They read attributes of today's functions
//! while both run side by side, or after a rollback. So this module is a copy of
//! `crates/delivery/src/wire` and does not use it. It has only the parts that decide whether an
//! attribute is read, and which members are kept.
//!
//! If a test against it fails, deployed functions cannot read today's messages: change today's
//! code, or write a new version. (Nothing is deployed before the release 0.1.0, so until then this
//! reader may follow the code.)

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Returns the members that the reader keeps, as JSON; unknown members are dropped.
///
/// # Errors
/// The reason: an unknown version, or content that version 1 does not write.
pub fn read(attribute: &str, name: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    match serde_json::from_str(attribute).map_err(|error| error.to_string())? {
        Versioned { v: 1 } => {}
        Versioned { v } => return Err(format!("version {v}")),
    }
    match name {
        "publication" => known::<Publication>(attribute, |_| Ok(())),
        "delivery" => known::<Delivery>(attribute, Delivery::check),
        "deadletter" => known::<DeadLetter>(attribute, DeadLetter::check),
        other => Err(format!("there is no attribute {other}")),
    }
}

fn known<T: Serialize + for<'de> Deserialize<'de>>(
    attribute: &str,
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<Value, String> {
    let read: T = serde_json::from_str(attribute).map_err(|error| error.to_string())?;
    check(&read)?;
    serde_json::to_value(&read).map_err(|error| error.to_string())
}

#[derive(Serialize, Deserialize)]
struct Publication {
    message: String,
    published_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    onward: Option<Onward>,
}

#[derive(Serialize, Deserialize)]
struct Onward {
    hops: u32,
    replies_left: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_dead_letter: bool,
}

#[derive(Serialize, Deserialize)]
struct Part {
    first: u32,
    input: Input,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Input {
    Auto,
    CloudEvents,
    EventGrid,
    Custom,
    Opaque,
    Sns,
    EventBridge,
    S3,
}

#[derive(Serialize, Deserialize)]
struct Hold {
    count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<u32>,
    until_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct Origin {
    message: String,
    index: u32,
}

#[derive(Serialize, Deserialize)]
struct Delivery {
    id: Uuid,
    subscription: String,
    origin: Origin,
    published_ms: u64,
    attempts: u32,
    due_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape: Option<Shape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leg: Option<Target>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<Box<DeadLetter>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hops: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
    history: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    EventGrid,
    Custom,
    Opaque,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Target {
    Reply,
    Sink,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Attempt {
        at_ms: u64,
        outcome: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        duration_ms: u64,
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
    },
    Omitted {
        omitted: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Last {
    Response(String),
    ResponseBase64(String),
}

#[derive(Serialize, Deserialize)]
struct DeadLetter {
    #[serde(flatten)]
    delivery: Delivery,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    decided_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sink_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    returned: Option<Returned>,
    format: Format,
    layout: Layout,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_data: Option<ErrorData>,
    period_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    opaque: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mapped: Option<Mapped>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<Addresses>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Namespace,
    EventGrid,
    CloudEvents,
    Custom,
    Knative,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layout {
    Nested,
    Flat,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorData {
    Base64,
}

#[derive(Serialize, Deserialize)]
struct Returned {
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    attempts: u32,
    history: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
}

#[derive(Serialize, Deserialize)]
struct Mapped {
    id: String,
    topic: String,
    event_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_version: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Addresses {
    subscriber: String,
    failed: String,
}

impl Delivery {
    fn check(&self) -> Result<(), String> {
        is_name(&self.subscription, 3)?;
        self.via.iter().try_for_each(|topic| is_name(topic, 2))?;
        self.company.iter().try_for_each(|word| is_word(word))?;
        check_end(&self.history, self.last.as_ref())?;
        match (&self.leg, &self.letter) {
            (None | Some(Target::Reply), None) => Ok(()),
            (Some(Target::Sink), Some(letter)) if letter.delivery.letter.is_none() => {
                letter.check()
            }
            (None | Some(Target::Reply | Target::Sink), _) => {
                Err("a dead letter out of place".to_owned())
            }
        }
    }
}

impl DeadLetter {
    fn check(&self) -> Result<(), String> {
        self.delivery.check()?;
        is_word(&self.reason)?;
        if let Some(returned) = &self.returned {
            is_word(&returned.reason)?;
            check_end(&returned.history, returned.last.as_ref())?;
        }
        match (&self.container, &self.queue) {
            (Some(_), Some(_)) => Err("a container and a queue at once".to_owned()),
            (None, _) | (_, None) => Ok(()),
        }
    }
}

fn check_end(history: &[Entry], last: Option<&Last>) -> Result<(), String> {
    for entry in history {
        match entry {
            Entry::Attempt { outcome, .. } => is_word(outcome)?,
            Entry::Omitted { .. } => {}
        }
    }
    match last {
        Some(Last::ResponseBase64(text)) => {
            STANDARD.decode(text).map(|_| ()).map_err(|error| error.to_string())
        }
        Some(Last::Response(_)) | None => Ok(()),
    }
}

fn is_name(text: &str, parts: usize) -> Result<(), String> {
    let named: Vec<&str> = text.split('/').filter(|part| (1..=255).contains(&part.len())).collect();
    (named.join("/") == text && named.len() == parts)
        .then_some(())
        .ok_or_else(|| format!("{text:?} is no name of {parts} parts"))
}

/// Accepts any word, known or not, because unknown words are kept.
fn is_word(text: &str) -> Result<(), String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ((1..=64).contains(&text.len()) && text.bytes().all(is_part))
        .then_some(())
        .ok_or_else(|| format!("{text:?} is no word"))
}
