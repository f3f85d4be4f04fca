//! [`LeftOut`]: a subscription that files describe but the catalogue does not contain.
//!
//! This module is separate because a finding only points to a field. The list of left-out
//! subscriptions shows directly which deliveries are missing.

use crate::document::findings::Finding;
use crate::document::reader::Cursor;

/// A subscription that files describe but the catalogue does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The full name of the subscription, or the name of an Azure resource. If the files do not
    /// state the complete name, this is the position of the subscription.
    pub name: String,
    /// Position at which the reason was found, as `file:line:column`.
    pub at: String,
    /// The reason why the subscription was left out, for people.
    pub reason: String,
}

/// The reason for a subscription whose own document has no error.
const ELSEWHERE: &str = "an object that the subscription refers to has an error";

impl LeftOut {
    /// Describes the subscription at the cursor, whose name may be incomplete. `error` is the first
    /// error of its document, and becomes the reason why it was left out.
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

    /// Describes a subscription that is left out for this reason, which is not an error.
    #[must_use]
    pub fn because(at: &Cursor<'_>, name: &[&str], reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..Self::at(at, name, None) }
    }
}
