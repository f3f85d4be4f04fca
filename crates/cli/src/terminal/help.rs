//! Defines the headings of the help that several commands share.

/// The heading of options that name the place where a command works.
pub(crate) const LOCATION: &str = "Location";
