//! Subscriptions that are described in files but missing in the catalogue, each with the reason.
//!
//! Separate because a finding is about a field, while this is about a subscription: it shows
//! directly which deliveries are missing.

use crate::document::findings::Finding;
use crate::document::reader::Cursor;

/// A subscription that is not in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// `namespace/topic/name`, the name of an Azure resource, or a position if the files state no
    /// complete name.
    pub name: String,
    /// Position of the reason, as `file:line:column`.
    pub at: String,
    /// The reason, for people.
    pub reason: String,
}

/// The reason for a subscription whose own document has no error.
const ELSEWHERE: &str = "what it refers to has an error";

impl LeftOut {
    /// Describes a subscription at the cursor. Parts of its name may be missing. The reason is the
    /// first error of its document, if there is one.
    #[must_use]
    pub fn at(at: &Cursor<'_>, name: &[&str], error: Option<Box<Finding>>) -> Self {
        let is_named = name.iter().all(|part| !part.is_empty());
        let name = if is_named { name.join("/") } else { at.location() };
        let name = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        match error {
            Some(error) => Self { name, at: error.location(), reason: error.problem() },
            None => Self { name, at: at.location(), reason: ELSEWHERE.to_owned() },
        }
    }

    /// Describes a subscription that is left out for a reason that is not an error.
    #[must_use]
    pub fn because(at: &Cursor<'_>, name: &[&str], reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..Self::at(at, name, None) }
    }
}
