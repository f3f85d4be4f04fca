//! What all processes of a deployment know of a destination that is not healthy: one small document for
//! each, and a digest of all.
//!
//! A process writes what it found out, and the document keeps what is worse: the longer probation, the
//! earlier beginning. Documents are replaced only by whoever read their newest version, so that of two
//! processes that want to probe a destination one does. The digest is a hint: what it lacks, a process
//! finds out by itself.

mod change;
mod claim;
mod digest;
mod document;
mod findings;
mod spell;
mod state;

pub use self::claim::Claim;
pub use self::digest::{Digest, Summary, digest_document};
pub(super) use self::document::VERSION;
pub use self::document::{Document, DocumentError};
pub use self::findings::{Attempted, Findings};
pub use self::spell::Spell;
pub use self::state::{DestinationState, DisabledState};

#[cfg(test)]
mod tests;
