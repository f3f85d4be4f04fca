//! [`Document`]: a JSON document in a table item, with the version of its format.
//!
//! This module is separate because two types are stored as documents: the state of a destination,
//! and published changes.

use serde::{Deserialize, Serialize};

use crate::table::Entry;

/// Format version that every document contains.
pub(crate) const VERSION: u32 = 1;

/// The reason why a stored document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The JSON of the document does not have the expected fields.
    #[error("the item is not a valid document of the table: {0}")]
    Invalid(String),
    /// The document was written by another version of the program, in an unknown format.
    #[error("version {0} of the document is not supported; use a newer version of lastmile")]
    Version(u32),
}

/// A type that is stored as a JSON document in a table item.
pub trait Document: Clone + PartialEq + Serialize + for<'a> Deserialize<'a> {
    /// Parses a document and checks its version.
    ///
    /// # Errors
    /// [`DocumentError`] if the format is invalid or the version is unknown.
    fn read(document: &[u8]) -> Result<Self, DocumentError> {
        // Checks the version first, because a newer document may have a different format.
        let invalid = |error: serde_json::Error| DocumentError::Invalid(error.to_string());
        let Versioned { v } = serde_json::from_slice(document).map_err(invalid)?;
        if v != VERSION {
            return Err(DocumentError::Version(v));
        }
        serde_json::from_slice(document).map_err(invalid)
    }

    /// Returns the time at which the item expires, in milliseconds since 1970; `None` if it never
    /// expires.
    fn expires_ms(&self) -> Option<u64>;

    /// Returns the entry to write to the table, with the document as its value.
    fn entry(&self) -> Entry {
        let text =
            serde_json::to_string(self).expect("its keys are text, and its values are plain");
        Entry { text, expires_ms: self.expires_ms() }
    }
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}
