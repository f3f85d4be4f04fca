//! A subscription as its documents describe it, before it is checked against the others.

use super::origins::Origins;
use super::sinks::DeadLettersAt;
use crate::document::reader::Cursor;
use crate::subscription::Subscription;

/// A subscription as its documents describe it.
pub(super) struct Described<'a> {
    /// The subscription.
    pub(super) subscription: Subscription,
    /// Where they state each value.
    pub(super) origins: Origins,
    /// Where they state the schema.
    pub(super) schema_at: Option<Cursor<'a>>,
    /// Where they enable batches.
    pub(super) batch_at: Option<Cursor<'a>>,
    /// Where they state dead-letter options that not every sink and format uses.
    pub(super) dead_letters_at: DeadLettersAt<'a>,
    /// Where they name secrets.
    pub(super) secrets_at: Vec<Cursor<'a>>,
}
