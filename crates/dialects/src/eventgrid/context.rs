//! The input and the output of the translation of a resource.

use super::super::destinations::Destinations;
use super::super::translation::Translation;

pub(super) struct Context<'d> {
    /// Entries of the `Destinations` documents.
    pub(super) destinations: &'d Destinations<'d>,
    pub(super) to: Translation,
}
