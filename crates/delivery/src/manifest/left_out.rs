//! Subscriptions that the files describe and the catalogue does not have, each with the reason.
//!
//! Separate because a finding is about a field, and this is about a subscription: whoever reads the findings should not
//! have to find out which deliveries are missing.

use super::reader::Cursor;

/// A subscription that is not in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// `namespace/topic/name`, the name of an Azure resource, or its position if the files do not state these.
    pub name: String,
    /// Why it is left out.
    pub reason: String,
}

/// The reason if its own document has no error.
const ELSEWHERE: &str = "what it refers to has an error";

impl LeftOut {
    /// A subscription that is described at the cursor. The parts of its name may be missing. The reason is the first
    /// error of its document, if it has one.
    pub(super) fn at(at: &Cursor<'_>, name: &[&str], reason: Option<String>) -> Self {
        let is_named = name.iter().all(|part| !part.is_empty());
        let name = if is_named { name.join("/") } else { at.location() };
        let name = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        Self { name, reason: reason.unwrap_or_else(|| ELSEWHERE.to_owned()) }
    }
}
