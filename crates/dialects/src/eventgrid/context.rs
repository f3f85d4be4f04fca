//! What the translation of a resource needs and fills in.

use super::super::destinations::Destinations;
use super::super::translation::Translation;

/// What the translation of a resource needs and fills in.
pub(super) struct Context<'d> {
    /// The `Destinations` documents.
    pub(super) destinations: &'d Destinations<'d>,
    /// The translation.
    pub(super) to: Translation,
}
