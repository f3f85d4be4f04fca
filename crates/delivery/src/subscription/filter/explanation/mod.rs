//! Explains why a filter matches an event or does not match it.
//!
//! The explanation is a tree with the result of each condition and the value that it found in the
//! event. This module is separate because deliveries need only the result. The result of each
//! condition comes from `Filter::takes`, so an explanation cannot differ from a delivery.

mod of_filter;
mod part;

pub use self::part::{Explanation, Found, Problem};
