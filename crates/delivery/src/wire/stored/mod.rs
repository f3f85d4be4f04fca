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
mod field;
mod filter;
mod retry;
mod subscription;
mod topic;
mod version;
mod words;

use std::sync::Arc;

use serde::Serialize;

use self::subscription::SubscriptionV1;
use self::topic::TopicV1;
pub use self::version::StoredError;
use self::version::parse;
use crate::event::mapping::Mapping;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Topic;
use crate::subscription::name::{SubscriptionName, TopicName};

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

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("these structs have string keys and no failing serializers")
}
