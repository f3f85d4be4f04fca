//! The stored text of one subscription and of one topic: versioned JSON.
//!
//! Separate from the message attributes because it is not a message: it is written when subscriptions are applied, and
//! read by whoever delivers. A text is complete: every value that decides something is in it, so reading needs no
//! [`Profile`](crate::subscription::profile::Profile), and a later version with other defaults does not change what is
//! stored. A number is always there; what is absent, empty or false is left out.
//!
//! Promises: equal values have the same bytes; what was written is read to an equal value; no text panics. Version 1
//! must stay readable for ever; its examples are in `fixtures/stored/v1`. An unknown field or word is an error, since
//! the one that is ignored could be the one that says `paused`.
//!
//! The name is not in the text: it is the key under which the text is stored. A subscription's mapping is not either: it
//! is its topic's. A text holds names of secrets, never their values; values that a file holds are in it as in the file.
//!
//! Does not read or write objects, and does not check what needs other documents.

mod auth;
mod destination;
mod filter;
mod retry;
mod subscription;
mod topic;
mod words;

use std::fmt::Display;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use url::Url;

use self::subscription::SubscriptionV1;
use self::topic::TopicV1;
use crate::event::mapping::Mapping;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Topic;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::topic_address;

/// The version that is written.
const VERSION: u32 = 1;

/// Why a stored text cannot be read. No text of a header's value and no address is quoted: they may hold credentials.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoredError {
    /// It is not the JSON of this version.
    #[error("the stored text is not what this version writes: {0}; apply the subscriptions again")]
    Unreadable(String),
    /// A newer version wrote it.
    #[error(
        "the stored text has version {0}, and this program reads version {VERSION} only: deploy the newer version"
    )]
    UnknownVersion(u32),
}

/// Writes a subscription without its name and its mapping.
#[must_use]
pub fn write_subscription(subscription: &Subscription) -> String {
    json(&SubscriptionV1::from(subscription))
}

/// Reads the subscription that is stored under this name; the mapping is its topic's.
///
/// # Errors
/// [`StoredError`] when the text is not ours, not valid, or of an unknown version. Conditions of a filter may nest as
/// deep as the JSON reader allows, 128 objects and lists.
pub fn read_subscription(
    name: SubscriptionName,
    mapping: &Arc<Mapping>,
    text: &str,
) -> Result<Subscription, StoredError> {
    let stored: SubscriptionV1 = parse(text)?;
    stored.into_subscription(name, mapping).map_err(StoredError::Unreadable)
}

/// Writes a topic without its name and its publishers (`from`), which are stored elsewhere.
#[must_use]
pub fn write_topic(topic: &Topic) -> String {
    json(&TopicV1::from(topic))
}

/// Reads the topic that is stored under this name. Its `from` is empty: which publisher belongs to which topic is
/// stored elsewhere.
///
/// # Errors
/// [`StoredError`] when the text is not ours, not valid, or of an unknown version.
pub fn read_topic(name: TopicName, text: &str) -> Result<Topic, StoredError> {
    let stored: TopicV1 = parse(text)?;
    stored.into_topic(name).map_err(StoredError::Unreadable)
}

/// The member `v`: always the version of the struct that it is in.
struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(VERSION)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            VERSION => Ok(Self),
            other => Err(D::Error::custom(format!("v is {other}"))),
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("these structs have string keys and no failing serializers")
}

/// The struct of a text. Its version is looked at once more only if it cannot be read, since that may be why.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoredError> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    serde_json::from_str(text).map_err(|error| match serde_json::from_str(text) {
        Ok(Versioned { v }) if v != VERSION => StoredError::UnknownVersion(v),
        Ok(_) | Err(_) => StoredError::Unreadable(error.to_string()),
    })
}

/// The value of a field, or what is wrong with it.
fn of_field<T>(field: &str, value: Result<T, impl Display>) -> Result<T, String> {
    value.map_err(|problem| format!("{field}: {problem}"))
}

/// A number of which there has to be at least one.
fn at_least_one<T: PartialEq + Default>(field: &str, number: T) -> Result<T, String> {
    let valid = if number == T::default() { Err("0, at least 1 is expected") } else { Ok(number) };
    of_field(field, valid)
}

/// Where events go: an HTTP address, or that of a topic.
fn address_or_topic(field: &str, text: &str) -> Result<Url, String> {
    let topic = Url::parse(text).ok().filter(|url| topic_address::topic_of(url).is_some());
    topic.map_or_else(|| address(field, text), Ok)
}

/// An HTTP address. It is in no message: it may hold credentials.
fn address(field: &str, text: &str) -> Result<Url, String> {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
    match Url::parse(text) {
        Ok(url) if is_http(&url) && url.host_str().is_some_and(|host| !host.is_empty()) => Ok(url),
        Ok(_) | Err(_) => {
            Err(format!("{field}: not an address, http://… or https://… is expected"))
        }
    }
}
