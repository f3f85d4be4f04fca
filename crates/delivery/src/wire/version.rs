//! The version of message attributes, and the reasons why an attribute cannot be parsed.
//!
//! This module is separate because the version is checked before all other fields, and because the
//! parsers of all attributes return these errors.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::subscription::name::SubscriptionName;

/// The format version that this program writes.
pub(super) const VERSION: u32 = 1;

/// The reason why an attribute cannot be parsed. The record of an [unreadable](Self::Unreadable)
/// attribute waits for half an hour and then becomes a dead letter. The record of an [unknown
/// version](Self::UnknownVersion) waits until newer code parses it.
#[derive(Debug, Error)]
pub enum WireError {
    /// The attribute is not valid JSON of the version that it states.
    #[error("the attribute is not valid: {0}")]
    Unreadable(String),
    /// The attribute states this version, which only newer code supports.
    #[error(
        "the attribute has version {0}, but this program supports only version {VERSION}: deploy \
         the newer version"
    )]
    UnknownVersion(u32),
}

#[derive(Serialize, Deserialize)]
struct Versioned {
    v: u32,
}

/// Returns an error unless the attribute states the version that this program supports,
/// [`VERSION`].
pub(super) fn check_version(attribute: &str) -> Result<(), WireError> {
    match serde_json::from_str(attribute).map_err(unreadable)? {
        Versioned { v: VERSION } => Ok(()),
        Versioned { v } => Err(WireError::UnknownVersion(v)),
    }
}

/// Returns the subscription that an unreadable attribute names; `None` if it names none or is not
/// JSON.
#[must_use]
pub fn subscription_in(attribute: &str) -> Option<SubscriptionName> {
    let attribute: Value = serde_json::from_str(attribute).ok()?;
    attribute.get("subscription")?.as_str()?.parse().ok()
}

pub(super) fn unreadable(error: serde_json::Error) -> WireError {
    WireError::Unreadable(error.to_string())
}
