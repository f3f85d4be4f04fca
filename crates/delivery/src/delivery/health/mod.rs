//! Detects failing, slow and overloaded destinations, and shares the findings among all processes
//! of a deployment.
//!
//! Most modules contain one rule and the state that the rule keeps for one destination. Three
//! modules share this state or report it: [`shared`], [`news`] and [`notice`].

pub mod adaptive;
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

use crate::delivery::DeliveryTarget;
use crate::subscription::sink::Sink;
use crate::subscription::{ReplyTo, Subscription};
use crate::table::ItemKey;

/// Suffix of the sort key of the item that stores whether a destination is healthy and enabled.
const HEALTH: &str = "#health";
/// Suffix of the sort key of the item that stores the permits and slots of a destination.
const LIMITS: &str = "#limits";
/// Length of a destination key: half of a SHA-256 digest, which is enough to distinguish addresses.
const KEY_BYTES: usize = 16;

/// Identifies a destination by a hash of its namespace and address. The address is hashed because
/// its query may contain secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DestinationKey([u8; KEY_BYTES]);

/// The effect of an attempt: its destination became failing or slow, remained so, or recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The destination became failing or slow.
    Began {
        /// Duration of the condition, counted from the attempt.
        lasts_ms: u64,
    },
    /// The destination is still failing or slow: this attempt failed or was slow too.
    GoesOn {
        /// Duration of the condition, counted from the attempt.
        lasts_ms: u64,
    },
    /// The destination is no longer failing or slow.
    Ended,
}

impl DestinationKey {
    /// Returns the key of a subscription's destination.
    #[must_use]
    pub fn of_subscription(subscription: &Subscription) -> Self {
        Self::new(&subscription.name.topic.namespace, &subscription.destination.url)
    }

    /// Returns the key of the address to which a delivery is sent. Reply addresses and sinks have
    /// keys of their own.
    #[must_use]
    pub fn of_target(subscription: &Subscription, target: &DeliveryTarget) -> Self {
        let destination = &subscription.destination.url;
        let url = match (target, &subscription.reply, &subscription.dead_letter.sink) {
            (DeliveryTarget::Reply, Some(ReplyTo::Address(url)), _)
            | (DeliveryTarget::Sink(_), _, Sink::Address(url)) => url,
            // A reply or dead letter without an address causes no request, so its key is
            // irrelevant.
            (DeliveryTarget::Destination | DeliveryTarget::Reply | DeliveryTarget::Sink(_), ..) => {
                destination
            }
        };
        Self::new(&subscription.name.topic.namespace, url)
    }

    /// Returns the key of this address in this namespace. Namespaces do not share health.
    #[must_use]
    pub fn new(namespace: &str, url: &Url) -> Self {
        let mut key = [0; KEY_BYTES];
        let digest =
            Sha256::new().chain_update(namespace).chain_update("\n").chain_update(url.as_str());
        key.copy_from_slice(&digest.finalize()[..KEY_BYTES]);
        Self(key)
    }
}

impl DestinationKey {
    /// Returns the key of the table item that stores whether the destination is healthy and
    /// enabled.
    #[must_use]
    pub fn health_item(self, namespace: &str) -> ItemKey {
        ItemKey::new(namespace, format!("{self}{HEALTH}"))
    }

    /// Returns the key of the destination whose health the item stores; `None` for other items.
    #[must_use]
    pub fn of_health_item(item: &ItemKey) -> Option<Self> {
        item.sort.strip_suffix(HEALTH)?.parse().ok()
    }

    /// Returns the key of the table item with the destination's permits and slots. Limits belong to an
    /// address: a limit that several addresses share would need a name, a field in each dialect and
    /// a second kind of key.
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
