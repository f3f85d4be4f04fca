//! The version of the attributes, and why an attribute cannot be read.
//!
//! Separate because the version is checked before anything else is read, and every part of an attribute may turn
//! out to be unreadable.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::subscription::name::SubscriptionName;

/// The version that is written.
pub(super) const VERSION: u32 = 1;

/// Why an attribute cannot be read. Its record waits: with an [unreadable](Self::Unreadable) one for
/// half an hour and then becomes a dead letter, with one of an [unknown version](Self::UnknownVersion)
/// until a newer program reads it.
#[derive(Debug, Error)]
pub enum WireError {
    /// It is not the JSON of this version.
    #[error("the attribute is not what this version writes: {0}")]
    Unreadable(String),
    /// A newer version wrote it.
    #[error(
        "the attribute has version {0}, and this program reads version {VERSION} only: deploy the newer version"
    )]
    UnknownVersion(u32),
}

#[derive(Serialize, Deserialize)]
struct Versioned {
    v: u32,
}

/// Refuses an attribute of another version.
pub(super) fn check_version(attribute: &str) -> Result<(), WireError> {
    match serde_json::from_str(attribute).map_err(unreadable)? {
        Versioned { v: VERSION } => Ok(()),
        Versioned { v } => Err(WireError::UnknownVersion(v)),
    }
}

/// The subscription named by an attribute that cannot be read as a whole; `None` if it names none, or is no JSON.
#[must_use]
pub fn subscription_in(attribute: &str) -> Option<SubscriptionName> {
    let attribute: Value = serde_json::from_str(attribute).ok()?;
    attribute.get("subscription")?.as_str()?.parse().ok()
}

pub(super) fn unreadable(error: serde_json::Error) -> WireError {
    WireError::Unreadable(error.to_string())
}
