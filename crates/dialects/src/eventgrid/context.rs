//! The input and the output of translating one resource.

use super::super::destinations::Destinations;
use super::super::translation::Translation;

pub(super) struct Context<'d> {
    /// The entries of the `Destinations` documents.
    pub(super) destinations: &'d Destinations<'d>,
    pub(super) to: Translation,
}
