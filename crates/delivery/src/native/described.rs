//! A subscription as its documents describe it, before it is checked against other documents.

use super::origins::Origins;
use super::sinks::DeadLettersAt;
use crate::document::reader::Cursor;
use crate::subscription::Subscription;

pub(super) struct Described<'a> {
    /// The subscription with all defaults.
    pub(super) subscription: Subscription,
    pub(super) origins: Origins,
    pub(super) schema_at: Option<Cursor<'a>>,
    /// Position of the value that enables batches, if it is stated.
    pub(super) batch_at: Option<Cursor<'a>>,
    /// Positions of dead-letter options that only some sinks and formats use.
    pub(super) dead_letters_at: DeadLettersAt<'a>,
    /// Positions at which documents name secrets.
    pub(super) secrets_at: Vec<Cursor<'a>>,
}
