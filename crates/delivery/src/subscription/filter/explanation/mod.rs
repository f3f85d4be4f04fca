//! Why a filter matches an event, or why not: the filter as a tree, each part with its verdict and with what the
//! event has there.
//!
//! Separate because deliveries need the verdict alone. Promises: the verdict of each part is that of
//! [`Filter::takes`], which is asked and not repeated here.

mod of_filter;
mod part;

pub use self::part::{Explanation, Found, Problem};
