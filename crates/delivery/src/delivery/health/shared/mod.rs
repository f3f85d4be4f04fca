//! What all processes of a deployment know of a destination that is not healthy: one item of the table for each.
//!
//! A process writes what it found out, and the item keeps what is worse: the longer probation, the
//! earlier beginning. An item is replaced only by whoever read its newest version, so that of two
//! processes that want to probe a destination one does.

mod change;
mod claim;
mod document;
mod findings;
mod spell;
mod state;

pub use self::claim::Claim;
pub(crate) use self::document::VERSION;
pub use self::document::{Document, DocumentError};
pub use self::findings::{Attempted, Findings};
pub use self::spell::Spell;
pub use self::state::{DestinationState, DisabledState};

#[cfg(test)]
mod tests;
