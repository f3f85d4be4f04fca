//! The shared health of destinations: one item of the table for each unhealthy destination.
//!
//! A process writes its findings, and the item keeps the worse value: the longer probation, the earlier beginning. An item is
//! replaced only by a writer that read its newest version. So only one of two processes that want to probe a destination does.

mod change;
mod claim;
mod document;
mod findings;
mod spell;
mod state;

pub use self::change::ROW_MS;
pub use self::claim::Claim;
pub(crate) use self::document::VERSION;
pub use self::document::{Document, DocumentError};
pub use self::findings::{Attempted, Findings, Row};
pub use self::spell::Spell;
pub use self::state::{DestinationState, DisabledState};

#[cfg(test)]
mod tests;
