//! Serves the pages of dead letters: the list, one dead letter, and one cause.

pub(super) mod caches;
pub(super) mod cause;
mod chart;
mod curl;
pub(super) mod filters;
pub(super) mod fingerprint;
pub(super) mod letter;
pub(super) mod links;
pub(super) mod list;
mod neighbours;
mod outcome_text;
pub(super) mod overview;
mod reason_text;
mod suggestions;
pub(super) mod summary;
mod timeline;
