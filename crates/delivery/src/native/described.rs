//! A subscription as its documents describe it, before it is checked against the others.

use super::origins::Origins;
use super::sinks::DeadLettersAt;
use crate::document::reader::Cursor;
use crate::subscription::Subscription;

/// A subscription as its documents describe it.
pub(super) struct Described<'a> {
    /// With all defaults.
    pub(super) subscription: Subscription,
    /// The position of each stated value.
    pub(super) origins: Origins,
    /// The position of the schema.
    pub(super) schema_at: Option<Cursor<'a>>,
    /// The position of what enables batches.
    pub(super) batch_at: Option<Cursor<'a>>,
    /// The positions of dead-letter options that not every sink and format uses.
    pub(super) dead_letters_at: DeadLettersAt<'a>,
    /// The positions of the names of secrets.
    pub(super) secrets_at: Vec<Cursor<'a>>,
}
