//! What is known of destinations that are not healthy: which keep failing, which are slow to answer or have
//! too much to do, and what all processes of a deployment share of that.
//!
//! A healthy destination is in none of these memories, so it costs nothing.

pub mod adaptive;
pub mod dead_letters;
pub mod news;
pub mod notice;
pub mod probation;
pub mod retry_after;
pub mod shared;
pub mod slow;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::subscription::Subscription;
use crate::table::ItemKey;

/// The end of the key of an item that holds the health of a destination, and that it is disabled.
const HEALTH: &str = "#health";
/// The end of the key of an item that holds who may make how many requests to a destination.
const LIMITS: &str = "#limits";
/// Half of a SHA-256: enough to tell addresses apart.
const KEY_BYTES: usize = 16;

/// A destination of a namespace: a hash of both. The query of the address may hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DestinationKey([u8; KEY_BYTES]);

/// What an attempt showed about its destination, in one of the two ways to be unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It is unhealthy, for so long from the attempt on.
    Began {
        /// How long.
        lasts_ms: u64,
    },
    /// It still is: the attempt that was to decide failed as well.
    GoesOn {
        /// How long.
        lasts_ms: u64,
    },
    /// It is not any more.
    Ended,
}

impl DestinationKey {
    /// The key of the destination of a subscription.
    #[must_use]
    pub fn of_subscription(subscription: &Subscription) -> Self {
        Self::of(&subscription.name.topic.namespace, &subscription.destination.url)
    }

    /// The key of this address, as subscriptions of this namespace know it. Namespaces learn nothing from each other.
    #[must_use]
    pub fn of(namespace: &str, url: &Url) -> Self {
        let mut key = [0; KEY_BYTES];
        let digest =
            Sha256::new().chain_update(namespace).chain_update("\n").chain_update(url.as_str());
        key.copy_from_slice(&digest.finalize()[..KEY_BYTES]);
        Self(key)
    }
}

impl DestinationKey {
    /// The item of the table with its health, and that it is disabled.
    #[must_use]
    pub fn health_item(self, namespace: &str) -> ItemKey {
        ItemKey::new(namespace, format!("{self}{HEALTH}"))
    }

    /// The destination whose health this item holds, if it holds any.
    #[must_use]
    pub fn of_health_item(item: &ItemKey) -> Option<Self> {
        item.sort.strip_suffix(HEALTH)?.parse().ok()
    }

    /// The item that says who may make how many requests to it.
    #[must_use]
    pub fn limits_item(self, namespace: &str) -> ItemKey {
        ItemKey::new(namespace, format!("{self}{LIMITS}"))
    }
}

impl fmt::Display for DestinationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for DestinationKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut key = [0; KEY_BYTES];
        let decoded = hex::decode_to_slice(text, &mut key);
        decoded.map(|()| Self(key)).map_err(|_| format!("{text:?} is not the key of a destination"))
    }
}

impl TryFrom<String> for DestinationKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DestinationKey> for String {
    fn from(key: DestinationKey) -> Self {
        key.to_string()
    }
}
