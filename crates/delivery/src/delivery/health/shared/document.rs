//! A document in an item of the table, and the version of its format.
//!
//! Separate because there are several: the state of a destination, counted dead letters, and news.

use serde::{Deserialize, Serialize};

use crate::table::Entry;

/// The version of the documents.
pub(crate) const VERSION: u32 = 1;

/// A document that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It does not have the expected format.
    #[error("it is not a document of the table: {0}")]
    Invalid(String),
    /// It has a newer version.
    #[error("its version {0} is not known")]
    Version(u32),
}

/// A document that an item holds.
pub trait Document: Clone + PartialEq + Serialize + for<'a> Deserialize<'a> {
    /// Parses and checks its version.
    ///
    /// # Errors
    /// [`DocumentError`] when it is not such a document, or has a newer version.
    fn read(document: &[u8]) -> Result<Self, DocumentError> {
        // The version first: a newer document may have another format.
        let invalid = |error: serde_json::Error| DocumentError::Invalid(error.to_string());
        let Versioned { v } = serde_json::from_slice(document).map_err(invalid)?;
        if v != VERSION {
            return Err(DocumentError::Version(v));
        }
        serde_json::from_slice(document).map_err(invalid)
    }

    /// Time at which the item expires; `None` if it does not.
    fn expires_ms(&self) -> Option<u64>;

    /// The entry that stores it.
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
