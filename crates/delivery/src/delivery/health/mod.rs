//! What is known of destinations that are not healthy: which keep failing, which are slow to answer or have
//! too much to do, and what all processes of a deployment share of that.
//!
//! A healthy destination is in none of these memories, so it costs nothing.

pub mod adaptive;
pub mod dead_letters;
pub mod notice;
pub mod permits;
pub mod probation;
pub mod retry_after;
pub mod shared;
pub mod slots;
pub mod slow;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

/// Where documents about destinations are, beside the subscriptions.
pub const FOLDER: &str = "_destinations";
/// Half of a SHA-256: enough to tell addresses apart.
const KEY_BYTES: usize = 16;

/// A destination among others: a hash of its whole address, whose query may hold secrets.
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
    /// That of this address.
    #[must_use]
    pub fn of(url: &Url) -> Self {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&Sha256::digest(url.as_str())[..KEY_BYTES]);
        Self(key)
    }

    /// The key of the document that says who may make how many requests at once.
    #[must_use]
    pub fn permits_document(&self) -> String {
        format!("{FOLDER}/{self}.permits.json")
    }

    /// The key of the document that says which slots of its rate are taken.
    #[must_use]
    pub fn slots_document(&self) -> String {
        format!("{FOLDER}/{self}.slots.json")
    }

    /// The key of the document that holds its state.
    #[must_use]
    pub fn document(&self) -> String {
        format!("{FOLDER}/{self}.json")
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
