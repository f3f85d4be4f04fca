//! The shared health of destinations. The table has one item for each unhealthy destination.
//!
//! Each process writes its findings. If findings differ, the item keeps the worse value, for
//! example the longer probation or the earlier beginning. Only a writer that has read the newest
//! version can replace an item. So only one of two processes can claim the probe of a destination.

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
pub use self::findings::{Attempted, FailureStreak, Findings};
pub use self::spell::Spell;
pub use self::state::{DestinationState, DisabledState};

#[cfg(test)]
mod tests;
