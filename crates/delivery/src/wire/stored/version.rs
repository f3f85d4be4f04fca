//! The version of the stored texts, and why a text cannot be read.
//!
//! Separate because both texts begin with it.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

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

/// The member `v`: always the version of the struct that it is in.
pub(super) struct Version;

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

/// The struct of a text. Its version is looked at once more only if it cannot be read, since that may be why.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoredError> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    serde_json::from_str(text).map_err(|error| match serde_json::from_str(text) {
        Ok(Versioned { v }) if v != VERSION => StoredError::UnknownVersion(v),
        Ok(_) | Err(_) => StoredError::Unreadable(error.to_string()),
    })
}
